package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/dag"
	"dahl/plan"
	"dahl/plan/best"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/train"
)

// policyText is the policy of a run, and for best which one made its plan.
func (w *workload) policyText(made string) string {
	if w.opts.AsksBest() {
		return fmt.Sprintf("%s (%s)", flags.BestPolicy, made)
	}
	return made
}

// chooseDevices takes the fastest plan of a step on the best set of devices. Where there is no such plan, or the
// memory does not hold it with the other graphs, all devices are planned for.
func (w *workload) chooseDevices(ctx context.Context) error {
	err := w.takeBest(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	w.chosenDevices = &record.ChosenDevices{Skipped: cli.OneLine(err)}
	return w.decide()
}

// takeBest takes the fastest plan of a step. Every set of devices has the lowering that it has by default. With an
// error everything stays as it was.
func (w *workload) takeBest(ctx context.Context) error {
	s, found, err := w.quickSearch(ctx, 0)
	if err != nil {
		return err
	}
	next, err := w.workloadAt(s, found.Choice, found.Evaluated)
	if err != nil {
		return err
	}
	w.searchPlatform, w.search = w.Platform, &searched{s, found}
	w.chosenDevices = w.choiceOf(found.Devices, found.Makespan)
	w.Workload = *next
	return nil
}

// quickSearch is the search of the policy best, which may take so long; 0 means as long as it takes.
func (w *workload) quickSearch(ctx context.Context, within time.Duration) (*train.Space, *best.Result, error) {
	s, err := w.defaultSpace()
	if err != nil {
		return nil, nil, err
	}
	o := best.Options{Aim: problem.Aim{Objective: problem.Time, Steady: !w.Options.OtherMachine || w.opts.Steps > 1}, Nodes: flags.BestNodes, Quick: true, Time: within}
	if w.tasks() > flags.BestTasks {
		o.Plain = true
		s.Devices = slices.DeleteFunc(s.Devices, func(set string) bool {
			some, err := w.Platform.Select(set)
			return set != "" && (err != nil || !plan.IsPlain(w.Platform, some))
		})
	}
	found, err := best.Find(ctx, &s.Space, o)
	return s, found, err
}

func (w *workload) tasks() int { return w.Program.Graphs[0].NumTasks() }

// workloadAt is the workload of a plan for a choice of a space.
func (w *workload) workloadAt(s *train.Space, choice space.Choice, e *plan.Evaluated) (*train.Workload, error) {
	next, err := s.At(choice)
	if err != nil {
		return nil, err
	}
	if next.Options.Plan = e.Plan(); choice.Devices == "" {
		next.Options.Devices = w.Options.Devices
	}
	if w.Options.OtherMachine {
		program := *next.Program // which other choices share
		program.Order = w.Program.Order
		next.Program, next.Decision = &program, e.Decision
		return next, nil
	}
	if err := next.Lower(); err != nil { // all graphs, and not the first one alone
		return nil, err
	}
	return next, next.Choose()
}

// takeFaster replaces the plan of the search by the run on one kind of devices, if that is predicted to be faster. The
// search compares fewer steps than the prediction. So a run always uses the fastest row of its table.
func (w *workload) takeFaster(c *plan.SetComparison, runs []alone, result *plan.Totals) *plan.Totals {
	for _, other := range runs {
		step := other.w.figures(other.result).StepS
		if step >= w.figures(result).StepS {
			continue
		}
		result, w.Workload = other.result, other.w.Workload
		w.chosenDevices = w.choiceOf(w.Options.Devices, cli.Seconds(step))
		c.Replan(len(c.Rows)-1, w.figures(result))
	}
	return result
}

// defaultSpace has the sets of the devices, for the first graph.
func (w *workload) defaultSpace() (*train.Space, error) {
	first := w.Workload
	first.Program = &dag.Program{Name: w.Program.Name, Graphs: w.Program.Graphs[:1], Order: []dag.Segment{{Graph: 0, Steps: 1}}}
	s, err := first.Space(w.Platform, "", tiling.Of(tiling.Base{Kind: tiling.Default}))
	if err != nil {
		return nil, err
	}
	if !slices.Contains(s.Devices, "") { // there are too many sets
		s.Devices = append(s.Devices, "")
	}
	return s, nil
}

// choiceOf describes the chosen devices and compares the time of their step with the step on all devices. Nil means
// that all were chosen.
func (w *workload) choiceOf(devices string, step time.Duration) *record.ChosenDevices {
	c := &record.ChosenDevices{Devices: devices}
	if w.tasks() > flags.BestTasks {
		c.Plain = w.tasks()
	}
	if devices == "" || devices == w.opts.Devices {
		if c.Devices = ""; c.Plain == 0 {
			return nil
		}
	}
	c.Of = platform.List(w.searchPlatform.Usable())
	for _, t := range w.search.found.Tried {
		if t.Devices == "" {
			c.TimesAsFast = t.Makespan.Seconds() / step.Seconds()
		}
	}
	return c
}
