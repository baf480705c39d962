package policy

import (
	"fmt"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/ready"
)

// plannedSteps is the number of steps run for a plan. Each begins when the one before has ended, with the contents
// left in each memory. The last is written down: by then storages that keep their contents are where they are used.
const plannedSteps = 3

// Plan runs a few steps over expected times and writes down the tasks of each worker in their order. A task takes its
// time on a worker, and a transfer the time that [heftTransfers] expects. A task runs where the
// whole storages that it names fit, if it can. Room for other storages is not looked at.
func (o *online) Plan(p *schedule.Problem) (*schedule.Plan, error) {
	several := p.WithWholeStorages()
	several.Steps = 1
	r := &onlineRun{p: several, free: make([]time.Duration, len(p.Platform.Workers))}
	moves := newHEFTTransfers(several)
	for range plannedSteps {
		var err error
		if r.engine, err = NewEngine(several, o.start(several), func() time.Duration { return r.now }); err != nil {
			return nil, err
		}
		r.engine.moves, r.order = moves, make([][]dag.TaskID, len(p.Platform.Workers))
		if err := r.run(); err != nil {
			return nil, fmt.Errorf("at %v: %w", r.now, err)
		}
	}
	return &schedule.Plan{Policy: o.doc.Name, GraphHash: p.Graph.Hash(), Order: r.order}, nil
}

// onlineRun drives the Engine over expected times.
type onlineRun struct {
	p      *schedule.Problem
	engine *Engine
	now    time.Duration
	free   []time.Duration // by worker: when the tasks that it was told to run end
	ends   ready.Heap[taskEnd]
	order  [][]dag.TaskID // by worker, of the step that runs
}

// taskEnd is the end of the task that a worker runs.
type taskEnd struct {
	at     time.Duration
	rank   int32 // of the name of the task
	worker platform.WorkerID
}

// Before is the order of events; nothing else decides.
func (a taskEnd) Before(b taskEnd) bool {
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.rank != b.rank:
		return a.rank < b.rank
	}
	return a.worker < b.worker
}

func (r *onlineRun) run() error {
	cmds := r.obey(r.engine.Start(nil))
	for len(r.ends) > 0 && r.engine.Err() == nil {
		end := r.ends.Pop()
		r.now = end.at
		cmds = r.obey(r.engine.Done(end.worker, cmds[:0]))
	}
	if err := r.engine.Err(); err != nil {
		return err
	}
	if !r.engine.Finished() {
		return fmt.Errorf("the policy left tasks of graph %q waiting and every worker idle", r.p.Graph.Name)
	}
	return nil
}

func (r *onlineRun) obey(cmds []Command) []Command {
	for _, c := range cmds {
		t := c.Instance.Task
		start := max(r.now, r.free[c.Worker], r.engine.arrival(c.Instance, r.p.Platform.MemoryOf(c.Worker)))
		r.free[c.Worker] = start + r.engine.fit.Occupies(t, c.Worker)
		r.ends.Push(taskEnd{r.free[c.Worker], r.p.Graph.Rank(t), c.Worker})
		r.order[c.Worker] = append(r.order[c.Worker], t)
	}
	return cmds
}
