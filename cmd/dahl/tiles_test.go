package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/rundir"
	"dahl/train"
)

// TestLoweringBest: the step is that of a run whose lowering file has the chosen tiles,
// no slower than the default's, and plan and manifest have that lowering.
func TestLoweringBest(t *testing.T) {
	t.Chdir(t.TempDir())
	network := []string{"--platform", "laptop", "--model", "lenet5", "--batch", "13"}
	simulate := func(dir string, more ...string) (s record.Summary) {
		decodeObject(t, mustRun(t, slices.Concat([]string{"simulate", "--steps", "10", "--json", "--out", dir}, network, more)...), &s)
		return s
	}
	best, standard := simulate("best", "--lowering", flags.BestTiles), simulate("standard", "--policy", "heft")
	if best.Tiles == nil || best.Tiles.Layer != "conv2" || standard.Tiles != nil {
		t.Fatalf("tiles %+v with best, %+v without", best.Tiles, standard.Tiles)
	}
	if got := best.Tiles.Of(tiling.Of(tiling.Base{Kind: tiling.Default})).StepS; math.Abs(got-standard.Shown.SteadyStepS) >= 1e-9 { // it is rounded to whole nanoseconds
		t.Errorf("the search predicts %v s for the default, a run of its own %v s", got, standard.Shown.SteadyStepS)
	}
	chosen := best.Tiles.Of(best.Tiles.Chosen).StepS
	for _, try := range best.Tiles.Tries {
		if try.StepS < chosen {
			t.Errorf("%s would take %v s, the chosen %s take %v s", try.Tiles, try.StepS, best.Tiles.Chosen, chosen)
		}
	}
	lowering := recordedLowering(t, "best")
	if want := namedTiles(t, "laptop", "lenet5", 13, best.Tiles.Chosen); !reflect.DeepEqual(*lowering, want) {
		t.Errorf("plan and manifest have %+v, chosen are %s: %+v", lowering, best.Tiles.Chosen, want)
	}
	f := must.Get(os.Create("tiles.toml"))(t)
	must.Do(t, files.WriteLowering(f, *lowering))
	must.Do(t, f.Close())
	simulate("file", "--lowering", "tiles.toml")
	simulate("replayed", "--plan", "best/plan.json")
	for _, dir := range []string{"file", "replayed"} {
		sameFiles(t, rundir.ScheduleFile, "best", dir)
	}
	wantRepeated(t, "best")
}

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

// namedTiles is the lowering of a network on a platform with tiles.
func namedTiles(t *testing.T, platform, model string, batch int, tiles tiling.Tiling) dag.Lowering {
	t.Helper()
	m := must.Get(cli.LoadModel(model))(t)
	p := must.Get(cli.LoadPlatform(platform))(t)
	ways := must.Get(tilingsOf(m, p, batch))(t)
	return must.Get(ways.Lowering(tiles))(t)
}

// recordedLowering is what plan and manifest of a run both say.
func recordedLowering(t *testing.T, dir string) *dag.Lowering {
	t.Helper()
	var read [2]struct{ Lowering *dag.Lowering }
	for i, name := range []string{rundir.PlanFile, rundir.ManifestName} {
		data := must.Get(os.ReadFile(filepath.Join(dir, name)))(t)
		must.Do(t, json.Unmarshal(data, &read[i]))
	}
	if read[0].Lowering == nil || !reflect.DeepEqual(read[0], read[1]) {
		t.Fatalf("the plan has lowering %+v, the manifest %+v", read[0].Lowering, read[1].Lowering)
	}
	return read[0].Lowering
}

// TestExecuteBestTiles calibrates all tiles, after which no call of a search is without
// a measurement, and trains with the best.
func TestExecuteBestTiles(t *testing.T) {
	if testing.Short() {
		t.Skip("calibrates for some seconds")
	}
	t.Chdir(t.TempDir())
	writeTestFile(t, "small.toml", smallNetwork)
	network := []string{"--model", "small.toml", "--variant", "go", "--batch", "4", "--lowering", flags.BestTiles, "--workers", "1"}
	mustRun(t, slices.Concat([]string{"calibrate", "--out", "here.toml", "--time", "5ms"}, network)...)
	s := decoded[record.Summary](t, mustRun(t, slices.Concat([]string{"execute", "--platform", "here.toml", "--limit", "23", "--json", "--out", "run"}, network)...))
	tried := []tiling.Tiling(nil)
	for _, try := range s.Tiles.Tries {
		tried = append(tried, try.Tiles)
	}
	if len(tried) < 3 || !slices.Contains(tried, tiling.Of(tiling.Base{Kind: tiling.Default})) || tried[0] != s.Tiles.Chosen {
		t.Fatalf("tiles %+v, want three sizes at least: 1, 2 and 4", s.Tiles)
	}
	wantRepeated(t, "run")
	p := decoded[record.Summary](t, mustRun(t, slices.Concat([]string{"simulate", "--platform", "here.toml", "--json", "--out", "sim"}, network[:8])...))
	if p.Models.Fitted+p.Models.Roofline > 0 {
		t.Errorf("after calibration %d tasks are fitted, %d by roofline", p.Models.Fitted, p.Models.Roofline)
	}
}
