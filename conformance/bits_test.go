package conformance

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/must"
	"dahl/nn"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/codec"
)

// TestBitsDependOnTheGraphAlone trains with every number of workers and every way
// to schedule, on cores and with emulated GPUs: the weights and every loss have the same bits, so long as lowering,
// type and variants are the same. Of each model, one type is cut along samples and outputs, the other along all dimensions, also in micro-batches.
func TestBitsDependOnTheGraphAlone(t *testing.T) {
	const fast = "" // the default variants
	models := []string{"digits-cnn", normalised, "lenet5", branching}
	if testing.Short() {
		models = models[:2]
	}
	for _, model := range models {
		for _, dtype := range nn.Types() {
			for _, c := range []struct {
				variant string
				epochs  int
			}{{fast, 2}, {"ref", 1}, {transforming(), 1}} {
				if c.variant == noVariant || c.variant == transforming() && (model != "digits-cnn" || dtype != dag.Float32) {
					continue // no other has convolutions that it takes
				}
				if c.variant == "ref" && (testing.Short() || model != "digits-cnn") {
					continue // slow; it sees both types
				}
				t.Run(fmt.Sprintf("%s/%v/%s", model, dtype, cmp.Or(c.variant, "default")), func(t *testing.T) {
					n := newNetwork(t, model, dtype, c.epochs)
					if dtype == dag.Float64 {
						l := n.mixedLowering()
						l.MicroBatches = 3 // of 2, 2 and 1 samples
						n.lower(t, l)
					} else {
						n.lower(t, fixtureLowering())
					}
					n.checkBits(t, c.variant)
				})
			}
		}
	}
}

// transforming is the widest variant of this machine that computes convolutions by Winograd's algorithm; noVariant without one.
func transforming() string {
	k, _ := kernels.KernelByName("conv2d.nhwc")
	for _, v := range slices.Backward(k.Variants) {
		if v.Transforms && v.RunsHere() {
			return v.Name
		}
	}
	return noVariant
}

const noVariant = "none"

// TestBitsOfClippedSteps does the same with steps that wait for the norm of all gradients.
func TestBitsOfClippedSteps(t *testing.T) {
	for i, dtype := range []dag.DType{dag.Float32, dag.Float64} {
		t.Run(fmt.Sprint(dtype), func(t *testing.T) {
			n := newNetwork(t, "digits-cnn", dtype, 1)
			n.optimizer = nn.DefaultAdamW()
			n.model.Defaults.Loss, n.model.Defaults.ClipNorm = nn.Loss{LabelSmoothing: 0.125}, 0.5
			l := n.mixedLowering()
			l.MicroBatches = 1 + i
			n.lower(t, l)
			n.checkBits(t, "")
		})
	}
}

// TestBitsTellRunsApart: the comparison above would see another type and another
// order of additions.
func TestBitsTellRunsApart(t *testing.T) {
	seen := map[string]string{}
	for _, dtype := range []dag.DType{dag.Float32, dag.Float64} {
		n := newNetwork(t, "digits-cnn", dtype, 1)
		for _, accumulators := range []int{1, 3} {
			n.lower(t, dag.Lowering{Default: dag.LayerLowering{WeightGradient: dag.Cut{Samples: 1, Accumulators: accumulators}}})
			name := fmt.Sprintf("%v, %d accumulators", dtype, accumulators)
			hash := n.execute(t, how{platform: machine(t, 2), policy: "eager"}).hash()
			if other, ok := seen[hash]; ok {
				t.Errorf("%s: the weights are those of %s", name, other)
			}
			seen[hash] = name
		}
	}
}

// checkBits compares all runs with that of one worker that follows eager.
func (n *network) checkBits(t *testing.T, variant string) {
	t.Helper()
	var want string
	var losses []float64
	for _, set := range []struct {
		platform *platform.Platform
		policies []string
	}{
		{machine(t, 1), []string{"eager", "heft"}},
		{machine(t, 2), []string{"dmda", "replay"}},
		{machine(t, 3), []string{"eager", "heft"}},
		{emulatedNode(t, 1), []string{"dmdar", "data-parallel", "replay", "all on the GPU"}},
		{emulatedNode(t, 2), []string{"eager", "dmda"}},
	} {
		var plans []*schedule.Plan
		for _, policy := range set.policies {
			h := how{platform: set.platform, policy: policy, variant: variant}
			switch policy {
			case "replay":
				h.policy = ""
				h.plans = n.throughFiles(t, plans, h)
			case "all on the GPU":
				h.policy, h.plans = "", n.splitPlans(len(set.platform.Workers), len(deviceSplits)-1)
			}
			tr := n.execute(t, h)
			for _, r := range tr.runs {
				if left := len(r.schedule.Evictions); left > 0 {
					t.Errorf("%d workers, %s: %d evictions with room for everything", len(set.platform.Workers), policy, left)
				}
			}
			if plans == nil {
				plans = tr.plans()
			}
			hash := tr.hash()
			if want == "" {
				want, losses = hash, tr.losses
				if len(losses) != epochSteps*n.epochs || !finite(losses) {
					t.Fatalf("losses %v: want %d numbers", losses, epochSteps*n.epochs)
				}
			}
			if hash != want || !slices.Equal(tr.losses, losses) {
				t.Errorf("%d workers, %s: other bits", len(set.platform.Workers), policy)
			}
		}
	}
}

// throughFiles writes plans and the layouts made for them as files and reads them
// back, as dahl plan and dahl execute --plan do.
func (n *network) throughFiles(t *testing.T, plans []*schedule.Plan, h how) []*schedule.Plan {
	t.Helper()
	h.plans = plans
	d := decided(t, n.prog, h)
	read := make([]*schedule.Plan, len(plans))
	for i, g := range n.prog.Graphs {
		var file bytes.Buffer
		must.Do(t, codec.WritePlan(&file, d.Graphs[i].Plan, g, h.platform))
		read[i] = must.Get(codec.ReadPlan(&file, "plan.json", g, h.platform))(t)
	}
	return read
}
