package train

import (
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn/models"
	"dahl/plan/strategy"
	"dahl/platform"
	"dahl/schedule/policy"
)

// TestPipelineByNumbers: stages are on the devices with memories of their own first, in turn where each has several, then on processors: one stage
// has all their cores, and two have one each. The stages begin with layers that begin a group, the first one with the input.
func TestPipelineByNumbers(t *testing.T) {
	m := must.Get(models.ByName("lenet5"))(t)
	for _, c := range []struct{ text, platform, devices string }{
		{"1f1b:4x8", "server", "gpu0 gpu1 gpu2 gpu3"},
		{"gpipe:2x4", "server", "gpu0 gpu1"},
		{"interleaved:2x2x8", "server", "gpu0 gpu1 gpu0 gpu1"},
		{"1f1b:2x4", "emulated", "gpu cpu"},
		{"1f1b:3x4", "emulated", "gpu cpu.0 cpu.1"},
		{"gpipe:1x4", "emulated", "gpu"},
	} {
		p := must.Get(platform.Load("../platforms/" + c.platform + ".toml"))(t)
		w := &Workload{Model: m, Platform: p, Options: Options{Batch: 32, OtherMachine: true, Strategy: must.Get(strategy.ByName(c.text))(t)}}
		must.Do(t, w.Lower())
		must.Do(t, w.Choose())
		var devices []string
		for i, s := range w.Lowering.Stages {
			devices = append(devices, s.Device)
			if (i == 0) != (s.From == "input") || strings.HasPrefix(s.From, "relu") || strings.HasPrefix(s.From, "pool") {
				t.Errorf("%s: stage %d begins with %s", c.text, i+1, s.From)
			}
		}
		order, _, _ := strings.Cut(c.text, ":")
		if got := strings.Join(devices, " "); got != c.devices || w.Lowering.Order != order || w.Decision.Graphs[0].Plan.Policy != order {
			t.Errorf("%s on %s: stages on %s in order %s by %s, want %s", c.text, c.platform, got, w.Lowering.Order, w.Decision.Graphs[0].Plan.Policy, c.devices)
		}
	}
}

// TestPipelineErrors refuses what makes no pipeline.
func TestPipelineErrors(t *testing.T) {
	for text, want := range map[string]string{
		"heft:2x4":          `strategy "heft" is not one of data-parallel, `,
		"1f1b:2":            `"1f1b:2": write 1f1b:DEVICESxMICRO-BATCHES`,
		"1f1b:2x2x8":        `"1f1b:2x2x8": write 1f1b:D`,
		"interleaved:2x8":   `"interleaved:2x8": write interleaved:DEVICESxSTAGES-EACHxMICRO-BATCHES`,
		"gpipe:0x8":         `"gpipe:0x8": write gpipe:D`,
		"gpipe:2x100000":    `"gpipe:2x100000": write gpipe:D`,
		"1f1b:4x8":          `1f1b:4x8: 4 devices are asked for: "emulated" has 3 units; take fewer`,
		"data-parallel:3":   `data-parallel:3: 3 devices have equal shares, and would wait for single cores: "emulated" has 1 unit beside processors; take at most 2 devices, the last one a whole processor`,
		"1f1b:3x33":         `lowering: micro_batches is 33; want 1 to 32`,
		"interleaved:3x9x8": `27 stages: the network has 7 layers with tasks, the input among them`,
	} {
		of, err := strategy.ByName(text)
		if err == nil {
			w := &Workload{Model: must.Get(models.ByName("lenet5"))(t), Platform: must.Get(platform.Load("../platforms/emulated.toml"))(t), Options: Options{Batch: 32, OtherMachine: true, Strategy: of}}
			err = w.Lower()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	stages := []dag.Stage{{From: "conv1", Device: "cpu"}, {From: "fc1", Device: "gpu9"}}
	for _, c := range []struct {
		lowering dag.Lowering
		want     string
	}{
		{dag.Lowering{Stages: stages}, `lowering: stage 2, from "fc1": device "gpu9" is not one of cpu, emulated, gpu, cpu.0, cpu.1; did you mean gpu`},
		{dag.Lowering{Stages: []dag.Stage{{From: "conv1", Devices: []string{"cpu.0", "gpu9"}}}}, `lowering: stage 1, from "conv1": device "gpu9" is not one of cpu, emulated, gpu`},
		{dag.Lowering{Stages: []dag.Stage{{From: "conv1", Devices: []string{"gpu", "cpu.0", "cpu.1"}, Replicas: 2}}}, `lowering: stage 1, from "conv1": replicas = 2 of 3 devices; write a number that divides them`},
		{dag.Lowering{Stages: []dag.Stage{{From: "conv1", Devices: []string{"cpu.0", "cpu.1"}, Replicas: 2}}}, `replicas = 2, along = "samples": replicas are parts of the samples; write along = outputs or rows, or leave replicas out`},
		{dag.Lowering{Stages: []dag.Stage{{From: "conv1", Devices: []string{"gpu", "gpu"}}}}, `lowering: stage 1, from "conv1": device "gpu" is there twice; write each once`},
		{dag.Lowering{Stages: []dag.Stage{{From: "conv1", Devices: []string{"gpu", "cpu"}, Along: dag.AlongColumns}}}, `lowering: stage 1, from "conv1": along = "columns"; write samples, outputs or rows`},
		{dag.Lowering{Stages: []dag.Stage{{From: "conv1", Devices: []string{"gpu", "cpu"}}}, MicroBatches: 2, Stash: true}, `lowering: stash = true: devices cannot share a stage; write device = and one of them`},
		{dag.Lowering{Stages: stages[:1], Order: "gpip"}, `lowering: order "gpip" is not one of gpipe, 1f1b, interleaved; did you mean gpipe`},
		{dag.Lowering{Stages: []dag.Stage{{From: "conv2", Device: "cpu"}}}, `lowering: stage 1 begins with "conv2"; write "conv1", the first layer, or "input"`},
		{dag.Lowering{Stages: []dag.Stage{stages[0], {From: "cnv2", Device: "gpu"}}}, `lowering: stage 2, from "cnv2": layer "cnv2" is not one of input, conv1`},
		{dag.Lowering{Stages: []dag.Stage{stages[0], {From: "fc2", Device: "gpu"}, {From: "fc1", Device: "cpu"}}}, `lowering: stage 3 begins with "fc1", which does not come behind "fc2", where stage 2 begins`},
		{dag.Lowering{MicroBatches: 4, Stash: true}, `lowering: stash = true: it needs stages`},
		{dag.Lowering{Stages: stages[:1], MicroBatches: 4, Stash: true, Default: dag.LayerLowering{Recompute: true}}, `lowering: stash = true: layers cannot be recomputed with older weights; leave recompute out`},
	} {
		w := &Workload{Model: must.Get(models.ByName("lenet5"))(t), Platform: must.Get(platform.Load("../platforms/emulated.toml"))(t), Options: Options{Batch: 32, OtherMachine: true, Lowering: &c.lowering}}
		if err := w.Lower(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.lowering.Stages, err, c.want)
		}
	}
	if names := policy.Pipelines(); !slices.ContainsFunc(names, policy.IsPipeline) || policy.IsPipeline(policy.HEFT) {
		t.Error("heft is an order of a pipeline, or none is")
	}
}
