package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/nn"
	"dahl/plots"
	"dahl/train"
)

func newGranularity() *cobra.Command {
	c := curveBench{name: "granularity", y: plots.StepTime}
	cmd := &cobra.Command{
		Use:   "granularity --model NAME",
		Short: "step time over tile sizes, predicted and measured",
		Long: `granularity takes the default lowering and multiplies the samples per task of all
layers by powers of two, as --lowering best of dahl does. For each tile size it calibrates this machine, predicts
the time of a training step, and measures it in runs that go round all sizes. The
table says what tile the prediction finds best and what it costs to believe it;
--out also keeps the lowering of every point, for --lowering of dahl.`,
		Example: "  dahl-bench granularity --model lenet5 --batch 64 --out granularity-lenet5",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.overTiles(cmd.Context(), cmd.OutOrStdout())
		},
	}
	c.addFlags(cmd)
	cmd.Flags().IntVar(&c.options.Batch, "batch", 0, "images per training step (default: the model's)")
	return cmd
}

func (c *curveBench) overTiles(ctx context.Context, stdout io.Writer) error {
	if err := c.prepare(); err != nil {
		return err
	}
	c.options.Batch = cmp.Or(c.options.Batch, c.model.Defaults.Batch)
	machine, err := cores(0)
	if err != nil {
		return err
	}
	t, err := train.Tilings(c.model, machine, c.options.Batch, c.options.Type)
	if err != nil {
		return err
	}
	c.xLabel = "samples per task of " + t.Layer
	for _, tiling := range t.All() {
		if tiling.WholeSums {
			continue
		}
		o, l := c.options, t.Lowering(tiling)
		o.Lowering = &l
		if c.out != "" {
			path := filepath.Join(c.out, fmt.Sprintf("lowering-%d.toml", tiling.Samples))
			if err := cli.WriteTo(path, func(w io.Writer) error { return nn.WriteLowering(w, l) }); err != nil {
				return err
			}
		}
		if err := c.add(ctx, tiling.Samples, o); err != nil {
			return fmt.Errorf("%s %d: %w", c.xLabel, tiling.Samples, err)
		}
	}
	if err := c.measure(ctx); err != nil {
		return err
	}
	return c.finish(stdout)
}
