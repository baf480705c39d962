package main

import (
	"cmp"
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

// takeBest takes the fastest plan of a step that a brief search finds. Tiles are chosen for all units that the machine has of the
// devices, at their first clocks, so that weights depend on neither. With an error everything stays as it was.
func (w *workload) takeBest(ctx context.Context) error {
	from := *w
	whole, err := w.Platform.Whole()
	if err != nil {
		return err
	}
	var tiled *best.Result // the search that has chosen tiles
	if whole != w.Platform && w.opts.ChoosesTiles() {
		if tiled, err = from.takeTiles(ctx, whole); err != nil {
			return err
		}
	}
	s, err := from.defaultSpace()
	if err != nil {
		return err
	}
	found, err := from.briefSearch(ctx, s, 0)
	if err == nil {
		found, err = worthChanging(found)
	}
	if err != nil {
		return err
	}
	next, err := from.workloadAt(s, found.Choice, found.Evaluated)
	if err != nil {
		return err
	}
	w.searchPlatform, w.search = w.Platform, &searched{s, found}
	w.chosenDevices = withTiles(w.choiceOf(found.Devices, found.Makespan), cmp.Or(tiled, found))
	w.Workload = *next
	return nil
}

// takeTiles lowers the network with the tiles that are best on another machine.
func (w *workload) takeTiles(ctx context.Context, on *platform.Platform) (*best.Result, error) {
	other := *w
	other.Platform = on
	s, err := other.defaultSpace()
	if err != nil {
		return nil, err
	}
	found, err := other.briefSearch(ctx, s, 0)
	if err == nil {
		found, err = worthChanging(found)
	}
	if err != nil {
		return nil, err
	}
	at, err := s.At(found.Choice)
	if err != nil {
		return nil, err
	}
	w.Options.Lowering = at.Lowering
	return found, w.lowerAgain()
}

// lowerAgain makes the program anew, as long as the one before.
func (w *workload) lowerAgain() error {
	order := w.Program.Order
	if err := w.Lower(); err != nil || w.wholeTraining() {
		return err
	}
	w.Program.Graphs, w.Program.Order = w.Program.Graphs[:1], order
	return nil
}

// wholeTraining reports whether the program has all graphs of a training, and not the first one alone.
func (w *workload) wholeTraining() bool { return !w.Options.OtherMachine || w.opts.Epochs > 0 }

// briefSearch is the search of the policy best, which may take so long; 0 means as long as it takes.
func (w *workload) briefSearch(ctx context.Context, s *train.Space, within time.Duration) (*best.Result, error) {
	aim := problem.Aim{Objective: problem.Time, Steady: !w.Options.OtherMachine || w.opts.Steps > 1}
	nodes := flags.BestNodes
	switch { // sets of devices alone are compared by more plans
	case w.Model == nil:
		nodes = max(10*nodes, 8*w.tasks())
	case !w.opts.ChoosesTiles():
		nodes *= 10
	}
	return best.Find(ctx, &s.Space, best.Options{Aim: aim, Nodes: nodes, Brief: true, Time: within})
}

func (w *workload) tasks() int { return w.Program.Graphs[0].NumTasks() }

// workloadAt is the workload of a plan for a choice of a space.
func (w *workload) workloadAt(s *train.Space, choice space.Choice, e *plan.Evaluated) (*train.Workload, error) {
	next, err := s.At(choice)
	if err != nil {
		return nil, err
	}
	if next.Options.Plan, next.Options.Lowering = e.Plan(), next.Lowering; choice.Devices == "" {
		next.Options.Devices = w.Options.Devices
	}
	if !w.wholeTraining() {
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
		chosen := w.choiceOf(w.Options.Devices, cli.Seconds(step))
		if tiles := other.w.chosenDevices; tiles != nil && (tiles.Tiles != "" || tiles.Strategy != "") {
			chosen = cmp.Or(chosen, &record.ChosenDevices{})
			chosen.Tiles, chosen.Strategy, chosen.TilesFaster = tiles.Tiles, tiles.Strategy, tiles.TilesFaster
		}
		w.chosenDevices = chosen
		c.Replan(len(c.Rows)-1, w.figures(result))
	}
	return result
}

// defaultSpace has the sets of the devices for the first graph, with the tiles of each by default alone where no others may be chosen.
func (w *workload) defaultSpace() (*train.Space, error) {
	s, err := w.firstGraph().Space(w.Platform, "", tiling.Of(tiling.Base{Kind: tiling.Default}))
	if err != nil {
		return nil, err
	}
	if !w.opts.ChoosesTiles() {
		s.Layers, s.Neighbourhoods, s.Strategies, s.Smaller = nil, nil, nil, nil
	}
	if !slices.Contains(s.Devices, "") { // there are too many sets
		s.Devices = append(s.Devices, "")
	}
	return s, nil
}

// firstGraph is the workload with one step of the first graph as its program.
func (w *workload) firstGraph() *train.Workload {
	first := w.Workload
	first.Program = &dag.Program{Name: w.Program.Name, Graphs: w.Program.Graphs[:1], Order: []dag.Segment{{Graph: 0, Steps: 1}}}
	return &first
}

// choiceOf describes the chosen devices and compares the time of their step with the step on all devices. Nil means
// that all were chosen.
func (w *workload) choiceOf(devices string, step time.Duration) *record.ChosenDevices {
	if devices == "" || devices == w.opts.Devices {
		return nil
	}
	c := &record.ChosenDevices{Devices: devices, Of: platform.List(w.searchPlatform.Usable())}
	tried := w.search.found.Tried
	if all := slices.IndexFunc(tried, func(t best.Attempt) bool { return t.Devices == "" }); all >= 0 {
		c.TimesAsFast = tried[all].Makespan.Seconds() / step.Seconds()
	}
	return c
}

// leastGain is how many times as fast as with default tiles a step is at least with others that are taken. Predictions of calibrated
// machines are off by up to 5 % (bench/plan.md), so that less may be no gain, and weights would depend on the platform file for it.
const leastGain = 1.05

// worthChanging gives the result of a search, or its fastest plan with default tiles where other tiles gain too little.
func worthChanging(found *best.Result) (*best.Result, error) {
	i := slices.IndexFunc(found.Tried, hasDefaultTiles)
	if i < 0 || hasDefaultTiles(best.Attempt{Choice: found.Choice}) || found.Tried[i].Makespan.Seconds() > leastGain*found.Makespan.Seconds() {
		return found, nil
	}
	t := &found.Tried[i]
	e, err := found.Evaluate(t)
	if err != nil {
		return nil, err
	}
	kept := *found
	kept.Choice, kept.Evaluated = t.Choice, e
	kept.Plan, kept.Makespan, kept.Value = t.Plan, t.Makespan, t.Value
	return &kept, nil
}

func hasDefaultTiles(t best.Attempt) bool {
	return t.Tiles == tiling.Of(tiling.Base{Kind: tiling.Default})
}

// withTiles adds the chosen tiles or the strategy of a search, compared with its fastest plan with default tiles.
func withTiles(c *record.ChosenDevices, found *best.Result) *record.ChosenDevices {
	if found.Tiles.Kind == 0 && found.Strategy == "" || hasDefaultTiles(best.Attempt{Choice: found.Choice}) {
		return c
	}
	if c == nil {
		c = &record.ChosenDevices{}
	}
	if c.Strategy = found.Strategy; c.Strategy == "" {
		c.Tiles = found.Tiles.String()
	}
	if i := slices.IndexFunc(found.Tried, hasDefaultTiles); i >= 0 {
		c.TilesFaster = found.Tried[i].Makespan.Seconds() / found.Makespan.Seconds()
	}
	return c
}
