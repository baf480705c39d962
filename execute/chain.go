package execute

import (
	"context"
	"strconv"
	"time"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/schedule"
)

// ChainGaps runs a chain of tasks, the next one always on the next worker, through the
// executor. It returns the times from an end to the next start within a step, by the worker
// that waited, and how long a worker spins before it sleeps.
func ChainGaps(ctx context.Context, p *platform.Platform, body func(*calls.Call), tasks, steps int) (gaps [][]time.Duration, spin time.Duration, err error) {
	b := dag.NewBuilder("chain")
	workers := len(p.Workers)
	plan := &schedule.Plan{Order: make([][]dag.TaskID, workers)}
	for i := range tasks {
		task := dag.Task{Name: strconv.Itoa(i)}
		if i > 0 {
			task.After = []dag.TaskID{dag.TaskID(i - 1)}
		}
		plan.Order[i%workers] = append(plan.Order[i%workers], b.Task(task))
	}
	g, err := b.Build()
	if err != nil {
		return nil, 0, err
	}
	prog := &dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Graph: 0, Steps: 1}}}
	r, err := runPlans(prog, p, schedule.Choice{Plans: []*schedule.Plan{plan}}, Options{})
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	for i := range r.graphs[0].tasks {
		if run := r.graphs[0].tasks[i].run; body != nil && len(run) > 0 {
			run[0] = body // the first device is the cores
		}
	}
	s, err := r.Run(ctx, 0, steps, true)
	if err != nil {
		return nil, 0, err
	}
	gaps = make([][]time.Duration, workers)
	for i := 1; i < len(s.Spans); i++ {
		if s.Spans[i].Step == s.Spans[i-1].Step {
			w := s.Spans[i].Worker
			gaps[w] = append(gaps[w], max(0, s.Spans[i].Start-s.Spans[i-1].End))
		}
	}
	return gaps, r.spin, nil
}

// runPlans makes the runner of a program that follows plans.
func runPlans(prog *dag.Program, p *platform.Platform, choice schedule.Choice, opt Options) (*Runner, error) {
	p, err := Runnable(p)
	if err != nil {
		return nil, err
	}
	priced, err := schedule.Price(prog, p, Target{ThisMachine: true})
	if err != nil {
		return nil, err
	}
	d, err := priced.Decide(choice)
	if err != nil {
		return nil, err
	}
	return New(d, opt)
}
