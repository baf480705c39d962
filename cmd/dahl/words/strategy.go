package words

import (
	"fmt"
	"io"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/naming"
	"dahl/plan/strategy"
)

// StepText says a step by closed formulas in words.
func StepText(s *strategy.Step) string {
	text := func(seconds float64) string { return cli.ShortTime(cli.Seconds(seconds)) }
	says := text(s.Slowest) + " of the slowest shares"
	if s.Pipeline {
		says = fmt.Sprintf("%d times %s of the slowest stage", s.Times(), text(s.Slowest))
	}
	switch {
	case s.Messages > 0 && s.Pipeline:
		says += fmt.Sprintf(" (%s of these messages)", text(s.Messages))
	case s.Messages > 0:
		says += fmt.Sprintf(", %s of messages", text(s.Messages))
	case s.Gradients == 0:
		says += ", transfers free"
	}
	if s.Gradients > 0 {
		says += fmt.Sprintf(", %s of gradients", text(s.Gradients))
	}
	if s.Pipeline {
		says += fmt.Sprintf("; bubble %d/%d", s.Gaps(), s.Times())
	}
	return says
}

// PrintStrategy prints the time of a step by the cost model of a paper, with its stages, and how a pipeline fills and drains.
func PrintStrategy(out io.Writer, s *record.Summary) {
	if of := s.Strategy; of != nil {
		each := "a step"
		if of.Minibatches > 1 {
			each = fmt.Sprintf("a mini-batch, %d of which are a step", of.Minibatches)
		}
		fmt.Fprintf(out, "model_s   %.6g s for %s, by a formula and not simulated: %s\n", of.ModelS, each, of.Says)
		for _, stage := range of.Stages {
			fmt.Fprintf(out, "stage     %s, %s on %s: %s by the formula\n", stage.Name, naming.Count(stage.Layers, "part"), strings.Join(stage.On, ", "), cli.ShortTime(cli.Seconds(stage.Seconds)))
		}
	}
	if p := s.Pipeline; p != nil {
		fmt.Fprintf(out, "pipeline  fills for %s, then %s per step, drains for %s; tasks run up to %s behind others\n",
			cli.ShortTime(cli.Seconds(p.Fill)), cli.ShortTime(cli.Seconds(p.Steady)), cli.ShortTime(cli.Seconds(p.Drain)), naming.Count(int(p.Lag), "step"))
	}
}
