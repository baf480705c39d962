package nn_test

import (
	"fmt"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// TestTurns: mini-batches with the same number are far enough apart in an endless sequence of steps. Each number is taken at most ⌊batches/apart⌋ times in a step, since
// more would be nearer on average. So ⌈batches/⌊batches/apart⌋⌉ are the fewest.
func TestTurns(t *testing.T) {
	for batches := 1; batches <= 24; batches++ {
		for apart := 1; apart <= batches; apart++ {
			turn, last, most := nn.TakeTurns(batches, apart), map[int]int{}, 0
			for i := range 3 * batches {
				now := turn[i%batches]
				if before, taken := last[now]; taken && i-before < apart {
					t.Errorf("%d mini-batches, %d apart: number %d is at %d and %d of %v", batches, apart, now, before, i, turn)
				}
				last[now], most = i, max(most, now+1)
			}
			times := batches / apart
			if fewest := (batches + times - 1) / times; len(turn) != batches || most != fewest {
				t.Errorf("%d mini-batches, %d apart: %d numbers in %v, want %d", batches, apart, most, turn, fewest)
			}
		}
	}
}

// TestVersions: with a multiple of p - s mini-batches stage s of p has p - s buffers for each weight, and p with vertical sync. Other numbers of mini-batches may need more, see TestTurns: 8 leave
// room for 2 times 3, each with one more. A step of 3 has 3 new versions in addition to 4 older ones.
func TestVersions(t *testing.T) {
	m := mustNew(t, "dense", []int{7}, layers.Dense{Outputs: 6}, layers.Dense{Outputs: 5}, layers.Dense{Outputs: 4}, layers.Dense{Outputs: 3})
	for _, c := range []struct {
		batches      int
		verticalSync bool
		want         string
	}{{12, false, "[4 3 2 1]"}, {8, false, "[4 4 2 1]"}, {3, false, "[7 3 3 1]"}, {8, true, "[4 4 4 4]"}} {
		l := dag.Lowering{MicroBatches: c.batches, Stash: true, VerticalSync: c.verticalSync}
		for i := range 4 {
			l.Stages = append(l.Stages, dag.Stage{From: fmt.Sprint("fc", i+1), Device: fmt.Sprint("d", i)})
		}
		g := mustLower(t, m, nn.LowerOptions{Batch: 2 * c.batches, Samples: 2 * c.batches, Type: dag.Float32, Train: true, Lowering: l, Optimizer: nn.SGD{LearningRate: 1}})
		var got []int
		for i := range 4 {
			n := 0
			for b := range g.Buffers {
				name := strings.TrimPrefix(g.Buffers[b].Name, "state.")
				if of := fmt.Sprintf("fc%d.weight", i+1); name == of || strings.HasPrefix(name, of+".version") {
					n++
				}
			}
			got = append(got, n)
		}
		if fmt.Sprint(got) != c.want || fmt.Sprint(nn.WeightVersions(&l, c.batches)) != c.want {
			t.Errorf("%d mini-batches, vertical sync %v: %v buffers, %v by WeightVersions, want %s", c.batches, c.verticalSync, got, nn.WeightVersions(&l, c.batches), c.want)
		}
	}
}
