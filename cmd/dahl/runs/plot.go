package runs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/cmd/grid"
	"dahl/naming"
	"dahl/plan"
	"dahl/plots"
	"dahl/plots/paper"
	"dahl/rundir"
)

// NewPlot makes the command dahl plot: it draws figures of a run or of an experiment, and prints their paths.
func NewPlot([]string) *cobra.Command {
	var o plotOptions
	var long strings.Builder
	long.WriteString("plot draws the figures of a run directory into it:\n\n")
	for _, f := range plots.Figures() {
		fmt.Fprintf(&long, "  %-10s %s\n", f.Name, f.Sentence)
	}
	long.WriteString(`
Of the directory of an experiment it draws the figures over the grid, by their names under ` + grid.FiguresDir + `/.

For print: a figure of 85 mm with text of 8 points fits a column. Rows and axes take what the
width leaves, and the height unless --height says more. --title "" leaves the head to the
caption of the paper.`)
	cmd := &cobra.Command{
		Use:     "plot DIR [FIGURE…]",
		Short:   "draw figures of a run",
		Long:    long.String(),
		Example: "  dahl plot dahl-demo gantt --format png\n  dahl plot dahl-simulate gantt --steps 3:5\n  dahl plot dahl-simulate gantt energy --format pdf --width 85mm --font-size 8 --title \"\"",
		Args:    cli.WantArgs(1, 100, "the directory of a run, and the figures to draw if not all"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.plot(cmd, args[0], args[1:])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.page.Format, "format", "svg", "`format` of the files: "+naming.OneOf(paper.Formats()))
	f.StringVar(&o.colour, "colour", "", "colour tasks by what they have in `common`: "+naming.OneOf(plots.Colours())+" (default: the first of three that tells them apart)")
	f.StringVar(&o.steps, "steps", "", "`steps` that are shown: 4, 3:5 or all (default: in gantt and compare two steady ones, else all)")
	f.StringVar(&o.width, "width", "", "`width`, such as 85mm, 17.5cm, 7in or 240pt (default: 960pt, which suits a screen)")
	f.StringVar(&o.height, "height", "", "`height`, likewise (default: what the contents need)")
	f.Float64Var(&o.page.FontPt, "font-size", 0, "size of the text of axes and legends in `points`; other text and all lines are in proportion (default: 8.5)")
	f.StringVar(&o.title, "title", "", "`text` in the place of the title and the line below it; empty: none (default: both)")
	f.IntVar(&o.page.DPI, "dpi", 0, "`dots` per inch of a png (default: 144)")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.Replace(name, "color", "colour", 1))
	})
	return cmd
}

// plotOptions are the flags of plot.
type plotOptions struct {
	page                                paper.Page
	colour, steps, width, height, title string
}

// FigureNames are the figures of dahl plot for a run, in the order of its help.
func FigureNames() []string {
	return cli.Texts(plots.Figures(), func(f plots.Figure) string { return f.Name })
}

// read checks the flags and makes the page of them.
func (o *plotOptions) read(cmd *cobra.Command) (err error) {
	if err := cli.CheckName("format", o.page.Format, paper.Formats()); err != nil {
		return err
	}
	if o.colour != "" {
		if err := cli.CheckName("colour", o.colour, plots.Colours()); err != nil {
			return err
		}
	}
	if o.page.WidthPt, err = pageLength("width", o.width); err != nil {
		return err
	}
	if o.page.HeightPt, err = pageLength("height", o.height); err != nil {
		return err
	}
	given := cmd.Flags().Changed
	if points := o.page.FontPt; given("font-size") && !(points >= 3 && points <= 72) {
		return cli.InputErrorf("--font-size %g: want 3 to 72 points", points)
	}
	if dots := o.page.DPI; given("dpi") && (dots < 20 || dots > 2400) {
		return cli.InputErrorf("--dpi %d: want 20 to 2400", dots)
	}
	if given("dpi") && o.page.Format != "png" {
		return cli.InputErrorf("--dpi %d: %s has no dots; add --format png", o.page.DPI, o.page.Format)
	}
	if given("title") {
		o.page.Title = &o.title
	}
	return nil
}

// pageLength reads a length on paper in points; an empty one is 0.
func pageLength(flag, text string) (points float64, err error) {
	if text == "" {
		return 0, nil
	}
	for _, u := range []struct {
		name   string
		points float64
	}{{"mm", 72 / 25.4}, {"cm", 720 / 25.4}, {"in", 72}, {"pt", 1}} {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		const least, most = 1.0, 14400.0 // no PDF is greater
		if points := v * u.points; err == nil && points >= least && points <= most {
			return points, nil
		}
		return 0, cli.InputErrorf("--%s %s: want a length from 1pt to 5080mm", flag, text)
	}
	return 0, cli.InputErrorf("--%s %s: want a number with mm, cm, in or pt, such as 85mm", flag, text)
}

// plot draws the figures of a directory with the names; no names mean all that it has.
func (o *plotOptions) plot(cmd *cobra.Command, path string, names []string) error {
	if err := o.read(cmd); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(path, grid.HeadFile)); err == nil {
		if o.steps != "" || o.colour != "" {
			return cli.InputErrorf("%s is an experiment, whose figures have no --steps and no --colour; its runs are in %s", path, filepath.Join(path, grid.CellsDir))
		}
		return grid.Plot(cmd.OutOrStdout(), path, names, o.page)
	}
	figures := plots.Figures()
	if len(names) > 0 {
		figures = nil
	}
	for _, n := range names {
		f, err := plots.FigureByName(n)
		if err != nil {
			return cli.AsInput(err)
		}
		figures = append(figures, f)
	}
	in, err := o.input(cmd.Context(), path)
	if err != nil {
		return err
	}
	var drawn []string
	err = record.ExtendRun(path, func(d *rundir.Dir) error {
		for _, f := range figures {
			switch err := record.Draw(d, f, in, o.page); {
			case err == nil:
				drawn = append(drawn, filepath.Join(path, f.Name+"."+o.page.Format))
			case errors.Is(err, paper.ErrPage):
				return cli.InputErrorf("%s: %w", f.Name, err)
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

// input reads a run, and the prediction of it where there is one.
func (o *plotOptions) input(ctx context.Context, path string) (in plots.Input, err error) {
	r, err := record.LoadRun(path)
	if err != nil {
		return in, err
	}
	by := plots.ColourBy(o.colour)
	if in.Run, err = record.NewPlotRun(r.Problem, r.Schedule, r.Summary); err != nil {
		return in, err
	}
	in.Run.ColourBy = by
	if in.Run.Show, err = stepRange(o.steps, in.Run); err != nil {
		return in, err
	}
	if err := r.Figures(&in); err != nil {
		return in, cli.AsInput(err)
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
