package best

import (
	"fmt"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
)

// TestPlanParts: of three GPUs and a core, the best choice has the batch in three parts on the GPUs alone. It differs in two
// respects from all that is better than what a search begins with, and in what it can run from a single GPU. A step in us:
//
//	                  all devices   three GPUs   two GPUs   one GPU   core
//	default           20            30           30         10        40
//	2 parts           40            40           40
//	3 parts           50            5
func TestPlanParts(t *testing.T) {
	p := testmachine.Shared(t, testmachine.CPU(1, 1, 2), testmachine.GPU("gpu0", 1, 2), testmachine.GPU("gpu1", 1, 2), testmachine.GPU("gpu2", 1, 2))
	tiles := []tiling.Tiling{tiles("default"), tiling.InParts(2, dag.AlongSamples), tiling.InParts(3, dag.AlongSamples)}
	sets := []string{"cpu", "gpu0", "gpu0,gpu1", "gpu0,gpu1,gpu2", ""}
	micros := map[string][]int64{"": {20, 40, 50}, "gpu0,gpu1,gpu2": {30, 40, 5}, "gpu0,gpu1": {30, 40}, "gpu0": {10}, "cpu": {40}}
	s := &space.Space{Devices: sets, Tiles: tiles, Price: func(c space.Choice) (*schedule.Priced, error) {
		for i, us := range micros[c.Devices] {
			if tiles[i] == c.Tiles {
				return oneTask(p, c.Devices, us*1000)
			}
		}
		return nil, fmt.Errorf("%s cannot run", c)
	}}
	found := must.Get(Find(t.Context(), s, Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}, Nodes: 2000}))(t)
	if found.Makespan != 5_000 {
		t.Errorf("%v with %s", found.Makespan, found.Choice)
	}
}

// oneTask is a step of one task of so many nanoseconds, which waits for its last step, on some devices of a machine.
func oneTask(p *platform.Platform, devices string, nanos int64) (*schedule.Priced, error) {
	b := dag.NewBuilder("one")
	w := b.Buffer(dag.Buffer{Name: "w", Shape: []int{1}, Type: dag.Float32, ViewOf: dag.None})
	b.Task(dag.Task{Name: "a", Op: "op", Costs: []dag.Cost{{Key: "*", Ns: nanos}}, Accesses: []dag.Access{{Region: dag.Region{Buffer: w}, Mode: dag.ReadWrite}}})
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	if devices != "" {
		if p, err = p.Select(devices); err != nil {
			return nil, err
		}
	}
	return schedule.Price(&dag.Program{Name: "one", Graphs: []*dag.Graph{g}}, p, schedule.Unbound)
}
