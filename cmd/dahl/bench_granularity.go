package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"dahl/dag"
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
layers by powers of two. For each tile size it calibrates this machine, predicts
the time of a training step, and measures it in runs that go round all sizes. The
table says what tile the prediction finds best and what it costs to believe it;
--out also keeps the lowering of every point, for --lowering of other commands.`,
		Example: "  dahl bench granularity --model lenet5 --batch 64 --out granularity-lenet5",
		Args:    cobra.NoArgs,
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
	m, _, _, err := trainingData(&o)
	if err != nil {
		return err
	}
	machine, err := execute.Detect()
	if err != nil {
		return err
	}
	dtype, err := dag.ParseDType(o.DType)
	if err != nil {
		return asInput(err)
	}
	base, err := o.lowering(m, machine, dtype)
	if err != nil {
		return err
	}
	layer := busiestLayer(m)
	c.xLabel = "samples per task of " + layer
	dir := c.out
	if dir == "" {
		if dir, err = os.MkdirTemp("", "dahl-granularity-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	for _, tile := range tileSizes(base.Layers[layer].SampleTile, o.Batch) {
		point := o
		point.Lowering = filepath.Join(dir, fmt.Sprintf("lowering-%d.toml", tile))
		scaled := scaleTiles(base, tile, base.Layers[layer].SampleTile, o.Batch)
		if err := writeTo(point.Lowering, func(w io.Writer) error { return nn.WriteLowering(w, scaled) }); err != nil {
			return err
		}
		if err := c.add(ctx, tile, point); err != nil {
			return fmt.Errorf("%s %d: %w", c.xLabel, tile, err)
		}
	}
	if err := c.measure(ctx); err != nil {
		return err
	}
	return c.finish(stdout)
}

// busiestLayer is the layer with the most weights times positions, which is the
// most work: the one whose tile the axis shows.
func busiestLayer(m *nn.Model) string {
	name, most := "", 0
	for i := range m.Stages {
		s := &m.Stages[i]
		if len(s.Params) == 0 {
			continue
		}
		work := s.Params[0].Elems()
		for _, extent := range s.Out[1:] {
			work *= extent
		}
		if work > most {
			name, most = s.Name, work
		}
	}
	return name
}

// tileSizes are the powers of two times a tile between one sample and the batch,
// both included.
func tileSizes(tile, batch int) []int {
	sizes := []int{batch}
	for t := tile; t < batch; t *= 2 {
		sizes = append(sizes, t)
	}
	for t := tile / 2; t >= 1; t /= 2 {
		sizes = append(sizes, t)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// scaleTiles multiplies the samples per task of every layer by tile/of, to at least
// one sample and at most the batch. Sums over the whole batch stay whole.
func scaleTiles(base *dag.Lowering, tile, of, batch int) dag.Lowering {
	scale := func(samples int) int {
		if samples == 0 {
			return 0
		}
		return min(max(1, samples*tile/of), batch)
	}
	scaled := *base
	scaled.Layers = maps.Clone(base.Layers)
	for name, ll := range scaled.Layers {
		if ll.GradSampleTile == ll.SampleTile {
			ll.GradSampleTile = scale(ll.GradSampleTile)
		}
		ll.SampleTile = scale(ll.SampleTile)
		scaled.Layers[name] = ll
	}
	return scaled
}
