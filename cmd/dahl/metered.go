package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/energy"
	"dahl/plan"
	"dahl/platform"
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

// withReadings is the report of a run's schedule with what meters counted over the run, beside the
// model where the run followed one plan on all that the meters cover.
func (w *workload) withReadings(r *energy.Report, readings []energy.Reading, lost bool) *energy.Report {
	var compared []string
	if !lost {
		compared = slices.Collect(maps.Keys(w.meteredWatts(r)))
	}
	with := *r
	with.AddReadings(w.Platform, readings, compared)
	return &with
}

// meteredText prints them: "gpu0 3.3 J per step (predicted 3.4 J, +3.0 %)".
func meteredText(steps []plan.MeteredStep) string {
	return strings.Join(cli.Texts(steps, func(s plan.MeteredStep) string {
		return fmt.Sprintf("%s %s per step (predicted %s, %+.1f %%)", s.Of, shortJoules(s.JoulesPerStep), shortJoules(s.PredictedJoulesPerStep), s.ErrorPercent)
	}), ", ")
}

// metered are those of the run. One that has lost a device is no measurement of its plan.
func (t *trainer) metered() []plan.MeteredStep {
	if t.Predicted == nil || len(t.Losses) > 0 {
		return nil
	}
	predicted, measured := t.w.figures(t.Predicted), t.w.figures(t.Measured, t.Readings...)
	return plan.MeteredSteps(&predicted, &measured)
}

// covers reports whether there is a reading for every device that runs layers, so that
// their sum stands for the run.
func covers(readings []energy.Reading, p *platform.Platform) bool {
	missing := func(d platform.Device) bool {
		return !d.PlacedOnly && !slices.ContainsFunc(readings, func(r energy.Reading) bool { return r.Of == energy.MeterOf(&d) })
	}
	return len(readings) > 0 && !slices.ContainsFunc(p.Devices, missing)
}

// printMeters says of each meter that has not simply counted what became of it, and what that means.
func printMeters(out io.Writer, states []energy.MeterState, readings []energy.Reading) {
	for i := range states {
		m := &states[i]
		if m.Status == energy.Counts {
			continue
		}
		measured := slices.ContainsFunc(readings, func(r energy.Reading) bool { return r.Of == m.Of })
		switch text := m.String(); {
		case m.Whole() || m.Unused || measured:
			fmt.Fprintf(out, "meter     %s\n", text)
		default:
			fmt.Fprintf(out, "meter     %s; so the joules of %s are not measured\n", text, m.Of)
		}
	}
}

// readingsText prints what each meter counted: "12.1 J of processors by RAPL, 40 J of
// gpu0 by … (38 J by …: 5 % apart)".
func readingsText(readings []energy.Reading) string {
	return strings.Join(cli.Texts(readings, func(r energy.Reading) string {
		text := fmt.Sprintf("%s ± %s J of %s by %s", cli.ThreeDigits(r.Joules), cli.ThreeDigits(r.ErrorJoules), r.Of, r.Meter)
		if s := r.Second; s != nil {
			text += fmt.Sprintf(" (%s J by %s: %+.1f %%)", cli.ThreeDigits(s.Joules), s.Meter, s.DisagreementPercent)
		}
		return text
	}), ", ")
}
