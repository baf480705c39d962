package nn_test

import (
	"slices"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// blocks are two blocks of transformers: one with norms before its parts, GELU and a tanh at its end, as GPT and BERT have them, and one with a SwiGLU and root mean squares, whose
// SiLU no dense layer reads.
func blocks(t testing.TB) map[string]*nn.Model {
	const tokens, width, positions = 13, 6, 5
	table := nn.Named{Name: "wte", Layer: layers.Embedding{Tokens: tokens, Width: width}}
	gelu, silu := layers.Activation{Function: "gelu"}, layers.Activation{Function: "silu"}
	all := map[string]*nn.Model{
		"gelu": mustNew(t, "gelu", []int{positions}, table,
			nn.Named{Name: "ln1", Layer: layers.LayerNorm{}}, nn.Named{Name: "mix", Layer: layers.Dense{Outputs: width}},
			nn.Named{Name: "sum1", Layer: layers.Add{}, Inputs: []string{"wte", "mix"}}, nn.Named{Name: "ln2", Layer: layers.LayerNorm{NoBias: true}},
			nn.Named{Name: "up", Layer: layers.Dense{Outputs: 17}}, nn.Named{Name: "gelu", Layer: gelu}, nn.Named{Name: "down", Layer: layers.Dense{Outputs: width}},
			nn.Named{Name: "sum2", Layer: layers.Add{}, Inputs: []string{"sum1", "down"}}, nn.Named{Name: "ln3", Layer: layers.LayerNorm{}},
			nn.Named{Name: "pool", Layer: layers.Dense{Outputs: 11}}, nn.Named{Name: "tanh", Layer: layers.Activation{Function: "tanh"}},
			nn.Named{Name: "head", Layer: layers.Dense{Outputs: tokens}}),
		"swiglu": mustNew(t, "swiglu", []int{positions}, table,
			nn.Named{Name: "rms", Layer: layers.RMSNorm{}}, nn.Named{Name: "gate", Layer: layers.Dense{Outputs: 17, NoBias: true}, Inputs: []string{"rms"}},
			nn.Named{Name: "silu", Layer: silu}, nn.Named{Name: "up", Layer: layers.Dense{Outputs: 17, NoBias: true}, Inputs: []string{"rms"}},
			nn.Named{Name: "product", Layer: layers.Multiply{}, Inputs: []string{"silu", "up"}}, nn.Named{Name: "down", Layer: layers.Dense{Outputs: width}},
			nn.Named{Name: "sum", Layer: layers.Add{}, Inputs: []string{"wte", "down"}}, nn.Named{Name: "end", Layer: layers.RMSNorm{}},
			nn.Named{Name: "head", Layer: layers.Dense{Outputs: tokens}}),
	}
	for _, m := range all {
		m.Defaults.Optimizer = keepsGradients
	}
	return all
}

// TestEpilogues: a step whose operations also compute functions, slopes and sums has the bits of a step of all of them by themselves, with the reference and with the variants of
// this machine, whatever is cut, in micro-batches, and with layers that are computed again. Its tasks are of the operations that a case names.
func TestEpilogues(t *testing.T) {
	const batch = 3
	for _, c := range []struct {
		model    string
		lowering dag.Lowering
		ops      []string // that the step has
		lacks    []string
	}{
		{"gelu", dag.Lowering{}, []string{"dense.function.kept", "dense.function", "dense.dx.function", "layernorm.sum", "layernorm.dx.sum"}, []string{"gelu", "gelu.dx", "tanh", "tanh.dx", "sum", "add"}},
		{"gelu", dag.Lowering{MicroBatches: 2, Recompute: []string{"up", "gelu"}, Layers: map[string]dag.LayerLowering{"ln2": {Forward: dag.Cut{Samples: 1, Rows: 2}}, "up": {Forward: dag.Cut{Samples: 2, Outputs: 7}}}},
			[]string{"dense.function.kept", "dense.dx.function"}, []string{"gelu", "gelu.dx"}},
		{"gelu", dag.Lowering{Recompute: []string{"gelu", "sum1"}}, []string{"gelu", "gelu.dx", "sum", "dense.function"}, []string{"dense.function.kept"}},
		{"gelu", dag.Lowering{Layers: map[string]dag.LayerLowering{"down": {InputGradient: dag.Cut{Outputs: 4}}, "pool": {Forward: dag.Cut{Inputs: 5}}}},
			[]string{"dense.function.kept", "gelu.dx", "tanh", "tanh.dx"}, []string{"dense.function", "dense.dx.function", "gelu"}},
		{"swiglu", dag.Lowering{}, []string{"dense.function.kept", "silu.dx", "layernorm.sum"}, []string{"silu", "sum"}},
	} {
		for _, choose := range []func(testing.TB, *dag.Graph, map[string][]uint64) *interpreter{newInterpreter, withDefaults} {
			m := blocks(t)[c.model]
			opt := nn.LowerOptions{Batch: batch, Samples: batch, Type: dag.Float32, Train: true, Lowering: c.lowering}
			var apart *interpreter
			for _, with := range []bool{false, true} {
				opt.Lowering.Epilogues = with
				g := mustLower(t, m, opt)
				in := choose(t, g, map[string][]uint64{})
				in.fill(m, "train", 11)
				in.step(indices(0, batch), 0, 1)
				if !with {
					apart = in
					continue
				}
				has := func(op string) bool { return slices.ContainsFunc(g.Tasks, func(t dag.Task) bool { return t.Op == op }) }
				if i := slices.IndexFunc(c.ops, func(op string) bool { return !has(op) }); i >= 0 {
					t.Errorf("%s %+v: no task of %s", c.model, c.lowering, c.ops[i])
				}
				if i := slices.IndexFunc(c.lacks, has); i >= 0 {
					t.Errorf("%s %+v: a task of %s", c.model, c.lowering, c.lacks[i])
				}
				names := []string{"loss"}
				for _, p := range m.Parameters() {
					names = append(names, "grad."+p.Name)
				}
				for _, name := range names {
					if want, got := apart.floats(name), in.floats(name); !slices.Equal(got, want) {
						t.Errorf("%s %+v: %s is %v, apart %v", c.model, c.lowering, name, got, want)
					}
				}
			}
		}
	}
}

// withDefaults is an interpreter of the variants that a training has by default.
func withDefaults(t testing.TB, g *dag.Graph, shared map[string][]uint64) *interpreter {
	return newInterpreterOf(t, g, shared, byDefault)
}

// TestEpiloguesOfStages: devices that share a stage compute all by themselves, and so do two stages of a pipeline between a sum and its normalisation.
func TestEpiloguesOfStages(t *testing.T) {
	m := blocks(t)["gelu"]
	for _, c := range []struct {
		stages []dag.Stage
		sums   int // of layers
		gelus  int
	}{
		{[]dag.Stage{{From: "input", Device: "a"}, {From: "ln2", Device: "b"}}, 1, 0},
		{[]dag.Stage{{From: "input", Devices: []string{"a", "b"}}}, 2, 1},
	} {
		g := mustLower(t, m, nn.LowerOptions{Batch: 2, Samples: 2, Type: dag.Float32, Train: true, Lowering: dag.Lowering{Epilogues: true, Stages: c.stages}})
		layers := func(op string) (names []string) {
			for _, task := range g.Tasks {
				if task.Op == op && task.Labels.Phase == "forward" && !slices.Contains(names, task.Labels.Layer) {
					names = append(names, task.Labels.Layer)
				}
			}
			return names
		}
		if sums, gelus := layers("sum"), layers("gelu"); len(sums) != c.sums || len(gelus) != c.gelus {
			t.Errorf("%+v: sums of %v and functions of %v by themselves, want %d and %d", c.stages, sums, gelus, c.sums, c.gelus)
		}
	}
}
