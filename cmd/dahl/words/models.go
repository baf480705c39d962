package words

import (
	"fmt"
	"io"

	"dahl/cmd/cli"
	"dahl/schedule/explain"
)

// ErrorBar says how far the durations of the tasks are known, for the end of a line.
func ErrorBar(m *explain.ModelError) string {
	text, but := "", ""
	if m.Unknown > 0 {
		but = " but those estimated"
	}
	if m.Measured+m.Fitted > 0 {
		text = fmt.Sprintf(", ±%.1f %% (the kernels' times%s)", knownPercent(m), but)
	}
	if m.Unknown > 0 {
		text += fmt.Sprintf("; %.0f %% of its time is estimated by peak rates, not measured", 100*m.Unknown)
	}
	return text
}

// knownPercent is the error of the part of a step whose durations have error bars. Of the whole it is less, as if the rest were
// exact.
func knownPercent(m *explain.ModelError) float64 { return 100 * cli.Ratio(m.RelError, 1-m.Unknown) }

// PrintSources says where the durations of a step come from.
func PrintSources(out io.Writer, m *explain.ModelError) {
	fmt.Fprintf(out, "models    tasks per step: %d measured, %d fitted, %d by roofline, %d given by the graph", m.Measured, m.Fitted, m.Roofline, m.Given)
	if m.Measured+m.Fitted > 0 {
		fmt.Fprintf(out, "; the sum of those measured or fitted ±%.1f %%", knownPercent(m))
	}
	if m.Unknown > 0 {
		fmt.Fprintf(out, "; %.0f %% of the time is roofline, without an error bar", 100*m.Unknown)
	}
	fmt.Fprintln(out)
}
