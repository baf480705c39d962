package execute

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

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
