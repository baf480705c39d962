package plan

import (
	"cmp"
	"context"
	"math"

	"dahl/energy"
	"dahl/energy/meter"
	"dahl/naming"
	"dahl/platform"
)

// SetComparison answers whether unlike devices together are better than each kind
// alone: the same network and options on each set.
type SetComparison struct {
	Rows []SetRow `json:"rows"`
	// Fastest and Frugal are the devices used in the rows with the shortest step and the fewest joules: measured
	// where all rows are, else predicted. Joules of meters and of a model are not compared.
	Fastest     string `json:"fastest"`
	Basis       string `json:"basis"`            // predicted or measured
	Frugal      string `json:"frugal,omitempty"` // empty where powers are not known
	FrugalBasis string `json:"frugal_basis,omitempty"`
	// By is the objective of the one search that came by the plans of all rows; empty: each row was planned for by itself.
	By string `json:"by,omitempty"`
}

// SetRow is one set of devices in both worlds. One that cannot run the network, such
// as for lack of memory, has an Error instead of figures.
type SetRow struct {
	Devices          string        `json:"devices"` // as platform.Platform.Select takes it: what was to choose from
	Predicted        StepFigures   `json:"predicted"`
	Measured         *StepFigures  `json:"measured,omitempty"`
	StepErrorPercent *float64      `json:"step_error_percent,omitempty"`
	Metered          []MeteredStep `json:"metered,omitempty"`
	Error            string        `json:"error,omitempty"`
}

// DeviceSets are the sets to compare, as lists for [platform.Platform.Select]: the processors
// of a platform alone, its other devices alone, and all. Nil where there is only one kind.
func DeviceSets(p *platform.Platform) []string {
	var processors, others []*platform.Device
	for _, d := range p.Usable() {
		if d.IsProcessor() {
			processors = append(processors, d)
		} else {
			others = append(others, d)
		}
	}
	if len(processors) == 0 || len(others) == 0 {
		return nil
	}
	return []string{platform.List(processors), platform.List(others), platform.List(append(processors, others...))}
}

// CompareSets compares the prediction for all devices, the last set, with predictions for the other sets.
func CompareSets(ctx context.Context, sets []string, all StepFigures, predict func(ctx context.Context, set string) (StepFigures, error)) (*SetComparison, error) {
	c := &SetComparison{}
	for _, set := range sets[:len(sets)-1] {
		row := SetRow{Devices: set}
		var err error
		if row.Predicted, err = predict(ctx, set); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			row.Error = naming.OneLine(err)
		}
		c.Rows = append(c.Rows, row)
	}
	c.Rows = append(c.Rows, SetRow{Devices: sets[len(sets)-1], Predicted: all})
	c.choose()
	return c, nil
}

// Measured adds what a set took.
func (c *SetComparison) Measured(row int, f StepFigures) {
	r := &c.Rows[row]
	off := ErrorPercent(r.Predicted.StepS, f.StepS)
	r.Measured, r.StepErrorPercent, r.Metered = &f, &off, MeteredSteps(&r.Predicted, &f)
	c.choose()
}

// Replan replaces the prediction of a row.
func (c *SetComparison) Replan(row int, f StepFigures) {
	c.Rows[row].Predicted = f
	c.choose()
}

// Used is the devices that a row uses: the devices with a task in its plan.
func (r *SetRow) Used() string {
	if r.Measured != nil && r.Measured.Devices != "" {
		return r.Measured.Devices
	}
	return cmp.Or(r.Predicted.Devices, r.Devices)
}

// choose finds the best rows in one world: the measured one if all were measured. For joules a run counts as measured
// where a meter read them.
func (c *SetComparison) choose() {
	c.Basis, c.FrugalBasis = "measured", "measured"
	for i := range c.Rows {
		switch r := &c.Rows[i]; {
		case r.Error != "":
		case r.Measured == nil:
			c.Basis, c.FrugalBasis = "predicted", "predicted"
		case r.Measured.Basis != energy.Measured:
			c.FrugalBasis = "predicted"
		}
	}
	c.Fastest = c.least(c.Basis, func(f *StepFigures) float64 { return f.StepS })
	c.Frugal = c.least(c.FrugalBasis, func(f *StepFigures) float64 {
		if f.Basis == energy.Unavailable {
			return math.NaN()
		}
		return f.JoulesPerStep
	})
	if c.Frugal == "" {
		c.FrugalBasis = ""
	}
}

// least is the row with the least of something in one world; none where one has no number,
// since what is not known may be the least.
func (c *SetComparison) least(world string, of func(*StepFigures) float64) string {
	best, devices := math.Inf(1), ""
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Error != "" {
			continue
		}
		f := &r.Predicted
		if world == "measured" {
			f = r.Measured
		}
		v := of(f)
		if math.IsNaN(v) {
			return ""
		}
		if v < best {
			best, devices = v, r.Used()
		}
	}
	return devices
}

// StepFigures are the numbers of a training step, in the mean over a run.
type StepFigures struct {
	StepS           float64      `json:"step_s"`
	SamplesPerS     float64      `json:"images_per_s,omitempty"` // zero means of a graph that no model made
	JoulesPerStep   float64      `json:"joules_per_step"`
	JoulesPerSample float64      `json:"joules_per_image,omitempty"`
	Basis           energy.Basis `json:"basis"`             // of the joules
	Devices         string       `json:"devices,omitempty"` // that have a task; empty: it is not known

	// Watts is the predicted mean power by meter, and Readings are the meters' counts.
	Watts    map[string]float64 `json:"-"`
	Readings []meter.Reading    `json:"-"`
}

// FiguresOf are the figures of a run: means over [Totals].Counted. Where meters cover all devices the
// joules are theirs: their mean power over the run times the time of these steps. Otherwise the joules follow from the platform's powers.
func FiguresOf(o *Totals, readings []meter.Reading, covered bool) StepFigures {
	w := o.Counted
	f := StepFigures{Basis: o.Basis, Readings: readings}
	if w.Steps == 0 {
		return f
	}
	if covered {
		w.Joules, f.Basis = 0, energy.Measured
		for _, r := range readings {
			w.Joules += watts(r) * w.Time.Seconds()
		}
	}
	f.StepS, f.JoulesPerStep = w.StepS(), w.Joules/float64(w.Steps)
	if w.Samples > 0 && w.Time > 0 {
		f.SamplesPerS, f.JoulesPerSample = float64(w.Samples)/w.Time.Seconds(), w.Joules/float64(w.Samples)
	}
	return f
}

// watts is the mean power of a reading.
func watts(r meter.Reading) float64 { return r.Joules / cmp.Or(r.Seconds, 1) }

// MeteredStep is the energy of a step under one meter, in both worlds: mean power
// times the step, since a meter is far slower than a step. The host, links and devices
// without a meter are in neither.
type MeteredStep struct {
	Of                     string  `json:"of"`
	JoulesPerStep          float64 `json:"joules_per_step"`
	PredictedJoulesPerStep float64 `json:"predicted_joules_per_step"`
	ErrorPercent           float64 `json:"error_percent"`
}

// MeteredSteps compares the readings of a measured run with the prediction.
func MeteredSteps(predicted, measured *StepFigures) []MeteredStep {
	var steps []MeteredStep
	for _, r := range measured.Readings {
		expected, ok := predicted.Watts[r.Of]
		joules := watts(r) * measured.StepS
		if ok && joules > 0 {
			p := expected * predicted.StepS
			steps = append(steps, MeteredStep{r.Of, joules, p, ErrorPercent(p, joules)})
		}
	}
	return steps
}
