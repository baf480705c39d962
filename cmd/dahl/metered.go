package main

import (
	"maps"
	"slices"

	"dahl/energy"
	"dahl/energy/meter"
	"dahl/plan"
)

// meteredWatts is the mean power of what a meter may cover, by the platform's powers.
// Processors are left out where some of their units are: the meter counts those, too.
func (w *workload) meteredWatts(r *energy.Report) map[string]float64 {
	watts := r.MeterWatts(w.Platform)
	if w.Options.Devices != "" || w.opts.Workers != 0 {
		delete(watts, energy.ProcessorsMeter)
	}
	return watts
}

// withReadings returns the report of a run's schedule with the readings of meters over the run.
// Readings are compared with the model where the run followed one plan on all devices that the
// meters cover.
func (w *workload) withReadings(r *energy.Report, readings []meter.Reading, lost bool) *energy.Report {
	var compared []string
	if !lost {
		compared = slices.Collect(maps.Keys(w.meteredWatts(r)))
	}
	with := *r
	with.AddReadings(w.Platform, readings, compared)
	return &with
}

// metered returns the metered steps of the run. A run that has lost a device is no measurement of
// its plan.
func (t *trainer) metered() []plan.MeteredStep {
	if t.Predicted == nil || len(t.Losses) > 0 {
		return nil
	}
	predicted, measured := t.w.figures(t.Predicted), t.w.figures(t.Measured, t.Readings...)
	return plan.MeteredSteps(&predicted, &measured)
}
