package main

import (
	"fmt"
	"strings"

	"dahl/energy"
	"dahl/plan"
)

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

// meteredText prints them: "gpu0 3.3 J per step (predicted 3.4 J, +3.0 %)".
func meteredText(steps []plan.MeteredStep) string {
	var parts []string
	for _, s := range steps {
		parts = append(parts, fmt.Sprintf("%s %s J per step (predicted %s J, %+.1f %%)", s.Of, threeDigits(s.JoulesPerStep), threeDigits(s.PredictedJoulesPerStep), s.ErrorPercent))
	}
	return strings.Join(parts, ", ")
}

// metered are those of the run. One that has lost a device is no measurement of its plan.
func (t *trainer) metered() []plan.MeteredStep {
	if t.predicted == nil || len(t.lostDevices()) > 0 {
		return nil
	}
	predicted, measured := t.w.figures(t.predicted), t.w.figures(t.measured)
	return plan.MeteredSteps(&predicted, &measured)
}
