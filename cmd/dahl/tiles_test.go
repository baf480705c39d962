package main

import (
	"slices"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/train"
)

// TestTilings: on one GPU layers are whole, so that of a batch of 8 there are 4 sizes, and
// 3 of them have two kinds of gradients: split like the layers, or whole. Only the
// latter leave the descent of dense weights to the task that has their gradient.
func TestTilings(t *testing.T) {
	o := flags.Options{Model: "mlp", DType: "float32", Batch: 8, Policy: "heft"}
	m := must.Get(cli.LoadModel(o.Model))(t)
	p := must.Get(cli.LoadPlatform("emulated"))(t)
	p = must.Get(p.Select("gpu"))(t)
	ways := must.Get(tilingsOf(m, p, o.Batch))(t)
	var want []tiling.Base
	for _, samples := range []int{1, 2, 4} {
		want = append(want, tiling.Base{Kind: tiling.Samples, Number: samples}, tiling.Base{Kind: tiling.Samples, Number: samples, WholeSums: true})
	}
	want = append(want, tiling.Base{Kind: tiling.Samples, Number: 8})
	if got := ways.Scaled(); !slices.Equal(got, want) {
		t.Fatalf("tilings %v, want %v", got, want)
	}
	for _, c := range want {
		l := must.Get(ways.Lowering(tiling.Of(c)))(t)
		g := must.Get(nn.NewProgram(m, nn.ProgramOptions{Batch: o.Batch, TrainSamples: o.Batch, Epochs: 1, Type: dag.Float32, Lowering: l, Optimizer: nn.SGD{LearningRate: 0.1}}))(t)
		descents, layers := 0, 0
		for _, task := range g.Graphs[0].Tasks {
			if task.Op == "dense.dw.sgd" {
				descents++
			}
		}
		for name, ll := range l.Layers {
			if ll.Forward.Samples != c.Number {
				t.Errorf("%v: %s has %d samples per task", c, name, ll.Forward.Samples)
			}
			if strings.HasPrefix(name, "fc") {
				layers++
			}
		}
		if whole := c.WholeSums || c.Number == o.Batch; whole && descents != layers || !whole && descents != 0 || layers == 0 {
			t.Errorf("%v: %d of %d dense layers descend where their gradient is computed", c, descents, layers)
		}
	}
	if ways.Default.Layers["fc1"].Forward.Samples != o.Batch {
		t.Error("the lowering that was varied has changed")
	}
}

func tilingsOf(m *nn.Model, p *platform.Platform, batch int) (*tiling.Network, error) {
	return (&train.Workload{Model: m, Platform: p, Options: train.Options{Batch: batch, Type: dag.Float32}}).Tilings()
}

// TestCalibrateAllTiles: after a calibration of all tiles a batch of 4 is simulated in any of three sizes, or as simulate chooses, and no call is estimated.
func TestCalibrateAllTiles(t *testing.T) {
	if testing.Short() {
		t.Skip("calibrates for some seconds")
	}
	t.Chdir(t.TempDir())
	writeTestFile(t, "small.toml", smallNetwork)
	network := []string{"--model", "small.toml", "--variant", "go", "--batch", "4"}
	mustRun(t, slices.Concat([]string{"calibrate", "--out", "here.toml", "--time", "5ms", "--workers", "1", "--lowering", flags.AllTiles}, network)...)
	for _, more := range []string{"", "--tile 1", "--tile 2", "--tile 4"} {
		p := decoded[record.Summary](t, mustRun(t, slices.Concat([]string{"simulate", "--platform", "here.toml", "--json", "--out", "sim"}, network, strings.Fields(more))...))
		if p.Models.Measured == 0 || p.Models.Fitted+p.Models.Roofline > 0 {
			t.Errorf("%s: after calibration %+v", more, p.Models)
		}
	}
}
