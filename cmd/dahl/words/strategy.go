package words

import (
	"fmt"
	"io"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/naming"
)

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
