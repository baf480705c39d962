package execute

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"dahl/dag"
	"dahl/execute/hardware"
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
	priced, err := schedule.Price(prog, p, hardware.Target{ThisMachine: true})
	if err != nil {
		return nil, err
	}
	d, err := priced.Decide(choice)
	if err != nil {
		return nil, err
	}
	return New(d, opt)
}

// MessageTimes measures messages between each node and the next one, by chains of empty tasks through the executor. A message takes from the
// end of a task to the start of the next one on the other node. So every wait of a step is in it. Rank 0 returns the median for each pair of
// nodes and each number of bytes. The other ranks only take part.
func MessageTimes(ctx context.Context, p *platform.Platform, ranks *Ranks, bytes []int64, messages int) (times [][]time.Duration, err error) {
	prog, choice := &dag.Program{Name: "messages"}, schedule.Choice{}
	workers := firstCores(p)
	for pair := range len(workers) - 1 {
		for _, n := range bytes {
			g, plan, err := messageChain(len(p.Workers), workers[pair:pair+2], n, messages)
			if err != nil {
				return nil, err
			}
			prog.Order = append(prog.Order, dag.Segment{Graph: len(prog.Graphs), Steps: 1})
			prog.Graphs, choice.Plans = append(prog.Graphs, g), append(choice.Plans, plan)
		}
	}
	r, err := runPlans(prog, p, choice, Options{Ranks: ranks})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if ranks.Rank > 0 {
		return nil, r.Serve(nil)
	}
	for g := range prog.Graphs {
		s, err := r.Run(ctx, g, 1, true)
		if err != nil {
			return nil, err
		}
		if g%len(bytes) == 0 {
			times = append(times, nil)
		}
		last := &times[len(times)-1]
		*last = append(*last, messageTime(s))
	}
	return times, nil
}

// firstCores are the first cores at the host memories of the nodes.
func firstCores(p *platform.Platform) (workers []platform.WorkerID) {
	for _, node := range WorkingNodes(p) {
		at := slices.IndexFunc(p.Workers, func(w platform.Worker) bool {
			d := &p.Devices[w.Device]
			return d.IsProcessor() && p.IsHost(d.Memory) && p.NodeOf(d.Memory) == node
		})
		if at >= 0 { // New refuses others
			workers = append(workers, platform.WorkerID(at))
		}
	}
	return workers
}

// messageChain is a chain of tasks that take turns on two workers. Each hands as many bytes to the next.
func messageChain(workers int, pair []platform.WorkerID, bytes int64, messages int) (*dag.Graph, *schedule.Plan, error) {
	b := dag.NewBuilder(fmt.Sprintf("%d bytes, workers %d and %d", bytes, pair[0], pair[1]))
	var of [2]dag.BufferID
	for i := range of {
		of[i] = b.Buffer(dag.Buffer{Name: strconv.Itoa(i), Type: dag.Uint8, Shape: []int{int(bytes)}, Role: dag.Activation})
	}
	plan := &schedule.Plan{Order: make([][]dag.TaskID, workers)}
	for i := range messages + 1 {
		task := dag.Task{Name: strconv.Itoa(i), Accesses: []dag.Access{{Region: dag.Region{Buffer: of[i%2]}, Mode: dag.Write}}}
		if i > 0 {
			task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: of[1-i%2]}, Mode: dag.Read})
		}
		w := pair[i%2]
		plan.Order[w] = append(plan.Order[w], b.Task(task))
	}
	g, err := b.Build()
	return g, plan, err
}

// messageTime is the median time of a message in a chain. Two messages take from a task's end to the start of the next task on
// the same worker, without the task between them. So the clocks of the two need not agree.
func messageTime(s *schedule.Schedule) time.Duration {
	var both []time.Duration
	for i := 2; i < len(s.Spans); i++ {
		between := &s.Spans[i-1]
		both = append(both, s.Spans[i].Start-s.Spans[i-2].End-(between.End-between.Start))
	}
	slices.Sort(both)
	return both[len(both)/2] / 2
}
