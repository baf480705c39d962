package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/energy/meter"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
	"dahl/train"
)

// figures returns the step figures of a simulated or executed run. Every text and table takes them
// from here.
func (w *workload) figures(o *plan.Totals, readings ...meter.Reading) plan.StepFigures {
	f := plan.FiguresOf(o, readings, record.Covers(readings, w.Platform))
	f.Watts, f.Devices = w.meteredWatts(o.Report), w.used()
	return f
}

// used lists the devices that have a task of a step; empty where that is decided at run time.
func (w *workload) used() string {
	made := w.Decision.Graphs[0].Plan
	if made == nil {
		return ""
	}
	tasks := make([]int, len(w.Platform.Devices))
	for i, list := range made.Order {
		tasks[w.Platform.Workers[i].Device] += len(list)
	}
	used := slices.DeleteFunc(w.Platform.Usable(), func(d *platform.Device) bool {
		id, _ := w.Platform.DeviceByName(d.Name)
		return tasks[id] == 0
	})
	return platform.List(used)
}

// alone is a run on devices of one kind.
type alone struct {
	w      *workload
	result *plan.Totals
}

// compareSets compares the prediction for all devices with predictions of the same options on each
// kind of devices alone. Nil means that --devices does not name both processors and others.
func (w *workload) compareSets(ctx context.Context, all *plan.Totals, asked bool) (*plan.SetComparison, []alone, error) {
	sets := plan.DeviceSets(cmp.Or(w.searchPlatform, w.Platform))
	if sets == nil || w.opts.Devices == "" || w.Lowering != nil && w.Lowering.Fold.Tensor > 0 {
		if asked {
			return nil, nil, cli.InputErrorf("--compare-devices: name processors and other devices with --devices, such as cpu,gpu")
		}
		return nil, nil, nil
	}
	var runs []alone
	c, err := plan.CompareSets(ctx, sets, w.figures(all), func(ctx context.Context, set string) (plan.StepFigures, error) {
		other, err := w.bestOnDevices(ctx, set)
		if err != nil {
			return plan.StepFigures{}, err
		}
		result, err := other.Predict(ctx)
		if err != nil {
			return plan.StepFigures{}, err
		}
		runs = append(runs, alone{other, result})
		return other.figures(result), nil
	})
	if c != nil && w.opts.Objective != "" {
		c.By = w.opts.Objective
	}
	return c, runs, err
}

// bestOnDevices is the workload of the same options on devices of one kind. Where another search would take as long as the first,
// it takes the best plan that the first search found on these devices.
func (w *workload) bestOnDevices(ctx context.Context, set string) (*workload, error) {
	if w.search == nil || w.opts.Objective == "" {
		return w.onDevices(ctx, set)
	}
	some, err := w.searchPlatform.Select(set)
	if err != nil {
		return nil, cli.AsInput(err)
	}
	kind := kindOf(some, nil)
	for i := range w.search.found.Tried {
		t := &w.search.found.Tried[i]
		on, err := w.search.space.At(t.Choice)
		if err != nil {
			return nil, err
		}
		if math.IsInf(t.Value, 1) || kindOf(on.Platform, t.Plan) != kind {
			continue
		}
		e, err := w.search.found.Evaluate(t)
		if err != nil {
			return nil, err
		}
		next, err := w.workloadAt(w.search.space, t.Choice, e)
		if err != nil {
			return nil, err
		}
		other := *w
		other.Workload = *next
		return &other, nil
	}
	return w.onDevices(ctx, set)
}

// onDevices is the workload of the same options onDevices some of its devices. A plan is for the devices that it was made for: onDevices others the same
// lowering is planned anew.
func (w *workload) onDevices(ctx context.Context, list string) (*workload, error) {
	some, err := cmp.Or(w.searchPlatform, w.Platform).Select(list)
	if err != nil {
		return nil, cli.AsInput(err)
	}
	o, other := *w.opts, *w
	o.Devices, o.Workers, o.Plan = list, 0, ""
	other.opts, other.searchPlatform, other.search, other.chosenDevices = &o, nil, nil, nil
	other.Platform, other.Decision, other.Options.Devices, other.Options.Plan = some, nil, list, nil
	if w.Model != nil {
		if w.opts.Plan == "" && o.Recorded == nil && (o.Lowering == "" || o.Lowering == flags.DefaultTiles) {
			other.Options.Lowering = nil
		}
		if err := other.lowerAgain(); err != nil {
			return nil, err
		}
	}
	_, err = other.choosePlan(ctx)
	return &other, err
}

// measureSets adds the measurement of the run on all devices, and if asked measures an epoch on
// each kind of devices alone. A run that has lost a device is no measurement of the set.
func (t *trainer) measureSets(ctx context.Context, alone bool) error {
	if t.devices == nil {
		return nil
	}
	if len(t.Losses) > 0 {
		slog.Warn("the sets of devices are compared as predicted only, since a device failed")
		return nil
	}
	last := len(t.devices.Rows) - 1
	t.devices.Measured(last, t.w.figures(t.Measured, t.Readings...))
	for i := range t.devices.Rows[:last] {
		if !alone || t.devices.Rows[i].Error != "" {
			continue
		}
		list := t.devices.Rows[i].Devices
		f, err := t.w.measureOn(ctx, list)
		if err != nil {
			return fmt.Errorf("on %s alone: %w", list, err)
		}
		t.devices.Measured(i, f)
	}
	return nil
}

// measureOn trains on some of the devices for an epoch and forgets everything but what a step took. The meters
// of all compared devices are read, since an idle device draws power too.
func (w *workload) measureOn(ctx context.Context, list string) (plan.StepFigures, error) {
	one, o := *w, *w.opts
	o.Epochs, one.opts = 1, &o
	one.Options.Epochs, one.Options.Record = 1, w.RecordedSteps() // processors alone would record all
	alone, err := one.onDevices(ctx, list)
	if err == nil {
		err = alone.Afford()
	}
	if err != nil {
		return plan.StepFigures{}, err
	}
	t, err := newTrainer(alone, nil, nil)
	if err != nil {
		return plan.StepFigures{}, err
	}
	defer t.Close()
	meters := train.StartMeters(w.Platform)
	runErr := t.run(ctx)
	if lost := t.Losses; runErr == nil && len(lost) > 0 {
		runErr = fmt.Errorf("device %s failed: %s", lost[0].Device, lost[0].Cause)
	}
	readings, err := meters.Stop()
	if err := errors.Join(runErr, err); err != nil {
		return plan.StepFigures{}, err
	}
	return alone.figures(t.Measured, readings...), nil
}

// The kinds of sets of devices that are compared.
const (
	processorsOnly = platform.CPU
	othersOnly     = "gpu"
	bothKinds      = "cpu + gpu"
)

// kindOf is the kind of the devices of a machine, or of those to which a plan for it gives a task. What has to be there for
// tasks of its own does not count.
func kindOf(p *platform.Platform, plan *schedule.Plan) string {
	processors, others := false, false
	for i, w := range p.Workers {
		d := &p.Devices[w.Device]
		if d.PlacedOnly || plan != nil && (i >= len(plan.Order) || len(plan.Order[i]) == 0) {
			continue
		}
		processors, others = processors || d.IsProcessor(), others || !d.IsProcessor()
	}
	switch {
	case processors && others:
		return bothKinds
	case others:
		return othersOnly
	}
	return processorsOnly
}
