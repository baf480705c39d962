package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/plots"
)

func newBatch() *cobra.Command {
	c := curveBench{name: "batch", xLabel: "images per batch", y: plots.Rate}
	var batches []int
	cmd := &cobra.Command{
		Use:   "batch --model NAME",
		Short: "training speed over batch sizes, predicted and measured",
		Long: `batch calibrates this machine for every batch size, predicts the images per second
of training, measures them in runs that go round all sizes, and draws both curves.`,
		Example: "  dahl-bench batch --model lenet5 --out batch-lenet5",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.overBatches(cmd.Context(), cmd.OutOrStdout(), batches)
		},
	}
	c.addFlags(cmd)
	cmd.Flags().IntSliceVar(&batches, "batches", []int{8, 16, 32, 64, 128, 256}, "batch sizes")
	return cmd
}

func (c *curveBench) overBatches(ctx context.Context, stdout io.Writer, batches []int) error {
	if err := cli.CheckNumbers("batches", batches...); err != nil {
		return err
	}
	if err := c.prepare(); err != nil {
		return err
	}
	slices.Sort(batches)
	for _, batch := range slices.Compact(batches) {
		o := c.options
		o.Batch = batch
		if err := c.add(ctx, batch, o); err != nil {
			return fmt.Errorf("batch %d: %w", batch, err)
		}
	}
	if err := c.measure(ctx); err != nil {
		return err
	}
	return c.finish(stdout)
}
