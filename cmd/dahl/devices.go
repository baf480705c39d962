package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"

	"dahl/dag"
	"dahl/energy"
	"dahl/nn"
	"dahl/platform"
	"dahl/train"
)

// deviceComparison answers whether unlike devices together are better than each kind
// alone: the same network and options on each set.
type deviceComparison struct {
	Rows []deviceRow `json:"rows"`
	// Fastest and Frugal are the rows with the shortest step and the fewest joules: measured
	// where all rows are, else predicted. Joules of meters and of a model are not compared.
	Fastest     string `json:"fastest"`
	Basis       string `json:"basis"`            // predicted or measured
	Frugal      string `json:"frugal,omitempty"` // empty where powers are not known
	FrugalBasis string `json:"frugal_basis,omitempty"`
}

// deviceRow is one set of devices in both worlds. One that cannot run the network, such
// as for lack of memory, has an Error instead of figures.
type deviceRow struct {
	Devices          string        `json:"devices"` // as --devices takes it
	Predicted        stepFigures   `json:"predicted"`
	Measured         *stepFigures  `json:"measured,omitempty"`
	StepErrorPercent *float64      `json:"step_error_percent,omitempty"`
	Metered          []meteredStep `json:"metered,omitempty"`
	Error            string        `json:"error,omitempty"`
}

// stepFigures is what a training step takes on a set of devices.
type stepFigures struct {
	StepS          float64      `json:"step_s"`
	ImagesPerS     float64      `json:"images_per_s,omitempty"` // 0: of a graph that no model made
	JoulesPerStep  float64      `json:"joules_per_step"`
	JoulesPerImage float64      `json:"joules_per_image,omitempty"`
	Basis          energy.Basis `json:"basis"`                      // of the joules
	Samples        int          `json:"samples_per_task,omitempty"` // of the busiest layer, where --lowering best chose it

	watts    map[string]float64 // by what a meter covers
	readings []energy.Reading
}

// deviceSets are the sets to compare, as lists for --devices: the processors of a
// platform alone, its other devices alone, and all. Nil where there is only one kind. The
// platform is what a list chose of another, from which theirs choose again.
func deviceSets(p *platform.Platform, chosen string) []string {
	var processors, others []string
	for i := range p.Devices {
		d := &p.Devices[i]
		item := d.Item(chosen)
		switch {
		case d.PlacedOnly:
		case d.Kind == "cpu":
			processors = append(processors, item)
		default:
			others = append(others, item)
		}
	}
	if len(processors) == 0 || len(others) == 0 {
		return nil
	}
	return []string{strings.Join(processors, ","), strings.Join(others, ","), strings.Join(append(processors, others...), ",")}
}

// optionsOn are the options of the same run on another set of devices. A plan is for the
// devices that it was made for: on others the same lowering is planned anew.
func (w *workload) optionsOn(list string) *options {
	o := *w.opts
	o.Devices, o.Workers, o.adapt = list, 0, nil
	if o.Plan != "" {
		o.Plan = ""
		if o.Lowering == "" && w.Lowering != nil {
			o.adapt = func(l *dag.Lowering, _ int) { *l = *w.Lowering }
		}
	}
	return &o
}

// measured adds what a set took.
func (c *deviceComparison) measured(row int, f stepFigures) {
	r := &c.Rows[row]
	off := percent(r.Predicted.StepS, f.StepS)
	r.Measured, r.StepErrorPercent, r.Metered = &f, &off, meteredSteps(&r.Predicted, &f)
	c.choose()
}

// choose finds the best rows in one world: the measured one if all were measured, for
// joules in the same way.
func (c *deviceComparison) choose() {
	c.Basis, c.FrugalBasis = "measured", "measured"
	bases := map[energy.Basis]bool{}
	for i := range c.Rows {
		switch r := &c.Rows[i]; {
		case r.Error != "":
		case r.Measured == nil:
			c.Basis = "predicted"
		default:
			bases[r.Measured.Basis] = true
		}
	}
	if c.Basis == "predicted" || len(bases) > 1 {
		c.FrugalBasis = "predicted"
	}
	c.Fastest = c.least(func(r *deviceRow) float64 { return r.in(c.Basis).StepS })
	c.Frugal = c.least(func(r *deviceRow) float64 {
		f := r.in(c.FrugalBasis)
		if f.Basis == energy.Unavailable {
			return math.NaN()
		}
		return f.JoulesPerStep
	})
	if c.Frugal == "" {
		c.FrugalBasis = ""
	}
}

// in is what the row takes in one world.
func (r *deviceRow) in(world string) *stepFigures {
	if world == "measured" {
		return r.Measured
	}
	return &r.Predicted
}

// least is the row with the least of something; none where one has no number, since what
// is not known may be the least.
func (c *deviceComparison) least(of func(*deviceRow) float64) string {
	best, devices := math.Inf(1), ""
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Error != "" {
			continue
		}
		v := of(r)
		if math.IsNaN(v) {
			return ""
		}
		if v < best {
			best, devices = v, r.Devices
		}
	}
	return devices
}

// figures are the step's of a simulated or executed run. A measured run has measured
// joules where the meters cover all its devices: their mean power over the run times
// the step, since a meter is far slower than a step. Otherwise the joules are those
// of the platform's powers over the schedule, so those of a recorded step.
func (w *workload) figures(o *outcome) stepFigures {
	f := stepFigures{StepS: o.StepTime().Seconds(), Basis: o.Report.Basis}
	f.JoulesPerStep = o.JoulesPerStep()
	f.watts, f.readings = w.meteredWatts(o.Report), o.Readings
	if covers(o.Readings, w.Platform) {
		f.JoulesPerStep, f.Basis = 0, energy.Measured
		for _, r := range o.Readings {
			f.JoulesPerStep += ratio(r.Joules, r.Seconds) * f.StepS
		}
	}
	if batch := nn.BatchOf(w.Program.Graphs[0]); batch > 0 {
		f.ImagesPerS, f.JoulesPerImage = ratio(float64(batch), f.StepS), f.JoulesPerStep/float64(batch)
	}
	if w.tiles != nil {
		f.Samples = w.tiles.Chosen
	}
	return f
}

// compareSets lays the prediction for all devices of a simulated run beside that of
// each kind alone: what the same options give there.
func (w *workload) compareSets(ctx context.Context, sets []string, all *outcome) (*deviceComparison, error) {
	c := &deviceComparison{}
	for _, list := range sets[:len(sets)-1] {
		row := deviceRow{Devices: list}
		f, err := w.predictOn(ctx, list)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			row.Error = oneLine(err)
		default:
			row.Predicted = f
		}
		c.Rows = append(c.Rows, row)
	}
	c.Rows = append(c.Rows, deviceRow{Devices: sets[len(sets)-1], Predicted: w.figures(all)})
	c.choose()
	return c, nil
}

// predictOn are the figures of a step on another set of devices.
func (w *workload) predictOn(ctx context.Context, list string) (stepFigures, error) {
	other, err := w.onDevices(ctx, list)
	if err != nil {
		return stepFigures{}, err
	}
	result, err := other.predict(ctx)
	if err != nil {
		return stepFigures{}, err
	}
	return other.figures(result), nil
}

// onDevices is the workload of the same options on another set of devices.
func (w *workload) onDevices(ctx context.Context, list string) (*workload, error) {
	o := w.optionsOn(list)
	if w.Options.Elsewhere {
		return simulatedWorkload(ctx, o)
	}
	return trainingWorkload(ctx, o)
}

// comparedSets is the comparison of an execution, before it is measured; nil where
// --devices does not name both processors and others.
func (w *workload) comparedSets(ctx context.Context, predicted *outcome, asked bool) (*deviceComparison, error) {
	sets := deviceSets(w.Platform, w.opts.Devices)
	if sets == nil || w.opts.Devices == "" {
		if asked {
			return nil, inputErrorf("--compare-devices: name processors and other devices with --devices, such as cpu,gpu")
		}
		return nil, nil
	}
	return w.compareSets(ctx, sets, predicted)
}

// measureSets adds what the run on all devices took, and if asked that of an epoch on
// each kind alone. A run that has lost a device is no measurement of the set.
func (t *trainer) measureSets(ctx context.Context, alone bool) error {
	if t.devices == nil {
		return nil
	}
	if len(t.Losses) > 0 {
		slog.Warn("the sets of devices are compared as predicted only, since a device failed")
		return nil
	}
	last := len(t.devices.Rows) - 1
	t.devices.measured(last, t.w.figures(t.measured))
	for i := range t.devices.Rows[:last] {
		if !alone || t.devices.Rows[i].Error != "" {
			continue
		}
		list := t.devices.Rows[i].Devices
		o := t.w.optionsOn(list)
		o.Record = t.w.RecordedSteps() // processors alone would record all
		f, err := measureOn(ctx, o, t.w.Platform)
		if err != nil {
			return fmt.Errorf("on %s alone: %w", list, err)
		}
		t.devices.measured(i, f)
	}
	return nil
}

// measureOn trains for an epoch and forgets everything but what a step took. The meters
// are those of all devices that are compared, since the others draw what they draw idle.
func measureOn(ctx context.Context, o *options, all *platform.Platform) (stepFigures, error) {
	o.Epochs = 1
	w, err := trainingWorkload(ctx, o)
	if err != nil {
		return stepFigures{}, err
	}
	t, err := newTrainer(w, nil)
	if err != nil {
		return stepFigures{}, err
	}
	defer t.Close()
	meters := train.StartMeters(all)
	runErr := t.run(ctx)
	if lost := t.Losses; runErr == nil && len(lost) > 0 {
		runErr = fmt.Errorf("device %s failed: %s", lost[0].Device, lost[0].Cause)
	}
	readings, err := meters.Stop()
	if err := errors.Join(runErr, err); err != nil {
		return stepFigures{}, err
	}
	t.measured.Readings = readings
	return w.figures(t.measured), nil
}

// print writes two lines per set, one per world, and which set is best.
func (c *deviceComparison) print(out io.Writer) {
	width := len("devices")
	for i := range c.Rows {
		width = max(width, len(c.Rows[i].Devices))
	}
	fmt.Fprintf(out, "\n%-*s %-10s %10s %9s %10s %10s %10s  %s\n", width, "devices", "", "step", "error", "images/s", "J/step", "J/image", "joules")
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Error != "" {
			fmt.Fprintf(out, "%-*s cannot run: %s\n", width, r.Devices, r.Error)
			continue
		}
		r.Predicted.print(out, width, r.Devices, "predicted", "")
		if r.Measured != nil {
			r.Measured.print(out, width, "", "measured", fmt.Sprintf("%+.1f %%", *r.StepErrorPercent))
		}
		if len(r.Metered) > 0 {
			fmt.Fprintf(out, "%-*s %-10s %s\n", width, "", "metered", meteredText(r.Metered))
		}
	}
	switch c.FrugalBasis {
	case "":
		fmt.Fprintf(out, "fastest on %s (as %s); joules are unknown: the platform names no powers for some device\n\n", c.Fastest, c.Basis)
	case c.Basis:
		fmt.Fprintf(out, "fastest on %s, fewest joules on %s (as %s)\n\n", c.Fastest, c.Frugal, c.Basis)
	default:
		fmt.Fprintf(out, "fastest on %s (as %s), fewest joules on %s (as %s, since not all sets have meters)\n\n", c.Fastest, c.Basis, c.Frugal, c.FrugalBasis)
	}
}

func (f *stepFigures) print(out io.Writer, width int, devices, world, off string) {
	images, perStep, perImage := "-", "-", "-"
	if f.ImagesPerS > 0 {
		images = fmt.Sprintf("%.0f", f.ImagesPerS)
	}
	if f.Basis != energy.Unavailable {
		perStep = threeDigits(f.JoulesPerStep)
		if f.JoulesPerImage > 0 {
			perImage = threeDigits(f.JoulesPerImage)
		}
	}
	fmt.Fprintf(out, "%-*s %-10s %10s %9s %10s %10s %10s  %s\n", width, devices, world, shortTime(seconds(f.StepS)), off, images, perStep, perImage, f.Basis)
}
