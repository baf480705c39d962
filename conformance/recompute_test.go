package conformance

import (
	"fmt"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/schedule"
	"dahl/schedule/layout"
)

// recomputed is a lowering in which some layers are recomputed.
func recomputed(l dag.Lowering, layers ...string) dag.Lowering {
	l.Layers = map[string]dag.LayerLowering{}
	for _, name := range layers {
		ll := l.Default
		ll.Recompute = true
		l.Layers[name] = ll
	}
	return l
}

// decidedStep is what a policy decides for one training step of a batch of 7, on one worker.
func decidedStep(t *testing.T, chain []nn.Layer, l dag.Lowering, policy string) *schedule.Decision {
	t.Helper()
	m := must.Get(nn.New("chain", []int{5}, chain...))(t)
	prog := must.Get(nn.NewProgram(m, nn.ProgramOptions{Batch: 7, TrainSamples: 7, Type: dag.Float32, Lowering: l, Optimizer: nn.SGD{LearningRate: 0.1}}))(t)
	return decided(t, prog, how{platform: machine(t, 1), policy: policy})
}

// Of the chains below, bytes of a batch of 7, aligned to 64: the input of 5 features, a hidden value or gradient of
// 13, and the gradient of the 3 outputs.
const (
	inputBytes  = 192 // 7·5·4 = 140
	hiddenBytes = 384 // 7·13·4 = 364
	outputBytes = 128 // 7·3·4 = 84
	hyperBytes  = 64  // the rate, which the last update reads
	lossBytes   = 64  // each of the losses of the samples, which samples are correct, the mean and the count
)

// TestPeakOfARecomputedChain derives the step arena of input x → fc1 → y1 = tanh → fc2 → y2 → fc3 → y3 → fc4 → y4 → fc5.
// With dz and dy the gradients before and after a tanh, the backward pass is
//
//	dy4 (fc5), dz4 (y4), dy3 (fc4), dz3 (y3), dy2 (fc3), dz2 (y2), dy1 (fc2), dz1 (y1)
//
// and the updates of fc5 to fc1 read y4 dz5, y3 dz4, y2 dz3, y1 dz2, and x dz1. They compute gradient and update in one
// task, for which nothing waits.
//
// Under eager, which decides at run time, memory is what the graph allows: an update may come at the end of the step.
// So y1 to y4, dz1 to dz4, x and dz5 are there at the end, beside dy1, and the losses, for which no task waits either. The
// plan of heft has the updates of fc4 to fc2, which take longer than the last two tasks of the chain, before dz1, and the mean
// and the count at the very end. So its peak is where dy1 is written, of dz2 to dz4.
//
// Where fc1, tanh1, fc3 and tanh3 are recomputed, y2 and y4 stay. The update of fc4 is the first to read y3, so that fc3 and tanh3 run again
// behind dy3 and the update of fc5, when y4 and dz5 are gone. From then on there are y3, y2 and dz4, dz3, dz2 until fc1 and tanh1
// run again, behind dy1 and the updates of fc4 and fc3: with dy1 six. (Before, there are y2, y4, dz4 and dy4 or dy3. Later, y1, dz2, dy1 or
// dz1, and before y1 the output of fc1.)
//
// On one worker that never waits, the step takes longer by the times of the four layers.
func TestPeakOfARecomputedChain(t *testing.T) {
	hidden, tanh := layers.Dense{Outputs: 13}, layers.Activation{Function: "tanh"}
	chain := []nn.Layer{hidden, tanh, hidden, tanh, hidden, tanh, hidden, tanh, layers.Dense{Outputs: 3}}
	plain := dag.Lowering{}
	again := recomputed(plain, "fc1", "tanh1", "fc3", "tanh3")
	for _, c := range []struct {
		policy      string
		plain, with int64
	}{
		{"eager", 9*hiddenBytes + inputBytes + outputBytes + hyperBytes + 4*lossBytes, 6*hiddenBytes + inputBytes + hyperBytes + 4*lossBytes},
		{"heft", 8*hiddenBytes + inputBytes + outputBytes + hyperBytes + 2*lossBytes, 6*hiddenBytes + inputBytes + hyperBytes + 2*lossBytes},
	} {
		var took [2]time.Duration
		var runAgain time.Duration
		var reserved [2]int64
		for i, l := range []dag.Lowering{plain, again} {
			d := decidedStep(t, chain, l, c.policy)
			s := simulated(t, d, 0, 1)
			took[i], reserved[i] = s.Makespan, d.ReservedBytes()[0]
			if got, want := d.Layouts(0)[0].ArenaBytes[layout.StepArena], []int64{c.plain, c.with}[i]; got != want {
				t.Errorf("%s: a step has %d bytes, want %d", c.policy, got, want)
			}
			for _, span := range s.Spans {
				if d.Priced.Program.Graphs[0].Tasks[span.Task].Labels.Phase == "recompute" {
					runAgain += span.End - span.Start
				}
			}
		}
		if saved := reserved[0] - reserved[1]; saved != c.plain-c.with {
			t.Errorf("%s: %d bytes less are reserved, want %d", c.policy, saved, c.plain-c.with)
		}
		if took[1]-took[0] != runAgain || runAgain == 0 {
			t.Errorf("%s: the step takes %v and %v, and %v of it are computed again", c.policy, took[0], took[1], runAgain)
		}
	}
}

// TestMemoryOfTheSquareRoot: in a chain of L = n² layers, of which every n-th keeps its output, at most 3n - 1 values and
// gradients are in memory at once, and 2n² without recomputation. Chen et al. count the n checkpoints and the n values of a
// segment. A segment also has n + 1 gradients here, since its updates read them and nothing but the next segment waits for updates.
//
// Without recomputation each of the L layers, with which a ReLU is fused, has its output and its gradient in memory at the
// end, as above. With it, the most is in memory in the segment that the backward pass comes to first:
//
//	n - 1  outputs that earlier segments keep; that of this one was last read before it begins
//	n - 1  outputs that are computed again
//	n + 1  gradients: of each of its layers, and of the output before it
//
// So there is no gradient of the last layer, either.
func TestMemoryOfTheSquareRoot(t *testing.T) {
	for n := 2; n <= 5; n++ {
		var chain []nn.Layer
		var drops []string
		for i := 1; i <= n*n; i++ {
			chain = append(chain, layers.Dense{Outputs: 13}, layers.ReLU{})
			if i%n != 0 {
				drops = append(drops, fmt.Sprintf("fc%d", i))
			}
		}
		chain = append(chain, layers.Dense{Outputs: 3})
		for policy, losses := range map[string]int64{"eager": 4, "heft": 2} {
			rest := inputBytes + hyperBytes + losses*lossBytes
			plain := dag.Lowering{}
			for _, c := range []struct {
				lowering dag.Lowering
				want     int64
			}{
				{plain, int64(2*n*n)*hiddenBytes + outputBytes + rest},
				{recomputed(plain, drops...), int64(3*n-1)*hiddenBytes + rest},
			} {
				d := decidedStep(t, chain, c.lowering, policy)
				if got := d.Layouts(0)[0].ArenaBytes[layout.StepArena]; got != c.want {
					t.Errorf("%s, %d layers, %d of them recomputed: a step has %d bytes, want %d", policy, n*n, len(c.lowering.Layers), got, c.want)
				}
			}
		}
	}
}
