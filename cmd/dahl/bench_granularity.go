package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"dahl/execute"
	"dahl/nn"
	"dahl/plots"
)

func newBenchGranularity() *cobra.Command {
	c := curveBench{name: "granularity", y: plots.StepTime}
	cmd := &cobra.Command{
		Use:   "granularity --model NAME",
		Short: "step time over tile sizes, predicted and measured",
		Long: `granularity takes the default lowering and multiplies the samples per task of all
layers by powers of two, as --lowering best of other commands does. For each tile size it calibrates this machine, predicts
the time of a training step, and measures it in runs that go round all sizes. The
table says what tile the prediction finds best and what it costs to believe it;
--out also keeps the lowering of every point, for --lowering of other commands.`,
		Example: "  dahl bench granularity --model lenet5 --batch 64 --out granularity-lenet5",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.overTiles(cmd.Context(), cmd.OutOrStdout())
		},
	}
	c.addFlags(cmd)
	cmd.Flags().IntVar(&c.workload.Batch, "batch", 0, "images per training step (default: the model's)")
	return cmd
}

func (c *curveBench) overTiles(ctx context.Context, stdout io.Writer) error {
	if err := c.prepare(); err != nil {
		return err
	}
	o := c.workload
	m, _, err := trainingData(&o)
	if err != nil {
		return err
	}
	machine, err := execute.Detect()
	if err != nil {
		return err
	}
	t, err := o.tilings(m, machine)
	if err != nil {
		return err
	}
	c.xLabel = "samples per task of " + t.Layer
	dir := c.out
	if dir == "" {
		if dir, err = os.MkdirTemp("", "dahl-granularity-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	for _, tiling := range t.All() {
		if tiling.WholeSums {
			continue
		}
		point := o
		point.Lowering = filepath.Join(dir, fmt.Sprintf("lowering-%d.toml", tiling.Samples))
		if err := writeTo(point.Lowering, func(w io.Writer) error { return nn.WriteLowering(w, t.Lowering(tiling)) }); err != nil {
			return err
		}
		if err := c.add(ctx, tiling.Samples, point); err != nil {
			return fmt.Errorf("%s %d: %w", c.xLabel, tiling.Samples, err)
		}
	}
	if err := c.measure(ctx); err != nil {
		return err
	}
	return c.finish(stdout)
}
