package place

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/platform/quantity"
	"dahl/schedule/layout"
)

// Where a memory cannot hold all that a step leaves in it, some contents leave it
// between two uses and come back before the second. The steps are:
//
//   - The order of the estimate becomes the order that gives the graph its meaning, and
//     so the sequence of uses in each memory.
//   - Whenever the memory is full, a walk along it drops the storage with the latest next use
//     (Belady, A study of replacement algorithms for a virtual-storage computer, IBM
//     Systems Journal 5(2), 1966). It knows the future because a step is like the next.
//   - Dropped contents with a later use go to the host memory once, as soon as they are written, unless another
//     transfer brings them there. They come back right before the next use, into a replica of their own.
//     So each replica lives for one residence,
//     and the layout can give its bytes to others.
//   - An item that takes room follows, by an edge, the items with room left before it in the walk.
//     Without these edges no order would let the replicas share bytes.
//
// A storage that keeps its contents from step to step is either in the memory all the
// time or comes there in every step: because it was chosen to leave, or because another memory
// writes it before it is read here. The walk gives the bytes of a storage that comes in every step to others, so the
// layout must do so too. A storage of several versions is there all the time, with all of them.
type spill struct {
	*traffic
	items   []stepItem
	memory  platform.MemoryID
	limit   int64
	touched [][]dag.BufferID // by item: the storages that it uses in the memory

	used []dag.BufferID // the storages with uses in the memory, the first of the graph first
	// By storage:
	visits  [][]visit
	bytes   []int64   // its size in the memory
	leaving [][]int32 // atoms that leave for home after the last step
	needs   [][]int32 // after each visit: how many atoms have contents that are used again
	streams []bool    // chosen to come back in every step
	dropped [][]bool  // after each visit

	set atomSet // empty between uses
}

// visit is the use of a storage in the memory by an item: the atoms read, and written.
type visit struct {
	item          int32
	reads, writes []int32
}

// spillMemory returns the items with the evictions and reloads of a memory. rows is a result of rowsUsed. streamed collects the storages that keep
// their contents and come there in every step.
func (t *traffic) spillMemory(items []stepItem, m platform.MemoryID, limit int64, rows usedRows, streamed map[string]bool) ([]stepItem, error) {
	if err := t.routesToHost(); err != nil {
		return nil, err
	}
	s := t.newSpill(items, m, limit, rows)
	if err := s.choose(); err != nil {
		return nil, err
	}
	t.enter = slices.DeleteFunc(t.enter, func(m *Move) bool { return m.To == s.memory && s.streams[m.Buffer] })
	t.leave = slices.DeleteFunc(t.leave, func(m *Move) bool { return m.From == s.memory && s.streams[m.Buffer] })
	for _, b := range s.used { // a storage with nothing to carry shares bytes anyhow
		if s.streams[b] || s.g.Carried(b) && !s.stays(b) {
			streamed[s.replicaName(location{b, m})] = true
		}
	}
	return s.rewrite(), nil
}

// newSpill finds the uses of storages in a memory.
func (t *traffic) newSpill(items []stepItem, m platform.MemoryID, limit int64, rows usedRows) *spill {
	n := len(t.g.Buffers)
	s := &spill{traffic: t, items: items, memory: m, limit: limit, touched: make([][]dag.BufferID, len(items)),
		visits: make([][]visit, n), bytes: make([]int64, n), leaving: make([][]int32, n), needs: make([][]int32, n),
		streams: make([]bool, n), dropped: make([][]bool, n), set: atomSet{at: make([]int32, t.g.NumAtoms())}}
	for i := range items {
		s.addVisits(int32(i))
	}
	for _, move := range t.leave {
		if move.From == m {
			s.leaving[move.Buffer] = append(s.leaving[move.Buffer], move.Atoms...)
		}
	}
	for b, visits := range s.visits {
		if len(visits) == 0 {
			continue
		}
		at := location{dag.BufferID(b), m}
		r, kept := rows.of(at)
		s.used, s.bytes[b] = append(s.used, at.storage), s.bytesOf(at, r, kept)
		s.needs[b], s.dropped[b] = make([]int32, len(visits)), make([]bool, len(visits))
		s.needed(at.storage, func(k int, atoms []int32) { s.needs[b][k] = int32(len(atoms)) })
	}
	return s
}

// routesToHost refuses a platform without routes between some memory and the host memory of its node, where evicted contents go.
func (t *traffic) routesToHost() error {
	p := t.p
	for m := range p.Memories {
		host := p.HostOf(platform.MemoryID(m))
		for _, pair := range [][2]platform.MemoryID{{platform.MemoryID(m), host}, {host, platform.MemoryID(m)}} {
			if _, ok := p.Route(pair[0], pair[1]); !ok {
				return fmt.Errorf("contents would have to leave a memory, and platform %q has no route from memory %q to %q", p.Name, p.Memories[pair[0]].Name, p.Memories[pair[1]].Name)
			}
		}
	}
	return nil
}

// addVisits notes the uses of an item.
func (s *spill) addVisits(i int32) {
	g, item := s.g, &s.items[i]
	if m := item.move; m != nil {
		if m.From == s.memory {
			s.visit(i, m.Buffer).reads = m.Atoms
		} else if m.To == s.memory {
			s.visit(i, m.Buffer).writes = m.Atoms
		}
		return
	}
	if s.memoryOf(item.task) != s.memory {
		return
	}
	for k, a := range g.Tasks[item.task].Accesses {
		v := s.visit(i, g.Storage(a.Buffer))
		atoms := g.Atoms(item.task, k)
		if a.Mode.Reads() {
			v.reads = append(v.reads[:len(v.reads):len(v.reads)], atoms...)
		}
		if a.Mode.Writes() {
			v.writes = append(v.writes[:len(v.writes):len(v.writes)], atoms...)
		}
	}
}

// visit is the visit of a storage by an item, the last one so far.
func (s *spill) visit(i int32, b dag.BufferID) *visit {
	list := s.visits[b]
	if n := len(list); n == 0 || list[n-1].item != i {
		list = append(list, visit{item: i})
		s.visits[b], s.touched[i] = list, append(s.touched[i], b)
	}
	return &list[len(list)-1]
}

// needed finds, for each gap between the visits of a storage, the one across the end of
// the step included, the atoms that are read next, before they are written, in any order. What leaves
// for home after the last step counts as read at the end of the step. The last gap comes first.
func (s *spill) needed(b dag.BufferID, gap func(after int, atoms []int32)) {
	visits := s.visits[b]
	n := len(visits)
	for j := 2*n - 1; j >= 0; j-- {
		if j%n == n-1 {
			s.set.add(s.leaving[b])
		}
		if j < n {
			gap(j, s.set.atoms)
		}
		s.set.remove(visits[j%n].writes)
		s.set.add(visits[j%n].reads)
	}
	s.set.clear()
}

// stays reports whether a storage is in the memory all the time. It is if it is at home here, or if the next step
// needs its contents and it was not chosen to leave.
func (s *spill) stays(b dag.BufferID) bool {
	return s.homes[b] == s.memory || s.g.Versions(b) > 1 || s.kept(b) && !s.streams[b]
}

// kept reports whether the next step needs contents of a storage.
func (s *spill) kept(b dag.BufferID) bool { return s.needs[b][len(s.needs[b])-1] > 0 }

// bytesOf is the size of a storage in the memory, with some rows of it kept or all.
func (s *spill) bytesOf(at location, rows dag.Range, kept bool) int64 {
	buf := &s.g.Buffers[at.storage]
	bytes := buf.Bytes()
	if kept {
		bytes = bytes / int64(buf.Shape[rowDimension(buf.Shape)]) * int64(rows.Len())
	}
	return layout.Align(bytes) * int64(s.versionsIn(at))
}

// choose walks along the items until it finds no further storage that has to come back
// in every step.
func (s *spill) choose() error {
	for {
		found, err := s.walk()
		if err != nil || !found {
			return err
		}
	}
}

// tooLarge is the error of an item whose operands do not fit by themselves.
func (s *spill) tooLarge(i int, live int64) error {
	what := "the transfers at task "
	task := s.items[i].task
	if m := s.items[i].move; m != nil {
		task = m.For
	} else {
		what = "task "
	}
	mem := &s.p.Memories[s.memory]
	return &RoomError{mem.Name, fmt.Sprintf("%s%q: its operands and what cannot leave memory %q need %s of the %s that the memory has for them",
		what, s.g.Tasks[task].Name, mem.Name, quantity.ShortBytes(live), quantity.ShortBytes(max(0, s.limit)))}
}

// inOrder sorts the items as their tasks started, and puts moves to a host right behind their writers. So the
// contents are there for every later use.
func inOrder(items []stepItem, started []dag.TaskID, p *platform.Platform) []stepItem {
	toHost := map[dag.TaskID][]stepItem{}
	for _, item := range items {
		if item.move != nil && p.IsHost(item.move.To) {
			toHost[item.move.Writer] = append(toHost[item.move.Writer], item)
		}
	}
	sorted := make([]stepItem, 0, len(items))
	for _, t := range started {
		item := items[t]
		if item.move != nil && p.IsHost(item.move.To) {
			continue
		}
		sorted = append(sorted, item)
		if item.move == nil {
			sorted = append(sorted, toHost[item.task]...)
		}
	}
	return sorted
}
