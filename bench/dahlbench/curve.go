package main

import (
	"cmp"
	"context"
	"errors"
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
	points []*curvePoint
}

// curvePoint is one value: its decisions, the predicted time of a step and the
// measured ones, sorted at the end.
type curvePoint struct {
	x         int
	w         *train.Workload
	predicted time.Duration
	measured  []time.Duration
}

func (c *curveBench) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	c.options.Seed = 1
	f.StringVar(&c.network, "model", "", "network: a `name` (see dahl graph --list) or a TOML model file")
	f.StringVar(&c.dtype, "dtype", "float32", "element type: float32 or float64")
	f.IntVar(&c.workers, "workers", 0, "CPU cores to use (0: all)")
	f.DurationVar(&c.perPoint, "time", 4*time.Second, "about how long to calibrate for each point")
	f.IntVar(&c.repeats, "repeats", 5, "measured runs of each point")
	f.StringVar(&c.out, "out", "", "`folder` for the table and the figure")
	cli.Must(cmd.MarkFlagRequired("model"))
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
	if c.model, c.data, err = network(c.network, 0); err != nil || c.out == "" {
		return err
	}
	return cli.AsInput(os.MkdirAll(c.out, 0o777))
}

// add calibrates this machine for one point, by kernels alone and in steps of its
// own, and predicts its step before any run of measure.
func (c *curveBench) add(ctx context.Context, x int, o train.Options) error {
	machine, err := cores(c.workers)
	if err != nil {
		return err
	}
	calibrated, err := train.Calibrate(ctx, c.model, c.data, o, train.Calibration{
		CalibrateOptions: execute.CalibrateOptions{Platform: machine, MaxTime: c.perPoint}, AllUnits: c.workers > 0})
	if err != nil {
		return err
	}
	p := &curvePoint{x: x}
	if p.w, err = train.New(c.model, c.data, calibrated.Platform, o); err != nil {
		return err
	}
	const steps = 20
	s, err := plan.Simulate(ctx, p.w.Decision, 0, steps, simulate.Options{})
	if err != nil {
		return err
	}
	p.predicted = plan.StepTime(s)
	c.points = append(c.points, p)
	return nil
}

// measure runs all points in turn, each time compiled and allocated anew.
func (c *curveBench) measure(ctx context.Context) error {
	for range c.repeats {
		for _, p := range c.points {
			if err := p.measure(ctx); err != nil {
				return fmt.Errorf("%s %d: %w", c.xLabel, p.x, err)
			}
		}
	}
	for _, p := range c.points {
		slices.Sort(p.measured)
	}
	return nil
}

// measure adds the step time of one run of about half a second, of at least 20 and
// at most 1000 steps.
func (p *curvePoint) measure(ctx context.Context) (err error) {
	t, err := p.w.Start()
	if err != nil {
		return err
	}
	defer t.Close()
	steps := int(max(20, min(1000, 500*time.Millisecond/max(1, p.predicted))))
	batch := p.w.Options.Batch
	s, err := t.RunSteps(ctx, 0, steps, train.Shuffled(p.w.Data.Train.Len(), batch*steps, p.w.Options.Seed), true)
	if err != nil {
		return err
	}
	p.measured = append(p.measured, plan.StepTime(s))
	return nil
}

func (p *curvePoint) median() time.Duration { return p.measured[len(p.measured)/2] }

// best is the point with the least value; by rate, with the most images per second.
func (c *curveBench) best(of func(*curvePoint) time.Duration) *curvePoint {
	return slices.MinFunc(c.points, func(a, b *curvePoint) int {
		x, y := c.value(a, of(a)), c.value(b, of(b))
		if c.y == plots.Rate {
			x, y = y, x
		}
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
}

// value is a step time in what the figure shows: seconds, or images per second.
func (c *curveBench) value(p *curvePoint, step time.Duration) float64 {
	if c.y == plots.Rate {
		return float64(p.w.Options.Batch) / step.Seconds()
	}
	return step.Seconds()
}

// finish prints the table, and writes it and the figure to the folder.
func (c *curveBench) finish(stdout io.Writer) error {
	var table strings.Builder
	c.print(&table)
	if _, err := io.WriteString(stdout, table.String()); err != nil || c.out == "" {
		return err
	}
	err := errors.Join(
		cli.WriteFile(filepath.Join(c.out, c.name+".md"), []byte(table.String())),
		plots.DrawCurves(filepath.Join(c.out, c.name+".svg"), c.figure()),
		plots.DrawCurves(filepath.Join(c.out, c.name+".png"), c.figure()))
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "files: %s.md, .svg and .png in %s\n", c.name, c.out)
	return nil
}

func (c *curveBench) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n| %s | tasks per step | predicted step | measured step | error | repeat spread | measured images/s |\n", c.summary(), c.xLabel)
	fmt.Fprintln(w, "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, p := range c.points {
		median := p.median()
		spread := float64(p.measured[len(p.measured)-1]-p.measured[0]) / float64(median)
		fmt.Fprintf(w, "| %d | %d | %s | %s | %+.1f %% | %.1f %% | %.0f |\n", p.x, p.w.Program.Graphs[0].NumTasks(),
			cli.ShortTime(p.predicted), cli.ShortTime(median), plan.ErrorPercent(float64(p.predicted), float64(median)), 100*spread, float64(p.w.Options.Batch)/median.Seconds())
	}
	predicted := c.best(func(p *curvePoint) time.Duration { return p.predicted })
	measured := c.best((*curvePoint).median)
	fmt.Fprintf(w, "\nBest by prediction: %d, measured there %s per step; best by measurement: %d, %s. Going by the prediction costs %.1f %%.\n",
		predicted.x, cli.ShortTime(predicted.median()), measured.x, cli.ShortTime(measured.median()), 100*c.cost(predicted, measured))
}

// cost is by how much the measured best is better than what the prediction chose,
// as a fraction.
func (c *curveBench) cost(chosen, best *curvePoint) float64 {
	ratio := c.value(chosen, chosen.median()) / c.value(best, best.median())
	if c.y == plots.Rate {
		ratio = 1 / ratio
	}
	return ratio - 1
}

// summary says what all points have in common.
func (c *curveBench) summary() string {
	o := &c.points[0].w.Options
	text := fmt.Sprintf("%s, %s, %d workers", c.network, o.Type, len(c.points[0].w.Platform.Workers))
	if c.y == plots.StepTime {
		text += fmt.Sprintf(", batch %d", o.Batch)
	}
	return fmt.Sprintf("%s; median of %d runs", text, c.repeats)
}

func (c *curveBench) figure() *plots.Curves {
	predicted := plots.Series{Name: "predicted", Dashed: true}
	measured := plots.Series{Name: "measured"}
	for _, p := range c.points {
		x, y := float64(p.x), c.value(p, p.predicted)
		predicted.Points = append(predicted.Points, plots.CurvePoint{X: x, Y: y, Low: y, High: y})
		first, last := c.value(p, p.measured[0]), c.value(p, p.measured[len(p.measured)-1])
		measured.Points = append(measured.Points, plots.CurvePoint{X: x, Y: c.value(p, p.median()), Low: min(first, last), High: max(first, last)})
	}
	return &plots.Curves{Title: fmt.Sprintf("%s: %s over %s", c.network, c.y, c.xLabel), Summary: c.summary(), XLabel: c.xLabel, Y: c.y,
		Series: []plots.Series{predicted, measured}}
}
