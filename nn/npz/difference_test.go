package npz

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"dahl/dag"
)

// TestCompare: 1 and the next float32 after it differ by 2⁻²³, which is one ULP and 2⁻²³ of the larger one to all digits of the text; from -1 to 1
// lie twice as many float32 as from 0 to 1, whose bits are 0x3f800000. Two times 2⁻¹⁴⁹ is the second number above 0.
func TestCompare(t *testing.T) {
	next, nan := float64(math.Nextafter32(1, 2)), math.NaN()
	a := []Array{
		NewArray("same", dag.Float32, []int{2}, []float64{7, nan}),
		NewArray("w", dag.Float32, []int{2, 3}, []float64{0, 1, 5, -1, 0x1p-148, nan}),
		NewArray("shape", dag.Float32, []int{2}, []float64{1, 2}), NewArray("a alone", dag.Float32, nil, []float64{1}),
		NewArray("mixed", dag.Float64, []int{2}, []float64{0.1, 3}), NewArray("whole", dag.Int64, []int{1}, []float64{5}),
	}
	b := []Array{
		NewArray("b alone", dag.Float32, nil, []float64{1}), NewArray("whole", dag.Int64, []int{1}, []float64{-2}),
		NewArray("mixed", dag.Float32, []int{2}, []float64{0.1, 4}), NewArray("shape", dag.Float32, []int{1, 2}, []float64{1, 2}),
		NewArray("w", dag.Float32, []int{2, 3}, []float64{math.Copysign(0, -1), next, 5, 1, 0, 1}), NewArray("same", dag.Float32, []int{2}, []float64{7, nan}),
	}
	got := Compare(a, b, 3)
	want := &Difference{Arrays: 4, Numbers: 2 + 6 + 2 + 1, Differ: 5 + 1 + 1, OnlyA: []string{"a alone"}, OnlyB: []string{"b alone"}, Shapes: []string{"shape"},
		Each: []ArrayDifference{
			{"w", "float32", []int{2, 3}, 6, 5, math.MaxUint64, 2},
			{"mixed", "float32", []int{2}, 2, 1, 1 << 22, 0.25}, // 3 is 1.5·2 and 4 is 1·4, half of the 2²³ numbers from 2 to 4 away
			{"whole", "int64", []int{1}, 1, 1, 7, 1.4}},
		First: []NumberPair{{"w", []int{0, 0}, "0", "-0", 0, 0}, {"w", []int{0, 1}, "1", "1.0000001", 1, 0x1p-23 / next}, {"w", []int{1, 0}, "-1", "1", 2 * 0x3f800000, 2}},
		Worst: []NumberPair{{"w", []int{1, 2}, "NaN", "1", math.MaxUint64, 2}, {"w", []int{1, 0}, "-1", "1", 2 * 0x3f800000, 2}, {"mixed", []int{1}, "3", "4", 1 << 22, 0.25}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if small := Compare(a[1:2], b[4:5], 5).Worst[2]; small.ULP != 2 || small.A != "3e-45" {
		t.Errorf("the third of w is %+v", small)
	}
}

// TestULPs: the number n steps of math.Nextafter away is n ULPs away, also across zero and up to infinity.
func TestULPs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		from := math.Float64frombits(random.Uint64())
		near := []float64{from, 3 * 0x1p-1074, -2 * 0x1p-1074, math.MaxFloat64}[random.IntN(4)]
		if math.IsNaN(near) || math.IsInf(near, 0) {
			continue
		}
		to, steps := near, 0
		for range random.IntN(11) {
			if math.IsInf(to, 1) {
				break
			}
			to, steps = math.Nextafter(to, math.Inf(1)), steps+1
		}
		if got := ulps(near, to, dag.Float64); got != float64(steps) {
			t.Errorf("from %v to %v: %v ULPs, want %d", near, to, got, steps)
		}
		x, y := float32(near), float32(near)
		for range steps {
			y = math.Nextafter32(y, 9)
		}
		if got := ulps(float64(x), float64(y), dag.Float32); x < 1 && got != float64(steps) {
			t.Errorf("from %v to %v: %v ULPs of float32, want %d", x, y, got, steps)
		}
	}
	if got := ulps(math.Inf(-1), math.Inf(1), dag.Float64); got != 2*0x7ff0000000000000 {
		t.Errorf("from -Inf to Inf: %v", got)
	}
}
