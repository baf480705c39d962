package conformance

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// nullRun drives the Engine serially by the model's clock, without kernels or threads: a
// task starts and takes as [schedule.Pace] says. It is the second opinion on package
// simulate, which it reproduces span for span on a platform with one memory.
//
// Ends at the same moment are reported in the order of the ranks of the tasks' names, then
// of their steps.
func nullRun(p *schedule.Problem, scheduler policy.Scheduler) (*schedule.Schedule, error) {
	c := &nullClock{p: p, pace: schedule.NewPace(p), ends: endQueue{rank: p.Graph.Rank}}
	e, err := policy.NewEngine(p, scheduler, func() time.Duration { return c.now })
	if err != nil {
		return nil, fmt.Errorf("null run: %w", err)
	}
	c.engine = e
	if err := c.begin(e.Start(nil)); err != nil {
		return nil, fmt.Errorf("null run of graph %q: %w", p.Graph.Name, err)
	}
	for c.ends.Len() > 0 {
		next := heap.Pop(&c.ends).(schedule.Span)
		c.now = next.End
		c.spans = append(c.spans, next)
		if err := c.begin(e.Done(next.Worker, nil)); err != nil {
			return nil, fmt.Errorf("null run of graph %q: %w", p.Graph.Name, err)
		}
	}
	if !e.Finished() {
		return nil, fmt.Errorf("null run of graph %q: tasks are left, and every worker is idle", p.Graph.Name)
	}
	s := &schedule.Schedule{World: schedule.Simulated, GraphHash: p.Graph.Hash(), Steps: p.Steps, Spans: c.spans}
	if err := s.Complete(p); err != nil {
		return nil, fmt.Errorf("null run: %w", err)
	}
	return s, nil
}

// nullClock is the time and the ends to come.
type nullClock struct {
	p      *schedule.Problem
	engine *policy.Engine
	pace   *schedule.Pace
	now    time.Duration
	ends   endQueue
	spans  []schedule.Span
}

// begin starts what the Engine commands.
func (c *nullClock) begin(cmds []policy.Command) error {
	if err := c.engine.Err(); err != nil {
		return err
	}
	for _, cmd := range cmds {
		device := c.p.Platform.Workers[cmd.Worker].Device
		if _, ok := c.p.Costs.Of(cmd.Instance.Task, device); !ok {
			return errors.New("the engine put a task where it cannot run")
		}
		ready := c.engine.ReadyAt(cmd.Instance)
		start, takes := c.pace.Begin(cmd.Instance, cmd.Worker, c.now, ready)
		end := start + takes
		c.pace.End(cmd.Worker, end)
		heap.Push(&c.ends, schedule.Span{Task: cmd.Instance.Task, Step: cmd.Instance.Step, Worker: cmd.Worker,
			Ready: ready, Start: start, End: end})
	}
	return nil
}

// endQueue orders spans by end, rank and step.
type endQueue struct {
	spans []schedule.Span
	rank  func(dag.TaskID) int32
}

func (q *endQueue) Len() int { return len(q.spans) }
func (q *endQueue) Less(i, j int) bool {
	a, b := &q.spans[i], &q.spans[j]
	return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(q.rank(a.Task), q.rank(b.Task)), cmp.Compare(a.Step, b.Step)) < 0
}
func (q *endQueue) Swap(i, j int) { q.spans[i], q.spans[j] = q.spans[j], q.spans[i] }
func (q *endQueue) Push(x any)    { q.spans = append(q.spans, x.(schedule.Span)) }
func (q *endQueue) Pop() any {
	last := q.spans[len(q.spans)-1]
	q.spans = q.spans[:len(q.spans)-1]
	return last
}

// replayed is a policy by which every worker runs its list of a plan in order, step after
// step, and waits for its next task even if a later one is ready.
type replayed struct {
	order  [][]dag.TaskID
	worker map[dag.TaskID]platform.WorkerID
	begun  []int // by worker: tasks of all steps so far
	ready  map[dag.Instance]bool
}

func replay(plan *schedule.Plan) policy.Scheduler {
	r := &replayed{order: plan.Order, worker: map[dag.TaskID]platform.WorkerID{}, begun: make([]int, len(plan.Order)), ready: map[dag.Instance]bool{}}
	for w, list := range plan.Order {
		for _, t := range list {
			r.worker[t] = platform.WorkerID(w)
		}
	}
	return r
}

func (r *replayed) Ready(_ *policy.View, i dag.Instance) platform.WorkerID {
	r.ready[i] = true
	return r.worker[i.Task]
}

func (r *replayed) Next(_ *policy.View, w platform.WorkerID) (dag.Instance, bool) {
	if int(w) >= len(r.order) || len(r.order[w]) == 0 {
		return dag.Instance{}, false
	}
	n := len(r.order[w])
	next := dag.Instance{Task: r.order[w][r.begun[w]%n], Step: int32(r.begun[w] / n)}
	if !r.ready[next] {
		return next, false
	}
	delete(r.ready, next)
	r.begun[w]++
	return next, true
}

// TestNullRunOfAFork: a (3 ns) before b (5 ns) and c (7 ns), dispatch 100 ns.
//
//	one core:  a 100–103, b 203–208, c 308–315
//	two cores: a 100–103 on core 0; b on core 0 203–208, c on core 1 203–210
func TestNullRunOfAFork(t *testing.T) {
	type run struct {
		name       string
		worker     platform.WorkerID
		start, end int64
	}
	for cores, want := range map[int][]run{
		1: {{"a", 0, 100, 103}, {"b", 0, 203, 208}, {"c", 0, 308, 315}},
		2: {{"a", 0, 100, 103}, {"b", 0, 203, 208}, {"c", 1, 203, 210}},
	} {
		p := machine(t, cores)
		p.Devices[0].Dispatch = 100
		d := decided(t, program(fork(t)), how{platform: p, policy: "eager"})
		problem := d.Problem(0, 1, false)
		s, err := nullRun(problem, d.Policy.(policy.Online).Start(problem))
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Spans) != len(want) || s.World != schedule.Simulated {
			t.Fatalf("%d cores: %d spans in world %s", cores, len(s.Spans), s.World)
		}
		for i, sp := range s.Spans {
			if got := (run{problem.Graph.Tasks[sp.Task].Name, sp.Worker, int64(sp.Start), int64(sp.End)}); got != want[i] {
				t.Errorf("%d cores: span %d is %v, want %v", cores, i, got, want[i])
			}
		}
	}
}

func fork(t *testing.T) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("fork")
	cost := func(ns int64) []dag.Cost { return []dag.Cost{{Key: "cpu", Ns: ns}} }
	a := b.Task(dag.Task{Name: "a", Costs: cost(3)})
	b.Task(dag.Task{Name: "b", Costs: cost(5), After: []dag.TaskID{a}})
	b.Task(dag.Task{Name: "c", Costs: cost(7), After: []dag.TaskID{a}})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}
