package execute

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"time"

	"dahl/dag"
	"dahl/schedule"
)

// NullRun drives the Engine serially by the model's clock, without kernels or
// threads: a task starts and takes as [schedule.Pace] says. It is the second opinion on package simulate, which
// it reproduces span for span on a platform with one memory; it refuses others.
// The result's World is Simulated.
//
// Ends at the same moment are reported in the order of the ranks of the tasks'
// names, then of their steps.
func NullRun(p *schedule.Problem, policy schedule.Policy) (*schedule.Schedule, error) {
	if n := len(p.Platform.Memories); n != 1 {
		return nil, fmt.Errorf("null run of graph %q: platform %q has %d memories; one is supported", p.Graph.Name, p.Platform.Name, n)
	}
	c := &nullClock{p: p, pace: schedule.NewPace(p), ends: endQueue{rank: p.Graph.Rank}}
	e, err := schedule.NewEngine(p, policy, func() time.Duration { return c.now })
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
		return nil, fmt.Errorf("null run of graph %q: %w", p.Graph.Name, errStall)
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
	engine *schedule.Engine
	pace   *schedule.Pace
	now    time.Duration
	ends   endQueue
	spans  []schedule.Span
}

// begin starts what the Engine commands.
func (c *nullClock) begin(cmds []schedule.Command) error {
	if err := c.engine.Err(); err != nil {
		return err
	}
	for _, cmd := range cmds {
		if cmd.Kind != schedule.RunTask {
			return errCopy
		}
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
