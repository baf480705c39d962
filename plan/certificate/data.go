package certificate

import (
	"cmp"
	"math"
	"slices"

	"dahl/dag"
	"dahl/plan/problem"
	"dahl/platform"
)

// addData finds the order of tasks, the data between them, and the contents that memories must get. In a steady step what
// no task writes is where it has to be.
func (m *Model) addData(g *dag.Graph, p *platform.Platform) error {
	data, err := problem.NewData(p, g, m.Steady)
	if err != nil {
		return err
	}
	bytes, n := map[edgeKey]int64{}, int32(len(g.Tasks))
	for i := range data.Pieces {
		of := &data.Pieces[i]
		v := Version{Writer: of.Writer, Home: -1, Bytes: of.Bytes, storage: int32(of.Storage)}
		if of.Writer == n {
			v.Writer, v.Home = -1, int(of.Home)
		}
		for _, r := range of.Readers {
			v.Readers = append(v.Readers, r.Of)
			if of.Writer < n {
				bytes[edgeKey{of.Writer, r.Of, r.Back}] += of.Bytes
			}
		}
		if slices.Sort(v.Readers); v.Writer >= 0 || !m.Steady {
			v.Readers = slices.Compact(v.Readers)
			m.Versions = append(m.Versions, v)
		}
	}
	follows := func(before []int32, t, back int32) {
		for _, other := range before {
			bytes[edgeKey{other, t, back}] += 0
		}
	}
	for t := range n { // orders of reuse between steps are left out, since a plan may have more copies of a buffer
		follows(g.Preds(dag.TaskID(t)), t, 0)
		if m.Steady {
			follows(g.CarriedPreds(dag.TaskID(t)), t, 1)
		}
	}
	nanos := map[int64][]int64{} // by bytes
	for e, bytes := range bytes {
		if nanos[bytes] == nil {
			for at := range p.Memories {
				nanos[bytes] = append(nanos[bytes], leastNanos(p, platform.MemoryID(at), bytes))
			}
		}
		m.Edges = append(m.Edges, Edge{From: e.from, To: e.to, Back: e.back, Bytes: bytes, Nanos: nanos[bytes]})
	}
	slices.SortFunc(m.Edges, func(a, b Edge) int { return compareEdges(&a, &b) })
	m.mergeVersions(p)
	return nil
}

type edgeKey struct{ from, to, back int32 }

func compareEdges(a, b *Edge) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Back, b.Back))
}

// mergeVersions makes one of all versions with the same writer, home and readers: they go together. It finds how long they move
// while it knows of which storage each is.
func (m *Model) mergeVersions(p *platform.Platform) {
	slices.SortStableFunc(m.Versions, func(a, b Version) int {
		return cmp.Or(cmp.Compare(a.Writer, b.Writer), cmp.Compare(a.Home, b.Home), slices.Compare(a.Readers, b.Readers), cmp.Compare(a.storage, b.storage))
	})
	m.mergeIf(func(a, b *Version) bool { return a.storage == b.storage })
	m.addNanos(p)
	m.mergeIf(func(a, b *Version) bool { return true })
}

// mergeIf merges versions that follow each other, where something else is the same as well.
func (m *Model) mergeIf(same func(a, b *Version) bool) {
	kept := m.Versions[:0]
	for _, v := range m.Versions {
		if n := len(kept); n > 0 && kept[n-1].Writer == v.Writer && kept[n-1].Home == v.Home && slices.Equal(kept[n-1].Readers, v.Readers) && same(&kept[n-1], &v) {
			kept[n-1].Bytes += v.Bytes
			for at, nanos := range v.Nanos {
				kept[n-1].Nanos[at] += nanos
			}
			continue
		}
		kept = append(kept, v)
	}
	m.Versions = kept
}

// leastNanos is how long bytes take at least into a memory from any other. They may go in parts at one
// time, so that only links that flows share hold them up.
func leastNanos(p *platform.Platform, to platform.MemoryID, bytes int64) int64 {
	least := int64(platform.Unreachable)
	for from := range p.Memories {
		from := platform.MemoryID(from)
		if _, ok := p.Route(from, to); !ok || from == to {
			continue
		}
		least = min(least, int64(p.RouteTime(from, to, 0))+int64(heldUp(p, from, to, bytes)))
	}
	return least
}

// heldUp is for how many nanoseconds the slowest link that flows share holds up bytes on a route.
func heldUp(p *platform.Platform, from, to platform.MemoryID, bytes int64) (nanos float64) {
	for _, use := range p.LinkUses(from, to) {
		if l := &p.Links[use.Link]; l.Sharing != platform.Fatpipe {
			nanos = max(nanos, below(float64(bytes)*float64(use.Times)/l.BandwidthBytesPerSec*1e9))
		}
	}
	return nanos
}

// nanosPerByte is how long a byte keeps an engine of a memory at least on its way there.
func nanosPerByte(p *platform.Platform, to platform.MemoryID) float64 {
	least := math.Inf(1)
	for from := range p.Memories {
		from := platform.MemoryID(from)
		if _, ok := p.Route(from, to); !ok || from == to {
			continue
		}
		least = min(least, heldUp(p, from, to, 1))
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// addNanos finds how long copies of versions keep an engine. What a task has written of a storage moves at once into a memory,
// so that no more than one version of both surely has a copy of its own, and the others only take the time of their bytes. A
// row that takes any one version with most readers for the copy of its own holds, and so does the mean of these rows.
func (m *Model) addNanos(p *platform.Platform) {
	type made struct{ writer, storage int32 }
	most, leaders := map[made]int{}, map[made]int{} // the most readers of a version, and the number of versions with that many
	for i := range m.Versions {
		v := &m.Versions[i]
		switch by, n := (made{v.Writer, v.storage}), len(v.Readers); {
		case n > most[by]:
			most[by], leaders[by] = n, 1
		case n == most[by]:
			leaders[by]++
		}
	}
	perByte := make([]float64, len(p.Memories))
	for at := range perByte {
		perByte[at] = nanosPerByte(p, platform.MemoryID(at))
	}
	const exact = 1024 // parts of a nanosecond, which add up to the same in any order
	for i := range m.Versions {
		v := &m.Versions[i]
		by := made{v.Writer, v.storage}
		v.Nanos = make([]float64, len(p.Memories))
		for at := range p.Memories {
			nanos := below(float64(float64(v.Bytes) * perByte[at]))
			if len(v.Readers) == most[by] {
				nanos += max(0, float64(leastNanos(p, platform.MemoryID(at), v.Bytes))-nanos) / float64(leaders[by])
			}
			v.Nanos[at] = math.Floor(below(nanos)*exact) / exact
		}
	}
}
