package runs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/naming"
	"dahl/plan"
	"dahl/plots"
	"dahl/rundir"
)

func NewPlot([]string) *cobra.Command {
	var format, colour, steps string
	var long strings.Builder
	long.WriteString("plot draws the figures of a run directory into it:\n\n")
	for _, f := range plots.Figures() {
		fmt.Fprintf(&long, "  %-10s %s\n", f.Name, f.Sentence)
	}
	cmd := &cobra.Command{
		Use:     "plot DIR [FIGURE…]",
		Short:   "draw figures of a run",
		Long:    long.String(),
		Example: "  dahl plot dahl-demo gantt --format png\n  dahl plot dahl-simulate gantt --steps 3:5",
		Args:    cli.WantArgs(1, 1+len(plots.Figures()), "the directory of a run, and the figures to draw if not all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return plotRun(cmd, args[0], args[1:], format, colour, steps)
		},
	}
	cmd.Flags().StringVar(&format, "format", "svg", "`format` of the files: "+naming.OneOf(plots.Formats()))
	cmd.Flags().StringVar(&colour, "colour", "", "colour tasks by what they have in `common`: "+naming.OneOf(plots.Colours())+" (default: the first of three that tells them apart)")
	cmd.Flags().StringVar(&steps, "steps", "", "`steps` that gantt and compare show: 4, 3:5 or all (default: two steady ones)")
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.Replace(name, "color", "colour", 1))
	})
	return cmd
}

func FigureNames() []string {
	return cli.Texts(plots.Figures(), func(f plots.Figure) string { return f.Name })
}

func plotRun(cmd *cobra.Command, path string, names []string, format, colour, steps string) error {
	if err := cli.CheckName("format", format, plots.Formats()); err != nil {
		return err
	}
	by := plots.ColourBy(colour)
	if by != "" {
		if err := cli.CheckName("colour", colour, plots.Colours()); err != nil {
			return err
		}
	}
	var figures []plots.Figure
	for _, n := range names {
		f, err := plots.FigureByName(n)
		if err != nil {
			return cli.AsInput(err)
		}
		figures = append(figures, f)
	}
	if figures == nil {
		figures = plots.Figures()
	}
	in, err := plotInput(cmd.Context(), path, by, steps)
	if err != nil {
		return err
	}
	var drawn []string
	err = record.ExtendRun(path, func(d *rundir.Dir) error {
		for _, f := range figures {
			switch err := record.Draw(d, f, in, format); {
			case err == nil:
				drawn = append(drawn, filepath.Join(path, f.Name+"."+format))
			case !errors.Is(err, plots.ErrNoData):
				return err
			case len(names) > 0:
				return cli.AsInput(err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range drawn {
		fmt.Fprintln(cmd.OutOrStdout(), name)
	}
	return nil
}

// plotInput reads a run, and the prediction of it where there is one.
func plotInput(ctx context.Context, path string, by plots.ColourBy, steps string) (in plots.Input, err error) {
	r, err := record.LoadRun(path)
	if err != nil {
		return in, err
	}
	if in.Run, err = record.NewPlotRun(r.Problem, r.Schedule, r.Summary); err != nil {
		return in, err
	}
	in.Run.ColourBy = by
	if in.Run.Show, err = stepRange(steps, in.Run); err != nil {
		return in, err
	}
	predicted, err := r.Predicted()
	if err != nil || predicted == nil {
		return in, err
	}
	c, _, err := compared(ctx, r, nil, plan.CompareUnsplit)
	if err != nil {
		return in, err
	}
	in.Compared = pictured(c, r.Summary.Shown)
	if in.Predicted, err = record.NewPlotRun(r.Problem, c.Predicted, r.Summary); err == nil {
		in.Predicted.ColourBy = by
	}
	return in, err
}

// stepRange reads which steps of a run are to be shown; empty means that it leaves the choice to the figure.
func stepRange(text string, r *plots.Run) (s plots.StepRange, err error) {
	all := r.AllSteps()
	switch text {
	case "":
		return s, nil
	case "all":
		return all, nil
	}
	from, to, several := strings.Cut(text, ":")
	if !several {
		to = from
	}
	first, errFirst := strconv.Atoi(from)
	last, errLast := strconv.Atoi(to)
	if errFirst != nil || errLast != nil || first > last {
		return s, cli.InputErrorf("--steps %q: want a step, two with a colon between them, as 3:5, or all", text)
	}
	if first < all.First || last > all.Last {
		return s, cli.InputErrorf("--steps %s: the run shows steps %d to %d; write --steps %d:%d for all of them", text, all.First, all.Last, all.First, all.Last)
	}
	return plots.StepRange{First: first, Last: last}, nil
}
