package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/plan"
	"dahl/plan/best"
	"dahl/plan/exact"
	"dahl/schedule"
	"dahl/train"
)

// bestPolicyHelp is the paragraph about it in the help of the commands that have it.
var bestPolicyHelp = fmt.Sprintf(`Without --policy the run has the devices, of those of --devices, on which a step is predicted
to be fastest, and one line says which and how much faster than all. Each set of devices
has the lowering that it has by default, so weights may differ in their last bits from those
on all, as they do with --devices; on processors of one kind they do not. Of steps of more than
%d tasks no sets are compared, nor of a machine that is detected, whose rates are guesses:
--policy %s plans for all.`, bestTasks, listPolicy)

// bestPolicy is the --policy that chooses among the plans of all policies on sets of the devices.
const bestPolicy = "best"

// listPolicy is the one that plans for a given set of devices in the place of bestPolicy.
const listPolicy = "heft"

const (
	// bestNodes bounds its search: a step of a shipped network takes it less than a second.
	bestNodes = 20_000
	// bestTasks is the number of tasks of a step above which list scheduling on all devices has to do.
	bestTasks = 5_000
)

// policyNames are the values of --policy.
func policyNames() []string { return append([]string{bestPolicy}, cli.PolicyNames()...) }

// policy is the scheduler for a given set of devices.
func (o *options) policy() (schedule.PolicyInfo, error) {
	if o.Policy == bestPolicy {
		return schedule.PolicyByName(listPolicy)
	}
	return schedule.PolicyByName(o.Policy)
}

// chosenDevices are what the policy best chose.
type chosenDevices struct {
	Devices     string  `json:"devices,omitempty"`       // as --devices takes them; empty: all
	Of          string  `json:"of,omitempty"`            // likewise
	TimesAsFast float64 `json:"times_as_fast,omitempty"` // as the plan on all of them; 0: none is known
	Skipped     string  `json:"skipped,omitempty"`       // why sets were not compared
}

// some reports whether there are devices that the run does without.
func (c *chosenDevices) some() bool { return c != nil && c.Devices != "" }

// print says it in a line.
func (c *chosenDevices) print(out io.Writer) {
	switch {
	case c == nil:
		return
	case c.Skipped != "":
		fmt.Fprintf(out, "devices   all, by %s: %s\n", listPolicy, c.Skipped)
		return
	}
	faster := ""
	switch {
	case c.TimesAsFast >= 1.005:
		faster = fmt.Sprintf(": %s times as fast as all", cli.ThreeDigits(c.TimesAsFast))
	case c.TimesAsFast > 0:
		faster = ": as fast as all"
	}
	of := strings.Split(c.Of, ",")
	text := strings.Join(of[:min(len(of), 3)], ", ")
	if len(of) > 3 {
		text += "…"
	}
	fmt.Fprintf(out, "devices   %s of %s%s; --devices and --policy choose otherwise\n", strings.ReplaceAll(c.Devices, ",", ", "), text, faster)
}

// asksBest reports whether the policy best is to plan.
func (o *options) asksBest() bool { return o.Policy == bestPolicy && o.Plan == "" && o.Objective == "" }

// policyText is the policy of a run, and for best which one made its plan.
func (w *workload) policyText(made string) string {
	if w.opts.asksBest() {
		return fmt.Sprintf("%s (%s)", bestPolicy, made)
	}
	return made
}

// chooseDevices takes the fastest plan of a step on the best set of devices. Where there is none, or it does not fit
// beside the other graphs, or a step has too many tasks, all devices are planned for.
func (w *workload) chooseDevices(ctx context.Context) error {
	var err error
	if n := w.Program.Graphs[0].NumTasks(); n > bestTasks {
		err = fmt.Errorf("a step has %d tasks, and sets of devices are compared up to %d", n, bestTasks)
	} else if err = w.takeBest(ctx); err == nil || ctx.Err() != nil {
		return err
	}
	w.chosen = &chosenDevices{Skipped: cli.OneLine(err)}
	return w.decide()
}

// takeBest takes the fastest plan of a step. Every set of devices has the lowering that it has by default. With an
// error everything stays as it was.
func (w *workload) takeBest(ctx context.Context) error {
	s, err := w.defaultSpace()
	if err != nil {
		return err
	}
	of := best.Options{Options: exact.Options{Objective: exact.Time, Nodes: bestNodes}, Quick: true, Steady: !w.Options.Elsewhere || w.opts.Steps > 1}
	found, err := best.Find(ctx, &s.Space, of)
	if err != nil {
		return err
	}
	next, err := s.At(found.Choice)
	if err != nil {
		return err
	}
	if next.Options.Plan = found.Plan; found.Devices == "" {
		next.Options.Devices = w.Options.Devices
	}
	if w.Options.Elsewhere {
		next.Program.Order = w.Program.Order
	} else if err := next.Lower(w.samples); err != nil { // all graphs, and not the first one alone
		return err
	}
	if err := next.Choose(); err != nil {
		return err
	}
	if w.all = w.Platform; found.Devices != "" {
		w.chosen = w.choiceOf(found)
	}
	w.Workload = *next
	return nil
}

// defaultSpace has the sets of the devices, for the first graph.
func (w *workload) defaultSpace() (*train.Space, error) {
	first := w.Workload
	first.Program = &dag.Program{Name: w.Program.Name, Graphs: w.Program.Graphs[:1], Order: []dag.Segment{{Graph: 0, Steps: 1}}}
	var tiles []string // those that were found
	if w.opts.adapt == nil {
		tiles = []string{plan.DefaultTiles}
	}
	s, err := first.Space(w.samples, w.Platform, "", tiles...)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(s.Devices, "") { // there are too many sets
		s.Devices = append(s.Devices, "")
	}
	return s, nil
}

// choiceOf says what was chosen from the devices of the workload.
func (w *workload) choiceOf(found *best.Result) *chosenDevices {
	c := &chosenDevices{Devices: found.Devices}
	var of []string
	for i := range w.Platform.Devices {
		if d := &w.Platform.Devices[i]; !d.PlacedOnly {
			of = append(of, d.Item(""))
		}
	}
	c.Of = strings.Join(of, ",")
	for _, t := range found.Tried {
		if t.Devices == "" {
			c.TimesAsFast = t.Makespan.Seconds() / found.Makespan.Seconds()
		}
	}
	return c
}
