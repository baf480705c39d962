package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/ready"
)

// HEFT plans where each task ends first, by upward rank. Package train plans by it where nobody names a policy.
var HEFT = New(schedule.Doc{
	Name:     "heft",
	Sentence: "tasks by upward rank, each into the earliest gap in which it can end first; planned once, then replayed",
	Paper:    "H. Topcuoglu, S. Hariri, M.-Y. Wu, IEEE Transactions on Parallel and Distributed Systems 13(3), 2002",
}, func(p *schedule.Problem) (*schedule.Plan, error) { return byRank(p, nil, nil) })

// byRank plans one step with the heterogeneous earliest finish time heuristic.
//
// Theory. Let w(t) be the mean duration of t over the workers that can run it. Let c(s,t) be
// the mean time to move the bytes that s writes and t reads, over all ordered pairs of distinct
// workers. The upward rank is
//
//	rank(t) = w(t) + max over successors s of (c(t,s) + rank(s))
//
// Tasks are placed in the order of decreasing rank, each on the worker on which it ends first.
// A task can start on worker p when its operands are there,
//
//	ready(t,p) = max over predecessors s of (end(s) + time to move from s's worker to p)
//
// and it takes the first gap on p that is long enough. Depth, then name, breaks ties of rank;
// the index of the worker breaks ties of end. Operands whose home is another memory move from
// time 0 on.
//
// Two points differ from the paper or the machine. Where devices say how many copy engines they
// have, transfers wait for an engine ([heftTransfers]); the paper knows no engines, and links count
// as free. The delay until a worker learns that its task is ready ([schedule.Pace]) does not count: plans
// that counted it were better on one platform and worse on another.
//
// Topcuoglu, Hariri, Wu, Performance-effective and low-complexity task scheduling
// for heterogeneous computing, IEEE TPDS 13(3), 2002.
//
// Tasks go to the workers that may have them, if some can run them. Nil means anywhere.
//
// Levels come before ranks: tasks of a lower level are placed before, and no task starts on a worker before the end of all tasks of lower levels
// there. No task has a lower level than one before it. Nil means one level.
func byRank(p *schedule.Problem, may func(dag.TaskID, platform.WorkerID) bool, levels []int32) (*schedule.Plan, error) {
	fit, err := schedule.NewFit(p)
	if err != nil {
		return nil, err
	}
	sorted, stuck := ready.Sort(p.Graph.Links, p.Reuse, nil)
	if stuck >= 0 {
		return nil, fmt.Errorf("the reuse of memory contradicts the dependences: task %q could never start", p.Graph.Tasks[stuck].Name)
	}
	h := newHEFT(p, fit)
	h.may = may
	order := h.ranked(sorted)
	if levels != nil {
		slices.SortStableFunc(order, func(a, b dag.TaskID) int { return cmp.Compare(levels[a], levels[b]) })
	}
	for i, t := range order {
		if levels != nil && i > 0 && levels[t] != levels[order[i-1]] {
			copy(h.floor, h.last)
		}
		if err := h.place(t); err != nil {
			return nil, err
		}
	}
	return h.plan(), nil
}

type heft struct {
	p         *schedule.Problem
	fit       *schedule.Fit
	may       func(dag.TaskID, platform.WorkerID) bool
	reuse     dag.Rows // predecessors by Problem.Reuse
	transfers *heftTransfers
	memoryOf  []platform.MemoryID // by worker
	ready     []readyIn           // by memory, for the task at hand

	worker    []platform.WorkerID // by task
	end       []time.Duration     // by task
	timelines []timeline          // by worker

	floor, last []time.Duration // by worker: the end of all tasks of lower levels, and of all
}

// readyIn is the time from which a task can start in a memory.
type readyIn struct {
	at        time.Duration
	known, ok bool // ok: there are routes for its operands
}

func newHEFT(p *schedule.Problem, fit *schedule.Fit) *heft {
	n := len(p.Graph.Tasks)
	memoryOf := make([]platform.MemoryID, len(p.Platform.Workers))
	for w := range memoryOf {
		memoryOf[w] = p.Platform.MemoryOf(platform.WorkerID(w))
	}
	return &heft{p: p, memoryOf: memoryOf, fit: fit, reuse: dag.NewRows(n, dag.Turn(p.Reuse)),
		transfers: newHEFTTransfers(p), ready: make([]readyIn, len(p.Platform.Memories)),
		worker: make([]platform.WorkerID, n), end: make([]time.Duration, n), timelines: make([]timeline, len(p.Platform.Workers)),
		floor: make([]time.Duration, len(p.Platform.Workers)), last: make([]time.Duration, len(p.Platform.Workers))}
}

// ranked orders the tasks by upward rank; sorted is a topological order.
func (h *heft) ranked(sorted []dag.TaskID) []dag.TaskID {
	after := dag.NewRows(len(sorted), h.p.Reuse)
	rank, depth := upwardRanks(h.p, h.fit, sorted, after), make([]int32, len(sorted))
	for _, t := range sorted {
		for _, next := range [2][]int32{h.p.Graph.Succs(t), after.Row(int32(t))} {
			for _, s := range next {
				depth[s] = max(depth[s], depth[t]+1)
			}
		}
	}
	type key struct {
		rank        float64
		depth, name int32
		task        dag.TaskID
	}
	keys := make([]key, len(sorted))
	for i, t := range sorted {
		keys[i] = key{rank[t], depth[t], h.p.Graph.Rank(t), t}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if c := cmp.Compare(b.rank, a.rank); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(a.name, b.name))
	})
	order := make([]dag.TaskID, len(keys))
	for i := range keys {
		order[i] = keys[i].task
	}
	return order
}

// upwardRanks are the ranks of [byRank], by task, in ns. Sorted is a topological order, and after has the successors by [schedule.Problem.Reuse].
func upwardRanks(p *schedule.Problem, fit *schedule.Fit, sorted []dag.TaskID, after dag.Rows) []float64 {
	ranks, mean, flow := make([]float64, len(p.Graph.Tasks)), newMeanTransfer(p), newFlow(p.Graph)
	for _, t := range slices.Backward(sorted) {
		longest := 0.0
		for _, next := range [2][]int32{p.Graph.Succs(t), after.Row(int32(t))} {
			for _, s := range next {
				longest = max(longest, mean.ns(flow.bytes(t, dag.TaskID(s)))+ranks[s])
			}
		}
		ranks[t] = meanNs(fit, t) + longest
	}
	return ranks
}

// meanNs is the mean duration of a task over the workers that can run it.
func meanNs(fit *schedule.Fit, t dag.TaskID) float64 {
	workers := fit.Workers(t)
	sum := 0.0
	for _, w := range workers {
		sum += float64(fit.Occupies(t, w))
	}
	return sum / float64(len(workers))
}

// place puts a task where it ends first.
func (h *heft) place(t dag.TaskID) error {
	workers := h.workers(t)
	for _, w := range workers {
		h.ready[h.memoryOf[w]].known = false
	}
	best, bestAt := slotOf{end: -1}, gapAt{}
	var bestWorker platform.WorkerID
	for _, w := range workers {
		ready := &h.ready[h.memoryOf[w]]
		if !ready.known {
			*ready = h.readyAt(t, h.memoryOf[w])
		}
		if !ready.ok {
			continue
		}
		takes := h.fit.Occupies(t, w)
		start, at := h.timelines[w].gap(max(ready.at, h.floor[w]), takes)
		if end := start + takes; best.end < 0 || end < best.end {
			best, bestAt, bestWorker = slotOf{start, end, t}, at, w
		}
	}
	if best.end < 0 {
		return fmt.Errorf("task %q: no route brings its operands to a worker that can run it", h.p.Graph.Tasks[t].Name)
	}
	h.transfers.place(t, h.memoryOf[bestWorker], best.end)
	h.fit.Give(t, bestWorker)
	h.worker[t], h.end[t] = bestWorker, best.end
	h.last[bestWorker] = max(h.last[bestWorker], best.end)
	h.timelines[bestWorker].insert(bestAt, best)
	return nil
}

// workers lists the workers to which a task may go.
func (h *heft) workers(t dag.TaskID) []platform.WorkerID {
	all := h.fit.Workers(t)
	if h.may == nil {
		return all
	}
	var there []platform.WorkerID
	for _, w := range all {
		if h.may(t, w) {
			there = append(there, w)
		}
	}
	if there == nil {
		return all
	}
	return there
}

// readyAt is when a task's predecessors have ended and a memory has its operands.
func (h *heft) readyAt(t dag.TaskID, m platform.MemoryID) readyIn {
	at, ok := h.transfers.arrive(t, m, 0)
	for _, preds := range [2][]int32{h.p.Graph.Preds(t), h.reuse.Row(int32(t))} {
		for _, s := range preds {
			at = max(at, h.end[s])
		}
	}
	return readyIn{at: at, known: true, ok: ok}
}

func (h *heft) plan() *schedule.Plan {
	plan := &schedule.Plan{GraphHash: h.p.Graph.Hash(), Order: make([][]dag.TaskID, len(h.timelines))}
	for w := range h.timelines {
		for _, c := range h.timelines[w].chunks {
			for _, s := range c.slots {
				plan.Order[w] = append(plan.Order[w], s.task)
			}
		}
	}
	return plan
}

// meanTransfer is the mean time to move bytes over ordered pairs of distinct workers. Of more than mostMemories with workers it
// takes as many at equal distances.
type meanTransfer struct {
	p     *platform.Platform
	pairs []memoryPairs
	total float64
	known map[int64]float64
}

// mostMemories bounds the pairs of memories whose times are averaged.
const mostMemories = 64

// memoryPairs counts the pairs of workers with the same pair of memories.
type memoryPairs struct {
	from, to platform.MemoryID
	count    float64
}

func newMeanTransfer(p *schedule.Problem) meanTransfer {
	workersIn := make([]float64, len(p.Platform.Memories))
	for w := range p.Platform.Workers {
		workersIn[p.Platform.MemoryOf(platform.WorkerID(w))]++
	}
	m := meanTransfer{p: p.Platform, known: map[int64]float64{}}
	n := float64(len(p.Platform.Workers))
	var memories []int
	for memory, workers := range workersIn {
		if workers > 0 {
			memories = append(memories, memory)
		}
	}
	if all := len(memories); all > mostMemories {
		for i := range mostMemories {
			memories[i] = memories[i*all/mostMemories]
		}
		memories, n = memories[:mostMemories], 0
		for _, memory := range memories {
			n += workersIn[memory]
		}
	}
	m.total = n * (n - 1)
	for _, from := range memories {
		for _, to := range memories {
			a, b := workersIn[from], workersIn[to]
			pair := memoryPairs{platform.MemoryID(from), platform.MemoryID(to), float64(a * b)}
			if _, ok := p.Platform.Route(pair.from, pair.to); from != to && pair.count > 0 && ok {
				m.pairs = append(m.pairs, pair)
			}
		}
	}
	return m
}

func (m *meanTransfer) ns(bytes int64) float64 {
	if bytes == 0 || len(m.pairs) == 0 {
		return 0
	}
	mean, ok := m.known[bytes]
	if !ok {
		for _, pair := range m.pairs {
			mean += float64(pair.count * float64(m.p.RouteTime(pair.from, pair.to, bytes)))
		}
		mean /= m.total
		m.known[bytes] = mean
	}
	return mean
}
