package main

import (
	"fmt"
	"io"

	"dahl/cmd/cli"
	"dahl/plan"
)

// maxSamples bounds --samples.
const maxSamples = 1_000_000

// printSamples says where a run lies whose durations are drawn.
func printSamples(out io.Writer, s *plan.Samples) {
	if s.Missing != "" {
		fmt.Fprintf(out, "samples   none: %s\n", s.Missing)
		return
	}
	run, step, joules := &s.Makespan, &s.Period, &s.Energy
	fmt.Fprintf(out, "samples   %d with seed %d: run %s, 5–95 %% %s to %s; step %s, %s to %s; energy %s J, %s to %s J\n", s.Count, s.Seed,
		cli.ShowTime(run.Median), cli.ShowTime(run.Low), cli.ShowTime(run.High), cli.ShowTime(step.Median), cli.ShowTime(step.Low), cli.ShowTime(step.High),
		cli.ThreeDigits(joules.Median), cli.ThreeDigits(joules.Low), cli.ThreeDigits(joules.High))
}

// printSources says where the durations of a step come from.
func printSources(out io.Writer, m *plan.Sources) {
	fmt.Fprintf(out, "models    tasks per step: %d measured, %d fitted, %d by roofline, %d given by the graph", m.Measured, m.Fitted, m.Roofline, m.Given)
	if m.Measured+m.Fitted > 0 {
		fmt.Fprintf(out, "; their sum ±%.1f %%", 100*m.RelError)
	}
	if m.Unknown > 0 {
		fmt.Fprintf(out, "; %.0f %% of it is roofline, without an error bar", 100*m.Unknown)
	}
	fmt.Fprintln(out)
}
