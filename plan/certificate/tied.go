package certificate

import (
	"math"
	"slices"

	"dahl/platform"
	"dahl/schedule"
)

// How long a step takes at least where links limit what crosses the edges of parts of a cluster: each node, and blocks of
// nodes. What a task reads of another one crosses the edge of both parts once a step, if they run in two parts.
//
// In a step of some length an edge carries no more than its bandwidth times the length. Two tasks are tied if more bytes go from
// one to the other: they run in one part. So all tasks that are tied to each other are a group in one part, and groups are tied if more bytes go from
// one group to the other, each version counted once. Where a group has more work than the units of each part have time for in that length,
// no step is so short. Longer steps have fewer ties, so that the longest such length is found by halving.
//
// An example. Two nodes of one unit each, with 10 bytes per ns between them. Task a of 30 ns is followed by b of 20 and c of 25, each of which reads
// 400 bytes of it. By work a step takes 75/2 ns. Below 40 ns all three run on one node, where they take 75 ns. With a and b on
// one node and c on the other it takes 50 ns. The longest whole length that no step has is 39 ns.
//
// Equal parts need such a row, since no inequality of shares knows edges between them: a plan with all tasks in one part, and the same plan
// in each other part, have a mean in which every task has the same share in every part. Nothing crosses an edge in this mean, and all units have equal work.

// parting is a way to part the memories.
type parting struct {
	part    []int32   // by memory
	in, out []float64 // by part: the most bytes per nanosecond over its edge
}

// partingsOf are the partings of a cluster by nodes and by blocks of nodes.
func partingsOf(p *platform.Platform) (all []parting) {
	for _, part := range schedule.Partitions(p)[1:] { // the first one is by memories
		in, out, _ := p.CutRates(part, int(slices.Max(part))+1)
		for i := range in {
			in[i], out[i] = above(in[i]/1e9), above(out[i]/1e9)
		}
		all = append(all, parting{part, in, out})
	}
	return all
}

// tiedLeast is the bound of all partings.
func (m *Model) tiedLeast() int64 {
	if *m.tied < 0 {
		*m.tied = 0
		if len(m.Tasks) <= mostPooled {
			nanos := m.nanosByDevice()
			for i := range m.partings {
				*m.tied = max(*m.tied, m.newTies(&m.partings[i], nanos).least())
			}
		}
	}
	return *m.tied
}

// nanosByDevice is the least time of each task on each device; infinite where it cannot run.
func (m *Model) nanosByDevice() [][]float64 {
	nanos := make([][]float64, len(m.Devices))
	for d := range nanos {
		nanos[d] = slices.Repeat([]float64{math.Inf(1)}, len(m.Tasks))
	}
	for t := range m.Tasks {
		for _, o := range m.Tasks[t].Options {
			nanos[o.Device][t] = min(nanos[o.Device][t], float64(o.Nanos))
		}
	}
	return nanos
}

// ties looks for groups of tasks in one parting.
type ties struct {
	*Model
	parts  []tiedPart // those that differ
	rate   float64    // the most bytes per nanosecond from one part to another
	leader []int32    // by task: another one of its group, or itself
}

// tiedPart has the times of tasks in a part. Devices of a part have weights, by which its units have so much time per nanosecond.
type tiedPart struct {
	units [2]float64
	nanos [2][]float64 // by task: the least over the devices; infinite where none runs it
}

func (m *Model) newTies(by *parting, nanos [][]float64) *ties {
	s := &ties{Model: m, leader: make([]int32, len(m.Tasks))}
	devices := make([][]int, len(by.in))
	for d := range m.Devices {
		part := by.part[m.Devices[d].Memory]
		devices[part] = append(devices[part], d)
	}
	in, out, used := 0.0, 0.0, 0
	for i, list := range devices {
		if len(list) == 0 {
			continue
		}
		in, out, used = max(in, by.in[i]), max(out, by.out[i]), used+1
		part := m.tiedPart(list, nanos)
		if !slices.ContainsFunc(s.parts, func(is tiedPart) bool {
			return is.units == part.units && slices.Equal(is.nanos[0], part.nanos[0]) && slices.Equal(is.nanos[1], part.nanos[1])
		}) {
			s.parts = append(s.parts, part)
		}
	}
	if s.rate = min(in, out); used < 2 {
		s.rate = math.Inf(1)
	}
	return s
}

// tiedPart gives all devices the same weight, and then each one by how long it would take for the tasks that can run on all.
func (m *Model) tiedPart(devices []int, nanos [][]float64) (part tiedPart) {
	total := make([]float64, len(devices))
	for t := range m.Tasks {
		if !slices.ContainsFunc(devices, func(d int) bool { return math.IsInf(nanos[d][t], 1) }) {
			for k, d := range devices {
				total[k] += nanos[d][t]
			}
		}
	}
	for by := range part.units {
		part.nanos[by] = slices.Repeat([]float64{math.Inf(1)}, len(m.Tasks))
		for k, d := range devices {
			weight := 1.0
			if by == 1 && total[k] > 0 {
				weight = total[0] / total[k]
			}
			part.units[by] += float64(weight * float64(m.Devices[d].Units))
			for t, least := range nanos[d] {
				part.nanos[by][t] = min(part.nanos[by][t], weight*least)
			}
		}
	}
	return part
}

// least is the longest length that no step has, with an error of a thousandth.
func (s *ties) least() int64 {
	bytes := 0.0
	for v := range s.Versions {
		bytes += float64(s.Versions[v].Bytes)
	}
	least, most := int64(0), int64(min(bytes/s.rate, mostLength))
	for most-least > least/1000 {
		if length := (least + most + 1) / 2; s.refutes(float64(length)) {
			least = length
		} else {
			most = length - 1
		}
	}
	return least
}

// refutes reports whether no step takes at most some nanoseconds.
func (s *ties) refutes(length float64) bool {
	for t := range s.leader {
		s.leader[t] = int32(t)
	}
	for s.tie(above(length * s.rate)) {
	}
	group := make([]float64, len(s.leader)) // by leader: what it takes at least
	for i := range group {
		group[i] = math.Inf(1)
	}
	for i := range s.parts {
		part := &s.parts[i]
		for t, nanos := range s.nanosIn(part) {
			group[t] = min(group[t], nanos)
		}
	}
	return below(slices.Max(group)) > length
}

// nanosIn is by leader how long its group takes in a part, the greater of both weights; zero where it leads none.
func (s *ties) nanosIn(part *tiedPart) []float64 {
	nanos := make([]float64, len(s.leader))
	for by := range part.units {
		sums := make([]float64, len(s.leader))
		for t := range s.leader {
			sums[s.lead(int32(t))] += part.nanos[by][t]
		}
		for t, sum := range sums {
			nanos[t] = max(nanos[t], sum/part.units[by])
		}
	}
	return nanos
}

// tie ties groups of which one gets more than some bytes from the other, and reports whether there are any.
func (s *ties) tie(most float64) (any bool) {
	type move struct{ from, to int32 }
	bytes, counted := map[move]int64{}, slices.Repeat([]int{-1}, len(s.leader))
	for v := range s.Versions {
		of := &s.Versions[v]
		if of.Writer < 0 {
			continue
		}
		from := s.lead(of.Writer)
		counted[from] = v
		for _, t := range of.Readers {
			if to := s.lead(t); counted[to] != v {
				counted[to] = v
				bytes[move{from, to}] += of.Bytes
			}
		}
	}
	for m, sum := range bytes {
		if float64(sum) > most {
			a, b := s.lead(m.from), s.lead(m.to)
			s.leader[max(a, b)], any = min(a, b), true
		}
	}
	return any
}

// lead is the first task of a group.
func (s *ties) lead(t int32) int32 {
	for s.leader[t] != t {
		s.leader[t] = s.leader[s.leader[t]]
		t = s.leader[t]
	}
	return t
}
