package train

import (
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn/models"
)

// TestUniform: every operation of every layer is in three parts along each dimension that it has. A dense layer has no rows. The sample of the first
// layer has one channel and no gradient. Of no dimension three is more than there is: 7 samples, 6 to 120 outputs, 6 to 400 inputs, and 5 to 28 rows.
func TestUniform(t *testing.T) {
	const batch, parts = 7, 3
	m := must.Get(models.ByName("lenet5"))(t)
	w := &Workload{Options: Options{Batch: batch, Type: dag.Float32, OtherMachine: true}, Model: m, Platform: load(t, "nvlink")}
	tilings := must.Get(w.Tilings())(t)
	for along := range dag.NumDimensions {
		priced := must.Get(w.PriceAs(tilings.Uniform(parts, along)))(t)
		count := map[string]int{}
		for _, task := range priced.Program.Graphs[0].Tasks {
			step, _, _ := strings.Cut(task.Name, "[")
			count[step]++
		}
		for i := range m.Stages {
			s := &m.Stages[i]
			want := parts
			if isImage := len(s.Out) == 3; along >= dag.AlongRows && !isImage || along == dag.AlongInputs && s.Name == "conv1" {
				want = 1
			}
			for _, step := range []string{".forward", ".backward.input", ".backward.weight"} {
				if got := count[s.Name+step]; len(s.Params) > 0 && got != want && !(s.Name == "conv1" && step == ".backward.input" && got == 0) {
					t.Errorf("cut along %s: %d tasks %s%s, want %d", along, got, s.Name, step, want)
				}
			}
		}
	}
}
