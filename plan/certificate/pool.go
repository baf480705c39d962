package certificate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// How long tasks take at least on equal units, whatever their order. A pool is tasks that each keep one of its units for some
// time, with an order between some of them. On devices that differ, every unit is
// taken for as good as any, and a task takes its least time.
//
// The head of a task is a time before its start, its tail a time after its end.
// [pool.least] finds heads from the first task to the last, each from the tasks before it: among those, the
// tail of one is the longest chain from its end to the task. Then tails alike, and from both the
// length of all. A length is found from jobs with heads r, times p and tails q, on m units, as the greatest of
//
//   - area: any m jobs or more of which none has a head below α or a tail below β. The first job of a unit
//     has one of the heads and the last one of the tails, so m·length ≥ the m least r + Σ p + the m least q
//   - packing: of k·m + 1 such jobs one unit runs k + 1. So length ≥ α + the k + 1 least p + β
//
// An example. Four tasks of 5 ns on three units: the area is 20/3, so 7 ns. Packing: of 1·3 + 1 tasks
// one unit runs two, so 10 ns.
//
// Source: Carlier, The one-machine sequencing problem, 1982, and with Néron on m machines, EJOR 2000.
type pool struct {
	units         int
	nanos         []int64
	before, after [][]int32 // by task: direct predecessors and successors; lower numbers come first
}

const (
	// mostPooled is how many tasks a pool may have.
	mostPooled = 2000
	// mostLooks is how often a pool looks at a job before areas from the least head have to do. Equal
	// tasks, of which most pools are, are looked at once.
	mostLooks = 30_000_000
)

// job is a task of a pool, with its head and tail.
type job struct{ head, nanos, tail int64 }

// least is a time that the pool takes at least; 0 when ctx ends before it is found.
func (p *pool) least(ctx context.Context) int64 {
	n := len(p.nanos)
	l := &lengths{ctx: ctx, units: p.units, known: map[[sha256.Size]byte]int64{}, looks: mostLooks}
	heads := p.heads(l)
	back := pool{nanos: slices.Clone(p.nanos), before: turned(p.after)}
	slices.Reverse(back.nanos)
	tails := back.heads(l)
	jobs := make([]job, n)
	for t := range jobs {
		jobs[t] = job{heads[t], p.nanos[t], tails[n-1-t]}
	}
	least := l.leastLength(jobs)
	if ctx.Err() != nil {
		return 0
	}
	return least
}

// turned are lists of tasks by task, with all numbers counted from the last.
func turned(lists [][]int32) [][]int32 {
	turned := make([][]int32, len(lists))
	last := int32(len(lists) - 1)
	for t, list := range lists {
		for _, u := range list {
			turned[last-int32(t)] = append(turned[last-int32(t)], last-u)
		}
	}
	return turned
}

// heads finds the head of each task.
func (p *pool) heads(l *lengths) []int64 {
	heads := make([]int64, len(p.nanos))
	var jobs []job
	way := make([]int64, len(p.nanos)) // by task: from its end to the start of the one that is looked at; -1 means it is not before it
	for t := range heads {
		if l.ctx.Err() != nil {
			break
		}
		jobs = jobs[:0]
		for u := range way[:t] {
			way[u] = -1
		}
		for _, u := range p.before[t] {
			way[u] = 0
		}
		for u := t - 1; u >= 0; u-- {
			if way[u] < 0 {
				continue
			}
			jobs = append(jobs, job{heads[u], p.nanos[u], way[u]})
			for _, v := range p.before[u] {
				way[v] = max(way[v], way[u]+p.nanos[u])
			}
		}
		heads[t] = l.leastLength(jobs)
	}
	return heads
}

// lengths finds the least time of jobs on a number of units.
type lengths struct {
	ctx   context.Context
	units int
	known map[[sha256.Size]byte]int64 // by hash of the jobs
	looks int                         // that are left
}

// leastLength is a lower bound of the makespan of the jobs. It sorts them, the greatest tail first.
func (l *lengths) leastLength(jobs []job) int64 {
	slices.SortFunc(jobs, func(a, b job) int {
		return cmp.Or(cmp.Compare(b.tail, a.tail), cmp.Compare(a.head, b.head), cmp.Compare(a.nanos, b.nanos))
	})
	text := make([]byte, 0, 24*len(jobs))
	for _, j := range jobs {
		for _, nanos := range [...]int64{j.head, j.nanos, j.tail} {
			text = binary.LittleEndian.AppendUint64(text, uint64(nanos))
		}
	}
	key := sha256.Sum256(text)
	least, ok := l.known[key]
	if !ok {
		least = l.find(jobs)
		l.known[key] = least
	}
	return least
}

// find finds what jobs take at least, if the greatest tail comes first.
func (l *lengths) find(jobs []job) int64 {
	heads := make([]int64, len(jobs))
	least := int64(0)
	for i, j := range jobs {
		heads[i] = j.head
		least = max(least, j.head+j.nanos+j.tail)
	}
	slices.Sort(heads)
	s := subset{units: l.units}
	for i, head := range slices.Compact(heads) {
		if l.looks -= len(jobs); i == 0 || l.looks > 0 && l.ctx.Err() == nil {
			least = max(least, s.least(jobs, head))
		}
	}
	return least
}

// subset is the jobs of one after the other least tail, none of which has a head below some.
type subset struct {
	units        int
	heads, nanos []int64 // the heads that are least, as many as units, and all times; least and greatest first
	tails        []int64
}

// least returns the bound by area and packing, for the jobs with heads of at least some time.
func (s *subset) least(jobs []job, head int64) (least int64) {
	s.heads, s.nanos, s.tails = s.heads[:0], s.nanos[:0], s.tails[:0]
	units := int64(s.units)
	sum, work := int64(0), int64(0) // of times and of the least heads and tails, and of times alone
	for i, j := range jobs {
		if j.head < head {
			continue
		}
		sum, work = sum+j.nanos+j.head+j.tail, work+j.nanos
		at, _ := slices.BinarySearch(s.heads, j.head)
		s.heads = slices.Insert(s.heads, at, j.head)
		s.tails = append(s.tails, j.tail)
		if n := len(s.tails); n > s.units {
			sum -= s.heads[s.units] + s.tails[n-s.units-1]
			s.heads = s.heads[:s.units]
		}
		if len(s.tails) >= s.units {
			least = max(least, (sum+units-1)/units)
		}
		at, _ = slices.BinarySearchFunc(s.nanos, j.nanos, func(a, b int64) int { return cmp.Compare(b, a) })
		s.nanos = slices.Insert(s.nanos, at, j.nanos)
		// A unit that takes jobs one after the other as it becomes free ends with no more than its share of the work and the longest of them.
		if (i+1 == len(jobs) || jobs[i+1].tail < j.tail) && head+work/units+s.nanos[0]+j.tail > least {
			least = max(least, head+s.packed()+j.tail)
		}
	}
	return least
}

// packed returns the least work of the busiest unit: of k units and one job more, the shortest k+1 that one of them has at least.
func (s *subset) packed() (most int64) {
	sum, first, next := int64(0), 0, 0
	for k := 1; k*s.units < len(s.nanos); k++ {
		for ; next <= k*s.units; next++ {
			sum += s.nanos[next]
		}
		for ; first < k*(s.units-1); first++ {
			sum -= s.nanos[first]
		}
		most = max(most, sum)
	}
	return most
}

// least is how long all tasks take at least. It is 0 where there are too many.
func (m *Model) least() int64 {
	if *m.pooled > 0 || len(m.Tasks) > mostPooled {
		return *m.pooled
	}
	p := &pool{units: m.units(), before: m.before[0], after: m.after[0]}
	for t := range m.Tasks {
		p.nanos = append(p.nanos, m.LeastNanos(int32(t)))
	}
	*m.pooled = p.least(cmp.Or(m.Context, context.Background()))
	return *m.pooled
}

// units adds up the units of all devices.
func (m *Model) units() (n int) {
	for d := range m.Devices {
		n += m.Devices[d].Units
	}
	return n
}

// LeastNanos is the least time for which a task keeps a unit.
func (m *Model) LeastNanos(t int32) int64 {
	options := m.Tasks[t].Options
	least := options[0].Nanos
	for _, o := range options[1:] {
		least = min(least, o.Nanos)
	}
	return least
}
