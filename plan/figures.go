package plan

import (
	"cmp"

	"dahl/energy"
)

// StepFigures is what a training step takes.
type StepFigures struct {
	StepS          float64      `json:"step_s"`
	ImagesPerS     float64      `json:"images_per_s,omitempty"` // 0: of a graph that no model made
	JoulesPerStep  float64      `json:"joules_per_step"`
	JoulesPerImage float64      `json:"joules_per_image,omitempty"`
	Basis          energy.Basis `json:"basis"`                      // of the joules
	Samples        int          `json:"samples_per_task,omitempty"` // of the busiest layer, where its tile was searched for

	// Watts is the mean power by what a meter may cover, as predicted, and Readings is what
	// meters counted.
	Watts    map[string]float64 `json:"-"`
	Readings []energy.Reading   `json:"-"`
}

// FiguresOf are the figures of a run whose step has a number of images. Where meters cover
// all devices the joules are theirs: their mean power over the run times the step, since a
// meter is far slower than a step. Otherwise the joules are those of the platform's powers
// over the schedule, so those of a recorded step.
func FiguresOf(o *Totals, readings []energy.Reading, covered bool, images int) StepFigures {
	f := StepFigures{StepS: o.StepTime().Seconds(), JoulesPerStep: o.JoulesPerStep(), Basis: o.Report.Basis, Readings: readings}
	if covered {
		f.JoulesPerStep, f.Basis = 0, energy.Measured
		for _, r := range readings {
			f.JoulesPerStep += watts(r) * f.StepS
		}
	}
	if images > 0 && f.StepS > 0 {
		f.ImagesPerS = float64(images) / f.StepS
	}
	if images > 0 {
		f.JoulesPerImage = f.JoulesPerStep / float64(images)
	}
	return f
}

// watts is the mean power of a reading.
func watts(r energy.Reading) float64 { return r.Joules / cmp.Or(r.Seconds, 1) }

// MeteredStep is what a step draws of what one meter covers, in both worlds: mean power
// times the step, since a meter is far slower than a step. The host, links and devices
// without a meter are in neither.
type MeteredStep struct {
	Of                     string  `json:"of"`
	JoulesPerStep          float64 `json:"joules_per_step"`
	PredictedJoulesPerStep float64 `json:"predicted_joules_per_step"`
	ErrorPercent           float64 `json:"error_percent"`
}

// MeteredSteps lays the readings of a measured run beside the prediction.
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
