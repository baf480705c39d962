package execute

import (
	"context"
	"math"
	"testing"

	"dahl/must"
)

// TestFindNotFinite puts one number that is not finite among what a step starts from: the
// first task in the order of the program that computes with it is found, by every plan.
func TestFindNotFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		buffer string
		value  float32
		want   string
	}{
		{"w1", inf, "fc1[0:2]"}, // of the first tile; 0 times an infinity is NaN
		{"w1", float32(math.NaN()), "fc1[0:2]"},
		{"w2", -inf, "fc2[0:2]"},
		{"v.b1", inf, "sgd.b1"},             // only the update reads the velocity
		{"v.b1", math.MaxFloat32 / 2, ""},   // momentum 0.5 makes it smaller
		{"w1", math.MaxFloat32, "fc1[0:2]"}, // times pixels whose sum over 255 is more than 1
		{"b2", math.MaxFloat32 / 4, ""},     // equal logits, of which softmax subtracts the greatest
	} {
		for seed := range uint64(3) {
			prog := testProgram(t)
			r := newRunner(t, prog, how{Platform: machine(t, 2), Options: Options{Hooks: testHooks(nil)}, Plans: randomPlans(prog, 2, seed)})
			for i := range r.Float32s(c.buffer) {
				r.Float32s(c.buffer)[i] = c.value
			}
			task, found := must.Get2(r.FindNotFinite(context.Background(), 0))(t)
			got := ""
			if found {
				got = prog.Graphs[0].Tasks[task].Name
			}
			if got != c.want {
				t.Errorf("%s = %v, plan %d: found %q, want %q", c.buffer, c.value, seed, got, c.want)
			}
		}
	}
}
