package place

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// A transfer that is staged through a host memory goes in parts, so that the second hop of one part runs while the
// next part makes its first hop. With n parts over two hops of equal bandwidth b
// and latency l, B bytes take (n + 1) (l + B/nb), whole they take 2 (l + B/b).
//
// The size of a part makes latency a tenth of its time on either hop, s = 9 l b. A copy engine is then busy for at
// most a ninth longer than with the whole. Two parts take 3·10 l and are there sooner than the whole, in 2 (l + 2·9
// l). A move is cut along
// its atoms into 16 parts at most. An atom of several parts goes by itself, in up to 16 equal
// shares of its rows, as many as divide their number.
const (
	latenciesInPart = 9
	mostParts       = 16
)

// Share is one of equal parts of an atom, cut along its rows, from 0 on; all of it where Of is 0.
type Share struct{ Part, Of int32 }

// partBytes is how large a part is on a platform; 0 where nothing passes a host memory.
func partBytes(p *platform.Platform) int64 {
	size := 0.0
	for from := range platform.MemoryID(len(p.Memories)) {
		for to := range platform.MemoryID(len(p.Memories)) {
			if p.NodeOf(from) != p.NodeOf(to) && p.NodeOf(from) != 0 {
				continue // the first node stands for the others, so that the pairs stay few
			}
			stops := p.Stops(from, to)
			if len(stops) < 2 {
				continue
			}
			for i, at := range append([]platform.MemoryID{from}, stops[:len(stops)-1]...) {
				const sample = 1 << 30 // bytes, long in comparison with any latency
				latency := p.RouteTime(at, stops[i], 0)
				perByte := float64(p.RouteTime(at, stops[i], sample)-latency) / sample
				size = max(size, float64(latenciesInPart*float64(latency)/perByte), 1)
			}
		}
	}
	return int64(size)
}

// staged marks the atoms of a writer that go in parts, since they pass a host memory on their way
// to a reader; nil means there are none.
func (t *traffic) staged(to []push, writer dag.TaskID) map[int32]bool {
	if t.partBytes <= 0 || writer < 0 {
		return nil
	}
	staged, from := map[int32]bool(nil), t.memoryOf(writer)
	for _, p := range to {
		if len(t.p.Stops(from, t.memoryOf(p.reader))) > 1 {
			if staged == nil {
				staged = map[int32]bool{}
			}
			staged[p.atom] = true
		}
	}
	return staged
}

// inParts replaces moves of staged atoms by their parts.
func (t *traffic) inParts(moves []*Move, staged map[int32]bool) []*Move {
	var cut []*Move
	for _, m := range moves {
		if (t.p.IsHost(m.To) || t.p.IsHost(m.From)) && !slices.ContainsFunc(m.Atoms, func(a int32) bool { return !staged[a] }) {
			cut = append(cut, t.parts(m)...)
		} else {
			cut = append(cut, m)
		}
	}
	return cut
}

// parts cuts a move along its atoms, and those that are large into shares.
func (t *traffic) parts(m *Move) []*Move {
	var parts []*Move
	add := func(atoms []int32, bytes int64, share Share) {
		part := *m
		part.Atoms, part.Bytes, part.Share = atoms, bytes, share
		parts = append(parts, &part)
	}
	var bytes int64 // of the atoms from first on
	first, rest, least := 0, m.Bytes, max(t.partBytes, m.Bytes/mostParts)
	for i, atom := range m.Atoms {
		size := t.g.AtomBytes(dag.AtomID(atom))
		rest -= size
		if n := t.shares(atom); n > 1 {
			if first < i {
				add(m.Atoms[first:i], bytes, Share{})
			}
			for k := range n {
				add(m.Atoms[i:i+1], size/int64(n), Share{k, n})
			}
			first, bytes = i+1, 0
			continue
		}
		if bytes += size; bytes >= least && rest >= least || rest == 0 {
			add(m.Atoms[first:i+1], bytes, Share{})
			first, bytes = i+1, 0
		}
	}
	if len(parts) == 1 {
		return []*Move{m}
	}
	for k, part := range parts {
		part.Part, part.Parts = int32(k), int32(len(parts))
	}
	return parts
}

// shares is how many shares an atom goes in; 1: it goes whole.
func (t *traffic) shares(atom int32) int32 {
	n := min(mostParts, t.g.AtomBytes(dag.AtomID(atom))/max(1, t.partBytes))
	if n < 2 {
		return 1
	}
	_, boxes := t.g.AtomBoxes([]int32{atom})
	rows := int64(rowsOf(boxes[0]).Len())
	for rows%n != 0 {
		n--
	}
	return int32(n)
}

// rowsOf is the range of a box along its first dimension that has several indices.
func rowsOf(box dag.Box) *dag.Range {
	for d := range box {
		if box[d].Len() > 1 {
			return &box[d]
		}
	}
	return &dag.Range{Hi: 1}
}

// boxes are the boxes of a move, in the shape of its storage's atoms.
func (pg *Graph) boxes(m *Move) []dag.Box {
	_, boxes := pg.Origin.AtomBoxes(m.Atoms)
	if m.Share.Of > 0 {
		rows := rowsOf(boxes[0])
		each := rows.Len() / int(m.Share.Of)
		rows.Lo += int(m.Share.Part) * each
		rows.Hi = rows.Lo + each
	}
	return boxes
}

// partName tells a part from the others of its move; empty for a whole one.
func (m *Move) partName() string {
	if m.Parts == 0 {
		return ""
	}
	return fmt.Sprintf(" as part %0*d of %d", len(fmt.Sprint(m.Parts)), m.Part+1, m.Parts)
}

// inShares lists the uses of shares of atoms by tasks and transfers. A task uses all shares of an atom.
// In each memory the first share of an atom has the atom's number, and the others have
// numbers beyond all atoms.
func (pg *Graph) inShares(body *dag.Body) *dag.Body {
	of := map[int32]int32{}      // by atom: its shares
	further := map[int32]int32{} // by atom: the number of its second share in the first memory
	next := int32(body.Atoms)
	memories := int32(len(pg.p.Memories))
	for _, m := range pg.moves {
		if m != nil && m.Share.Of > 0 && of[m.Atoms[0]] == 0 {
			of[m.Atoms[0]], further[m.Atoms[0]] = m.Share.Of, next
			next += memories * (m.Share.Of - 1)
		}
	}
	if len(of) == 0 {
		return body
	}
	cut := *body
	cut.Atoms = int(next)
	cut.Each = func(t dag.TaskID, use dag.Use) {
		m := pg.moves[t]
		body.Each(t, func(replica dag.BufferID, mode dag.Mode, atoms []int32, shift int32) {
			first := func(atom int32) int32 { // of the further shares in the replica's memory
				memory, _ := pg.replicas.memoryOf(replica)
				return further[atom] + int32(memory)*(of[atom]-1)
			}
			if m != nil && m.Share.Part > 0 {
				use(replica, mode, []int32{first(atoms[0]) + m.Share.Part - 1}, 0)
				return
			}
			use(replica, mode, atoms, shift)
			if m != nil && m.Share.Of > 0 {
				return
			}
			var others []int32
			for _, atom := range atoms {
				for k := range max(1, of[atom]) - 1 {
					others = append(others, first(atom)+k)
				}
			}
			use(replica, mode, others, 0)
		})
	}
	return &cut
}
