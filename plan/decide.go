package plan

import (
	"context"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/layout"
	"dahl/simulate"
)

// Decide prices a program on a machine for a target and makes the decisions of a choice.
func Decide(prog *dag.Program, p *platform.Platform, target schedule.Target, choice schedule.Choice) (*schedule.Decision, error) {
	priced, err := schedule.Price(prog, p, target)
	if err != nil {
		return nil, err
	}
	return priced.Decide(choice)
}

// maxSimulatedTasks bounds the task instances simulated for one segment.
const maxSimulatedTasks = 2_000_000

// SimulatedSteps is how many of the steps of a graph are simulated: as many as the number of its tasks allows, but at
// least four.
func SimulatedSteps(tasks, steps int) int {
	return max(min(steps, maxSimulatedTasks/max(1, tasks)), min(steps, 4))
}

// Simulate runs steps of one graph of a decision in the simulator, or as many of them as [SimulatedSteps] says.
func Simulate(ctx context.Context, d *schedule.Decision, graph, steps int, opt simulate.Options) (*schedule.Schedule, error) {
	tasks := d.Priced.Program.Graphs[graph].NumTasks()
	return simulate.Run(ctx, d, graph, SimulatedSteps(tasks, steps), opt)
}

// Inspect finds what a program takes before anything is decided: the costs of its first
// graph on a machine, and the places of that graph's buffers in one memory. Without a
// machine (nil) there are no costs.
func Inspect(prog *dag.Program, p *platform.Platform, target schedule.Target) (costs *schedule.Costs, places *layout.Layout, err error) {
	var layouts []*layout.Layout
	if p == nil {
		layouts, err = layout.Program(prog, nil)
	} else if priced, fault := schedule.Price(prog, p, target); fault != nil {
		err = fault
	} else {
		costs = priced.Costs(0)
		layouts, err = priced.HostLayouts()
	}
	if err != nil {
		return nil, nil, err
	}
	return costs, layouts[0], nil
}
