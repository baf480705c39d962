package conformance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/schedule"
	"dahl/schedule/layout"
)

// pipelined is a training step of two dense layers, x → fc1 → y → fc2 → z, on 64 samples in micro-batches. A buffer of 16 samples has
// 64 bytes, a cache line, for each feature; that is u.
//
// A task has a cost as if 16 samples took each layer 2 ms forward and 4 ms backward: of the latter the loss has 1, and of the second
// layer the gradient of the weight 1 and of its input 2. Everything else takes no time.
func pipelined(t testing.TB, microBatches int) *dag.Graph {
	t.Helper()
	m := must.Get(nn.New("pipeline", []int{7}, layers.Dense{Outputs: 11}, layers.Dense{Outputs: 5}))(t)
	g := must.Get(m.Lower(nn.LowerOptions{Batch: 64, Type: dag.Float32, Train: true, Samples: 64, Lowering: dag.Lowering{MicroBatches: microBatches}}))(t)
	takes := map[string]time.Duration{"fc1.forward": 2, "fc2.forward": 2, "loss.softmax_xent": 1, "fc2.backward.weight": 1, "fc2.backward.input": 2, "fc1.backward.weight": 4}
	for i := range g.Tasks {
		step, _, _ := strings.Cut(g.Tasks[i].Name, "[")
		ns := int64(takes[step]*time.Millisecond) * 4 / int64(max(microBatches, 1))
		g.Tasks[i].Costs = []dag.Cost{{Key: dag.AnyDevice, Ns: ns}}
	}
	return g
}

// inStage lists the tasks of a micro-batch in some layers, of the forward pass (f) or of the loss and the backward pass (b).
func inStage(g *dag.Graph, layers string, pass byte, micro int) (tasks []dag.TaskID) {
	for i := range g.Tasks {
		labels := &g.Tasks[i].Labels
		backward := labels.Phase == "loss" || labels.Phase == "backward"
		if int(labels.MicroBatch) == micro && strings.Contains(layers, labels.Layer) && backward == (pass == 'b') {
			tasks = append(tasks, dag.TaskID(i))
		}
	}
	return tasks
}

// stages puts passes of micro-batches on two workers, in lists such as "f1 f2 b1 b2". What the batch shares comes first where
// it loads, and last where it updates and reports.
func stages(g *dag.Graph, lists [2]string) *schedule.Plan {
	plan := &schedule.Plan{Policy: "pipeline", Order: make([][]dag.TaskID, 2)}
	var shared []dag.TaskID
	for i := range g.Tasks {
		if labels := &g.Tasks[i].Labels; labels.MicroBatch == 0 && labels.Phase == "load" {
			plan.Order[0] = append(plan.Order[0], dag.TaskID(i))
		} else if labels.MicroBatch == 0 {
			shared = append(shared, dag.TaskID(i))
		}
	}
	for w, list := range lists {
		for pass := range strings.FieldsSeq(list) {
			plan.Order[w] = append(plan.Order[w], inStage(g, []string{"input fc1", "fc2 loss"}[w], pass[0], int(pass[1]-'0'))...)
		}
	}
	plan.Order[0] = append(plan.Order[0], shared...)
	return plan
}

// sharedBytes is what all micro-batches need: labels, losses and index of 64 samples with 4 bytes each, 64 bytes of
// what is correct, 64 of step.hyper, and the gradients of 11·7 and 5·11 weights and of 11 and 5 biases, in
// whole cache lines.
const sharedBytes = 3*256 + 2*64 + 320 + 256 + 2*64

// stepBytes is the size of what one step needs, as the plan lays it out.
func stepBytes(d *schedule.Decision) int64 { return d.Layouts(0)[0].ArenaBytes[layout.StepArena] }

// TestPipeline: each of two cores has one of the layers, and four micro-batches pass through both. A stage takes 6 ms for a
// micro-batch, the second one begins 2 ms after the first, and the first ends 4 ms after the
// second. So all four are through after 2 + 4·6 + 4 = 30 ms: GPipe's (micro-batches + stages - 1)·6. One batch would take 2·4·6 = 48.
//
// In both orders the second stage takes backward what it has just taken forward. GPipe's first stage takes all forward first,
// and so keeps x and y of four micro-batches, (7 + 11)·4 u. Its index of samples is read when the first gradient of fc1 is written, and
// has a place among those. In the order 1F1B it takes the third forward when the first
// is back, and keeps two, beside the index. The second stage has z and its gradient for one, 2·5 u.
func TestPipeline(t *testing.T) {
	g, p := pipelined(t, 4), machine(t, 2)
	for _, c := range []struct {
		what  string
		first string
		bytes int64
	}{
		{"GPipe", "f1 f2 f3 f4 b1 b2 b3 b4", (18*4+10)*64 + sharedBytes - 256},
		{"1F1B", "f1 f2 b1 f3 b2 f4 b3 b4", (18*2+10)*64 + sharedBytes},
	} {
		d := decided(t, program(g), how{platform: p, plans: []*schedule.Plan{stages(g, [2]string{c.first, "f1 b1 f2 b2 f3 b3 f4 b4"})}})
		s := simulated(t, d, 0, 1)
		if s.Makespan != 30*time.Millisecond || stepBytes(d) != c.bytes {
			t.Errorf("%s takes %v in %d bytes, want 30 ms in %d", c.what, s.Makespan, stepBytes(d), c.bytes)
		}
		// The first stage takes the second micro-batch forward while the other one has the first. The second stage has that back
		// at 8 ms, and the last one at 26.
		for _, at := range []struct {
			task       string
			start, end time.Duration
		}{{"fc1.forward[16:32,0:11]", 2, 4}, {"fc2.forward[0:16,0:5]", 2, 4}, {"fc2.backward.input[0:16,0:11]", 6, 8}, {"fc1.backward.weight[48:64,0:11]", 26, 30}} {
			task, _ := g.TaskByName(at.task)
			i := slices.IndexFunc(s.Spans, func(s schedule.Span) bool { return s.Task == task })
			if span := s.Spans[i]; span.Start != at.start*time.Millisecond || span.End != at.end*time.Millisecond {
				t.Errorf("%s: %s is from %v to %v, want %d to %d ms", c.what, at.task, span.Start, span.End, at.start, at.end)
			}
		}
	}
}

// TestMicroBatchesAfterEachOther: a core that takes one micro-batch after the other needs the activations of one. That is most
// at the loss: x, y, z and the gradient of z, (7 + 11 + 5 + 5) u. From the second micro-batch on there are the sums of the gradients, and before
// the last one the index.
func TestMicroBatchesAfterEachOther(t *testing.T) {
	g := pipelined(t, 4)
	plan := &schedule.Plan{Policy: "in order", Order: make([][]dag.TaskID, 1)}
	for i := range g.Tasks {
		plan.Order[0] = append(plan.Order[0], dag.TaskID(i))
	}
	d := decided(t, program(g), how{platform: machine(t, 1), plans: []*schedule.Plan{plan}})
	if got, want := stepBytes(d), int64(28*64+sharedBytes); got != want {
		t.Errorf("a step takes %d bytes, want %d", got, want)
	}
}

// TestPoliciesUseMicroBatches: the whole batch passes forward (8 + 8 ms), the loss (4), backward through fc2 (8) and to the weight of fc1 (16) one
// after the other, 44 ms in any schedule. In micro-batches HEFT keeps both cores at work, for half of the 48 ms of all tasks.
func TestPoliciesUseMicroBatches(t *testing.T) {
	for microBatches, want := range map[int]time.Duration{0: 44 * time.Millisecond, 4: 24 * time.Millisecond} {
		if s := simulated(t, decided(t, program(pipelined(t, microBatches)), how{platform: machine(t, 2), policy: "heft"}), 0, 1); s.Makespan != want {
			t.Errorf("%d micro-batches: heft takes %v, want %v", microBatches, s.Makespan, want)
		}
	}
}
