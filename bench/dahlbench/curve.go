package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/execute"
	"dahl/nn"
	"dahl/plan"
	"dahl/plots"
	"dahl/rundir/durable"
	"dahl/schedule"
	"dahl/simulate"
	"dahl/train"
)

// curveBench predicts and measures the training step at several values of one
// number, such as a tile or the batch.
type curveBench struct {
	network, dtype string
	workers        int
	options        train.Options // of all points
	perPoint       time.Duration // of calibration
	repeats        int
	out            string // folder; empty: no files

	model  *nn.Model
	data   train.Data
	name   string // of its files
	xLabel string
	y      plots.Quantity
	values func() ([]curvePoint, error) // by ascending x, before anything is measured
	points []curvePoint
}

// curvePoint is one value: its decisions, the predicted time of a step and the
// measured ones.
type curvePoint struct {
	x         int
	options   train.Options
	w         *train.Workload
	predicted time.Duration
	measured  []time.Duration
}

func newGranularity() *cobra.Command {
	c := curveBench{name: "granularity", y: plots.StepTime}
	c.values = c.overTiles
	cmd := c.command(&cobra.Command{
		Use:   "granularity --model NAME",
		Short: "step time over tile sizes, predicted and measured",
		Long: `granularity takes the default lowering and multiplies the samples per task of all
layers by powers of two, as --lowering best of dahl does. For each tile size it calibrates this machine, predicts
the time of a training step, and measures it in runs that go round all sizes. The
table says what tile the prediction finds best and what it costs to believe it;
--out also keeps the lowering of every point, for --lowering of dahl.`,
		Example: "  dahl-bench granularity --model lenet5 --batch 64 --out granularity-lenet5",
	})
	cmd.Flags().IntVar(&c.options.Batch, "batch", 0, "images per training step (default: the model's)")
	return cmd
}

func newBatch() *cobra.Command {
	c := curveBench{name: "batch", xLabel: "images per batch", y: plots.Rate}
	var batches []int
	c.values = func() ([]curvePoint, error) { return c.overBatches(batches) }
	cmd := c.command(&cobra.Command{
		Use:   "batch --model NAME",
		Short: "training speed over batch sizes, predicted and measured",
		Long: `batch calibrates this machine for every batch size, predicts the images per second
of training, measures them in runs that go round all sizes, and draws both curves.`,
		Example: "  dahl-bench batch --model lenet5 --out batch-lenet5",
	})
	cmd.Flags().IntSliceVar(&batches, "batches", []int{8, 16, 32, 64, 128, 256}, "batch sizes")
	return cmd
}

// command completes the command of a curve.
func (c *curveBench) command(cmd *cobra.Command) *cobra.Command {
	f := cmd.Flags()
	c.options.Seed = 1
	f.StringVar(&c.network, "model", "", "network: a `name` (see dahl graph --list) or a TOML model file")
	f.StringVar(&c.dtype, "dtype", "float32", "element type: float32 or float64")
	f.IntVar(&c.workers, "workers", 0, "CPU cores to use (0: all)")
	f.DurationVar(&c.perPoint, "time", 4*time.Second, "about how long to calibrate for each point")
	f.IntVar(&c.repeats, "repeats", 5, "measured runs of each point")
	f.StringVar(&c.out, "out", "", "`folder` for the table and the figure")
	cli.Must(cmd.MarkFlagRequired("model"))
	return measurement(cmd, c.run)
}

// run calibrates and predicts every point before it measures them in turn, each time compiled
// and allocated anew.
func (c *curveBench) run(ctx context.Context, stdout, _ io.Writer) (err error) {
	if err := c.prepare(); err != nil {
		return err
	}
	for turn := range c.repeats + 1 {
		for i := range c.points {
			p, took := &c.points[i], (*schedule.Schedule)(nil)
			if turn == 0 {
				err = c.predict(ctx, p)
			} else if took, err = measured(ctx, p.w, 500*time.Millisecond); err == nil {
				p.measured = append(p.measured, plan.StepTime(took))
			}
			if err != nil {
				return fmt.Errorf("%s %d: %w", c.xLabel, p.x, err)
			}
		}
	}
	return c.finish(stdout)
}

// prepare checks the flags, loads the network and its images, and makes the folder.
func (c *curveBench) prepare() (err error) {
	if c.perPoint <= 0 {
		return cli.InputErrorf("--time %v: want a positive time", c.perPoint)
	}
	err = cmp.Or(cli.CheckNumbers("repeats", c.repeats), cli.CheckNotNegative("batch", c.options.Batch), cli.CheckNotNegative("workers", c.workers))
	if err != nil {
		return err
	}
	if c.options.Type, err = cli.RealType(c.dtype); err != nil {
		return err
	}
	if c.model, c.data, err = network(c.network, 0); err != nil {
		return err
	}
	if c.points, err = c.values(); err != nil || c.out == "" {
		return err
	}
	return cli.AsInput(os.MkdirAll(c.out, 0o777))
}

func (c *curveBench) overBatches(batches []int) (points []curvePoint, err error) {
	slices.Sort(batches)
	for _, batch := range slices.Compact(batches) {
		o := c.options
		o.Batch = batch
		points = append(points, curvePoint{x: batch, options: o})
	}
	return points, cli.CheckNumbers("batches", batches...)
}

func (c *curveBench) overTiles() (points []curvePoint, err error) {
	c.options.Batch = cmp.Or(c.options.Batch, c.model.Defaults.Batch)
	here, err := machine("", "", 0)
	if err != nil {
		return nil, err
	}
	t, err := train.Tilings(c.model, here, c.options.Batch, c.options.Type)
	if err != nil {
		return nil, err
	}
	c.xLabel = "samples per task of " + t.Layer
	for _, tiling := range t.All() {
		if !tiling.WholeSums {
			o, l := c.options, t.Lowering(tiling)
			o.Lowering = &l
			points = append(points, curvePoint{x: tiling.Samples, options: o})
		}
	}
	return points, nil
}

// predict calibrates this machine for one point, by kernels alone and in steps of its
// own, and predicts its step.
func (c *curveBench) predict(ctx context.Context, p *curvePoint) error {
	if l := p.options.Lowering; l != nil && c.out != "" {
		path := filepath.Join(c.out, fmt.Sprintf("lowering-%d.toml", p.x))
		if err := durable.Write(path, func(w io.Writer) error { return nn.WriteLowering(w, *l) }); err != nil {
			return err
		}
	}
	here, err := machine("", "", c.workers)
	if err != nil {
		return err
	}
	calibrated, err := train.Calibrate(ctx, c.model, c.data, p.options, train.Calibration{
		CalibrateOptions: execute.CalibrateOptions{Platform: here, MaxTime: c.perPoint}, AllUnits: c.workers > 0})
	if err != nil {
		return err
	}
	if p.w, err = train.New(c.model, c.data, calibrated.Platform, p.options); err != nil {
		return err
	}
	const steps = 20
	s, err := plan.Simulate(ctx, p.w.Decision, 0, steps, simulate.Options{})
	if err == nil {
		p.predicted = plan.StepTime(s)
	}
	return err
}

// finish prints the table, and writes it and the figure to the folder.
func (c *curveBench) finish(stdout io.Writer) error {
	figure := c.figure()
	table := c.table(figure)
	if _, err := io.WriteString(stdout, table); err != nil || c.out == "" {
		return err
	}
	path := filepath.Join(c.out, c.name)
	err := durable.Write(path+".md", func(w io.Writer) error {
		_, err := io.WriteString(w, table)
		return err
	})
	for _, format := range []string{"svg", "png"} {
		err = cmp.Or(err, durable.Write(path+"."+format, func(w io.Writer) error { return plots.DrawCurves(w, format, figure) }))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "files: %s.md, .svg and .png in %s\n", c.name, c.out)
	return nil
}

func (c *curveBench) table(figure *plots.Curves) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| %s | tasks per step | predicted step | measured step | error | repeat spread | measured images/s |\n", figure.Summary, c.xLabel)
	fmt.Fprintln(&b, "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, p := range c.points {
		step := median(p.measured)
		fmt.Fprintf(&b, "| %d | %d | %s | %s | %+.1f %% | %.1f %% | %.0f |\n", p.x, p.w.Program.Graphs[0].NumTasks(), cli.ShortTime(p.predicted), cli.ShortTime(step),
			plan.ErrorPercent(float64(p.predicted), float64(step)), 100*spread(p.measured), float64(p.w.Options.Batch)/step.Seconds())
	}
	chosen, best, cost := c.choice(figure)
	fmt.Fprintf(&b, "\nBest by prediction: %d, measured there %s per step; best by measurement: %d, %s. Going by the prediction costs %.1f %%.\n",
		chosen.x, cli.ShortTime(median(chosen.measured)), best.x, cli.ShortTime(median(best.measured)), 100*cost)
	return b.String()
}

// choice is the point that is best by prediction, the one that is by measurement, and by how
// much that is better, as a fraction.
func (c *curveBench) choice(figure *plots.Curves) (chosen, best *curvePoint, cost float64) {
	predicted, measured := &figure.Series[0], &figure.Series[1]
	i, j := predicted.Best(c.y), measured.Best(c.y)
	worse, better := measured.Points[i].Y, measured.Points[j].Y
	if c.y == plots.Rate {
		worse, better = better, worse
	}
	return &c.points[i], &c.points[j], worse/better - 1
}

// figure has a prediction and a measurement of every point.
func (c *curveBench) figure() *plots.Curves {
	first := c.points[0].w
	summary := fmt.Sprintf("%s, %s, %d workers", c.network, first.Options.Type, len(first.Platform.Workers))
	if c.y == plots.StepTime {
		summary += fmt.Sprintf(", batch %d", first.Options.Batch)
	}
	predicted, measured := plots.Series{Name: "predicted", Dashed: true}, plots.Series{Name: "measured"}
	for i := range c.points {
		p := &c.points[i]
		predicted.Points = append(predicted.Points, c.plotted(p, p.predicted))
		measured.Points = append(measured.Points, c.plotted(p, p.measured...))
	}
	return &plots.Curves{Title: fmt.Sprintf("%s: %s over %s", c.network, c.y, c.xLabel), Summary: fmt.Sprintf("%s; median of %d runs", summary, c.repeats),
		XLabel: c.xLabel, Y: c.y, Series: []plots.Series{predicted, measured}}
}

// plotted shows step times of a point in what the figure is of: seconds, or images per second.
func (c *curveBench) plotted(p *curvePoint, steps ...time.Duration) plots.CurvePoint {
	value := func(step time.Duration) float64 {
		if c.y == plots.Rate {
			return float64(p.w.Options.Batch) / step.Seconds()
		}
		return step.Seconds()
	}
	first, last := value(slices.Min(steps)), value(slices.Max(steps))
	return plots.CurvePoint{X: float64(p.x), Y: value(median(steps)), Low: min(first, last), High: max(first, last)}
}
