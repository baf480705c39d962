package strategy

import (
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
)

// TestShareBySpeed: samples go to devices so that the slowest takes the least time. Of devices of 2 and 6 seconds for a sample, 9 samples are 7 and 2: 14 seconds, and with 6 and 3 or 8 and 1 it
// would be 18 or 16. A stage has the times of its own layers. With 2 micro-batches of 18 samples each has 9 again.
func TestShareBySpeed(t *testing.T) {
	n := &Network{Platform: workersOf(t, 4, ""), Batch: 9, Layers: []Layer{{Name: "input"}, {Name: "a", Inputs: 1}, {Name: "b", Inputs: 1}, {Name: "c", Inputs: 1}}, Fixed: true,
		Times: func(_ dag.Lowering, seats []Seat) ([]string, [][]float64, error) {
			times := [][]float64{{1, 2, 0, 0}, {1, 4, 0, 0}, {5, 5, 3, 1}, {5, 5, 3, 1}}
			for i := range times {
				times[i] = times[i][:len(seats)]
			}
			return []string{"input", "a", "b", "c"}, times, nil
		}}
	for name, want := range map[string][][]int{
		"data-parallel:2":              {{5, 4}},         // 12 and 16 seconds: 60 and 64, where 6 and 3 are 72
		"data-parallel:2+1f1b:2x2@b":   {{7, 2}, {2, 7}}, // 2 and 6; 6 and 2
		"tensor-parallel:2+1f1b:2x2@b": {nil, nil},
	} {
		s := must.Get(ByName(name))(t).Split
		n.Batch = 9 * max(1, s.MicroBatches)
		l := must.Get(s.Lowering(n))(t)
		for i, stage := range l.Stages {
			if !slices.Equal(stage.Shares, want[i]) {
				t.Errorf("%s: stage %d has shares %v, want %v", name, i, stage.Shares, want[i])
			}
		}
	}
	if got := sharesOfSamples([]float64{1, 2, 3}, 2); got != nil {
		t.Errorf("two samples on three devices: %v", got)
	}
}
