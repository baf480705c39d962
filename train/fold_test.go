package train

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/plan"
	"dahl/plan/strategy"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/simulate"
)

// TestFoldIsExact: a folded graph takes as long as the graph of all devices, step by step and to the nanosecond, and as many joules. In the latter each device has copies of all
// tasks and buffers, and an exchange begins on no device before all of its group come to it.
func TestFoldIsExact(t *testing.T) {
	for _, name := range []string{"megatron:2x1x1x1x3", "megatron:2x1x2x1x3:whole", "megatron:2x2x2x1x5", "megatron:1x3x2x2x4"} {
		of := must.Get(strategy.ByName(name))(t)
		fold := of.Split.Fold
		m := blocksModel(t)
		p := groups(t, of.Split.Needs())
		w := &Workload{Options: Options{OtherMachine: true, Batch: fold.Data * of.Split.MicroBatches, Strategy: of}, Model: m, Platform: p,
			Samples: Samples{Type: dag.Int32, Train: fold.Data * of.Split.MicroBatches}}
		must.Do(t, w.Lower())
		if got := w.counted(w.Program.Graphs[0]); got != w.Options.Batch {
			t.Errorf("%s: a step counts %d samples, want %d", name, got, w.Options.Batch)
		}
		one := stepsOf(t, w.Program.Graphs[0], w.Platform, w.Lowering.Order)
		all := stepsOf(t, unfolded(t, w.Program.Graphs[0], fold.Devices()), p, w.Lowering.Order)
		if one.ends == nil || !slices.Equal(one.ends, all.ends) {
			t.Errorf("%s: steps end at %v ns on one device of each group, and on all at %v ns", name, one.ends, all.ends)
		}
		if !(math.Abs(one.joules-all.joules) <= 1e-9*all.joules) {
			t.Errorf("%s: %v J on one device of each group, and on all %v J", name, one.joules, all.joules)
		}
	}
}

// blocksModel has four blocks of a transformer.
func blocksModel(t *testing.T) *nn.Model {
	var list []nn.Layer
	last := ""
	add := func(name string, l nn.Layer, inputs ...string) {
		list, last = append(list, nn.Named{Name: name, Layer: l, Inputs: inputs}), name
	}
	add("wte", layers.Embedding{Tokens: 26, Width: 12})
	for i := range 4 {
		h, before := fmt.Sprintf("h.%d.", i), last
		add(h+"ln", layers.RMSNorm{})
		add(h+"qkv", layers.Dense{Outputs: 36})
		add(h+"attn", layers.Attention{Heads: 2, Causal: true})
		add(h+"proj", layers.Dense{Outputs: 12})
		add(h+"add", layers.Add{}, before, last)
	}
	add("head", layers.Dense{Outputs: 26, NoBias: true})
	m := must.Get(nn.New("blocks", []int{10}, list...))(t)
	m.Defaults.Optimizer = nn.DefaultAdamW()
	return m
}

// groups is a machine of some GPUs, each with links of its own.
func groups(t *testing.T, gpus int) *platform.Platform {
	var b strings.Builder
	b.WriteString("name = \"groups\"\n[[memory]]\nname = \"ram\"\nbandwidth = \"90 GB/s\"\n[[device]]\nname = \"cpu\"\nkind = \"cpu\"\nmemory = \"ram\"\nspeed = { float32 = \"7 GF/s\" }\n")
	for i := range gpus {
		fmt.Fprintf(&b, "[[memory]]\nname = \"hbm%d\"\nbandwidth = \"311 MB/s\"\n[[device]]\nname = \"gpu%d\"\nkind = \"cuda\"\nmemory = \"hbm%d\"\nspeed = { float32 = \"533 MF/s\" }\n"+
			"power = { idle = \"11 W\", busy = \"29 W\", source = \"guess\" }\n[[link]]\nname = \"pcie%d\"\nbandwidth = \"401 MB/s\"\n[[route]]\nfrom = \"ram\"\nto = \"hbm%d\"\nlinks = [\"pcie%d\"]\n", i, i, i, i, i, i)
	}
	for i := range gpus {
		for j := i + 1; j < gpus; j++ {
			fmt.Fprintf(&b, "[[link]]\nname = \"wire%d.%d\"\nbandwidth = \"73 MB/s\"\nlatency = \"3 us\"\n[[route]]\nfrom = \"hbm%d\"\nto = \"hbm%d\"\nlinks = [\"wire%d.%d\"]\n", i, j, i, j, i, j)
		}
	}
	return must.Get(platform.Parse([]byte(b.String()), "groups.toml"))(t)
}

// unfolded is the graph of all devices: gpu0, gpu<n>, gpu<2n> … stand for the n devices from there on.
func unfolded(t *testing.T, g *dag.Graph, n int) *dag.Graph {
	b := dag.NewBuilder(g.Name)
	buffers := make([][]dag.BufferID, len(g.Buffers))
	fed := map[dag.BufferID]bool{} // by the host, once for all
	for _, task := range g.Tasks {
		for _, a := range task.Accesses {
			if task.Labels.Phase == "load" && task.Op == "feed" {
				fed[g.Storage(a.Buffer)] = true
			}
		}
	}
	for id, of := range g.Buffers {
		for r := range n {
			once := fed[g.Storage(dag.BufferID(id))] || of.Role == dag.Input
			if once && r > 0 {
				buffers[id] = append(buffers[id], buffers[id][0])
				continue
			}
			one := of
			if !once {
				one.Name = fmt.Sprintf("%s.rank%d", of.Name, r)
			}
			if of.ViewOf != dag.None {
				buffers[id] = append(buffers[id], b.View(one.Name, buffers[of.ViewOf][r], of.Shape...))
			} else {
				buffers[id] = append(buffers[id], b.Buffer(one))
			}
		}
	}
	type block struct{ stage, batch int32 }
	last := map[block][]dag.TaskID{}
	ids := make([][]dag.TaskID, len(g.Tasks))
	for id, task := range g.Tasks {
		at := block{task.Labels.Stage, task.Labels.MicroBatch}
		meets := strings.Contains(task.Op, "all_") || task.Op == "reduce_scatter"
		var now []dag.TaskID
		for r := range n {
			one := task
			first := 0
			if one.Placement != nil {
				if _, err := fmt.Sscanf(one.Placement.Device, "gpu%d", &first); err != nil {
					if r > 0 {
						break // the host does it once
					}
				} else {
					one.Placement = &dag.Placement{Device: fmt.Sprintf("gpu%d", first+r)}
				}
			}
			if task.Op != "feed" {
				one.Name = fmt.Sprintf("%s.rank%d", task.Name, r)
			}
			one.Accesses, one.After = slices.Clone(task.Accesses), nil
			for i := range one.Accesses {
				one.Accesses[i].Buffer = buffers[one.Accesses[i].Buffer][r]
			}
			for _, before := range task.After {
				one.After = append(one.After, ids[before][min(r, len(ids[before])-1)])
			}
			if meets {
				one.After = append(one.After, last[at]...)
			}
			now = append(now, b.Task(one))
		}
		if ids[id] = now; len(now) == n {
			last[at] = now
		}
	}
	return must.Get(b.Build())(t)
}

type steps struct {
	ends   []int64 // ns
	joules float64
}

// stepsOf are three steps of a graph.
func stepsOf(t *testing.T, g *dag.Graph, p *platform.Platform, order string) steps {
	prog := &dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 3}}}
	by := must.Get(policy.PipelineByName(order))(t)
	d := must.Get(plan.Decide(prog, p, schedule.Unbound, schedule.Choice{Policy: by}))(t)
	s := must.Get(plan.Simulate(t.Context(), d, 0, 3, simulate.Options{}))(t)
	ends := make([]int64, 3)
	for _, span := range s.Spans {
		ends[span.Step] = max(ends[span.Step], int64(span.End))
	}
	total := must.Get(plan.Predict(t.Context(), d, []plan.Piece{{Segment: prog.Order[0], Recorded: true}}, false))(t)
	return steps{ends, total.Joules}
}
