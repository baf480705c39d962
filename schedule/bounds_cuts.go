package schedule

import (
	"cmp"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
)

// Theory. A task that can only run in some part of the memories, as in one node, has to get its operands there. Contents from a task elsewhere
// cross the edge of the part at least once, however they go, whoever passes them on, and for however many readers. So bytes over the
// bandwidth at the edge ([platform.Platform.CutRates]) are a bound, and the largest one over many parts counts: each memory, each node,
// and blocks of nodes in a row, whose edges are uplinks of switches, or a bisection.
// Contents that nobody has written in the steps count nothing: the host of each node may have them.

// cutTimes are nanoseconds below which nothing gets over an edge: in each step, and from each step to the next.
type cutTimes struct{ inStep, toNext float64 }

// over is the bound for some steps.
func (c cutTimes) over(steps float64) float64 {
	return float64(c.inStep*steps) + float64(c.toNext*max(0, steps-1))
}

// CrossingTime is a time that no steady step of a graph, or no step alone, goes below, for the moves between memories.
func (c *Priced) CrossingTime(graph int, steady bool) (least time.Duration) {
	for _, cut := range c.bounds[graph]().cuts {
		ns := cut.inStep
		if steady {
			ns += cut.toNext
		}
		least = max(least, surely(ns))
	}
	return least
}

// reading is the contents of an atom after a task has written it, for a class of readers.
type reading struct {
	atom, writer, class int32
	next                bool // in the step after the writer's
}

// crossings finds what has to cross the edges of parts.
func crossings(g *dag.Graph, p *platform.Platform, fit *Fit) (times []cutTimes) {
	if len(p.Memories) < 2 {
		return nil
	}
	nodes := fit.partsOf(nodesOf(p)) // what can run at several nodes, or is in one memory with all it reads, crosses nothing
	memories := fit.partsOf(eachMemory(p))
	var readings []reading
	place.EachReading(g, func(writer int32, reader dag.TaskID, atom int32, next bool) {
		if int(writer) == len(g.Tasks) {
			return
		}
		from, to := fit.class[writer], fit.class[reader]
		if from != to && nodes[from] >= 0 && nodes[to] >= 0 && (memories[from] < 0 || memories[from] != memories[to]) {
			readings = append(readings, reading{atom, writer, to, next})
		}
	})
	if len(readings) == 0 {
		return nil
	}
	slices.SortFunc(readings, func(a, b reading) int {
		return cmp.Or(cmp.Compare(a.atom, b.atom), cmp.Compare(a.writer, b.writer), cmp.Compare(a.class, b.class), compareSteps(a.next, b.next))
	})
	readings = slices.CompactFunc(readings, func(a, b reading) bool { a.next, b.next = false, false; return a == b })
	for _, part := range Partitions(p) {
		times = append(times, crossingsOf(g, p, part, fit.partsOf(part), fit.class, readings)...)
	}
	return times
}

func compareSteps(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// crossed is the bytes over the edge of a part, in and out: in each step, and from each step to the next.
type crossed struct{ in, out [2]float64 }

// crossingsOf adds up what crosses the edges of the parts of one partition.
func crossingsOf(g *dag.Graph, p *platform.Platform, part, partOfClass, class []int32, readings []reading) (times []cutTimes) {
	parts := int(slices.Max(part)) + 1
	bytes := make([]crossed, parts)
	for first := 0; first < len(readings); {
		r := readings[first]
		end := first
		var inStep, toNext []int32 // parts that read it
		for ; end < len(readings) && readings[end].atom == r.atom && readings[end].writer == r.writer; end++ {
			if to := partOfClass[readings[end].class]; readings[end].next {
				toNext = append(toNext, to)
			} else {
				inStep = append(inStep, to)
			}
		}
		first = end
		from, size := partOfClass[class[r.writer]], float64(g.AtomBytes(dag.AtomID(r.atom)))
		if from < 0 {
			continue
		}
		left := false
		for when, readers := range [][]int32{inStep, toNext} {
			slices.Sort(readers)
			for _, to := range slices.Compact(readers) {
				if to < 0 || to == from || when == 1 && slices.Contains(inStep, to) {
					continue
				}
				bytes[to].in[when] += size
				if !left {
					bytes[from].out[when] += size
					left = true
				}
			}
		}
	}
	in, out, both := p.CutRates(part, parts)
	add := func(bytes [2]float64, rate float64) {
		if rate > 0 && bytes[0]+bytes[1] > 0 {
			times = append(times, cutTimes{bytes[0] / rate * 1e9, bytes[1] / rate * 1e9})
		}
	}
	for i := range bytes {
		b := &bytes[i]
		add(b.in, in[i])
		add(b.out, out[i])
		add([2]float64{b.in[0] + b.out[0], b.in[1] + b.out[1]}, both[i])
	}
	return times
}

// Partitions are the ways to part the memories of which bounds are made: by memories, by nodes, and by blocks of nodes.
func Partitions(p *platform.Platform) [][]int32 {
	all := [][]int32{eachMemory(p)}
	nodes := len(p.Nodes)
	for size := 1; size < nodes; size++ {
		if nodes%size == 0 || size == (nodes+1)/2 {
			part := nodesOf(p)
			for m := range part {
				part[m] /= int32(size)
			}
			all = append(all, part)
		}
	}
	return all
}

func eachMemory(p *platform.Platform) (part []int32) {
	for m := range p.Memories {
		part = append(part, int32(m))
	}
	return part
}

func nodesOf(p *platform.Platform) (part []int32) {
	for m := range p.Memories {
		part = append(part, int32(p.NodeOf(platform.MemoryID(m))))
	}
	return part
}

// partsOf is the part of the memories in which all workers of each class are; -1 where they are in several.
func (e *Fit) partsOf(part []int32) (of []int32) {
	for _, workers := range e.workers {
		all := int32(-1)
		for i, w := range workers {
			is := part[e.p.Platform.Devices[e.p.Platform.Workers[w].Device].Memory]
			if i > 0 && is != all {
				all = -1
				break
			}
			all = is
		}
		of = append(of, all)
	}
	return of
}
