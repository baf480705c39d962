package main

import (
	"fmt"
	"strings"

	"dahl/energy"
	"dahl/plan"
)

// meteredStep is what a step draws of what one meter covers, in both worlds: mean power
// times the step, since a meter is far slower than a step. The host, links and devices
// without a meter are in neither.
type meteredStep struct {
	Of                     string  `json:"of"`
	JoulesPerStep          float64 `json:"joules_per_step"`
	PredictedJoulesPerStep float64 `json:"predicted_joules_per_step"`
	ErrorPercent           float64 `json:"error_percent"`
}

// meteredWatts is the mean power of what a meter may cover, by the platform's powers.
// Processors are left out where some of their units are: the meter counts those, too.
func (w *workload) meteredWatts(r *energy.Report) map[string]float64 {
	watts := map[string]float64{}
	for i, e := range r.ByDevice {
		of := e.Name
		if w.platform.Devices[i].Kind == "cpu" {
			of = processorsMeter
		}
		if e.Basis != energy.Unavailable && (of != processorsMeter || w.opts.Devices == "" && w.opts.Workers == 0) {
			watts[of] += ratio(e.Joules, r.MakespanSeconds)
		}
	}
	return watts
}

// meteredSteps lays the readings of a measured run beside the prediction.
func meteredSteps(predicted, measured *stepFigures) []meteredStep {
	var steps []meteredStep
	for _, r := range measured.readings {
		watts, ok := predicted.watts[r.Of]
		joules := ratio(r.Joules, r.Seconds) * measured.StepS
		if ok && joules > 0 {
			p := watts * predicted.StepS
			steps = append(steps, meteredStep{r.Of, joules, p, plan.ErrorPercent(p, joules)})
		}
	}
	return steps
}

// meteredText prints them: "gpu0 3.3 J per step (predicted 3.4 J, +3.0 %)".
func meteredText(steps []meteredStep) string {
	var parts []string
	for _, s := range steps {
		parts = append(parts, fmt.Sprintf("%s %s J per step (predicted %s J, %+.1f %%)", s.Of, threeDigits(s.JoulesPerStep), threeDigits(s.PredictedJoulesPerStep), s.ErrorPercent))
	}
	return strings.Join(parts, ", ")
}

// metered are those of the run. One that has lost a device is no measurement of its plan.
func (t *trainer) metered() []meteredStep {
	if t.predicted == nil || len(t.lostDevices()) > 0 {
		return nil
	}
	predicted, measured := t.w.figures(t.predicted), t.w.figures(t.measured)
	return meteredSteps(&predicted, &measured)
}
