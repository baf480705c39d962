package platform

import (
	"math"
	"math/rand/v2"
	"testing"
)

func fitOf(rows ...[3]float64) (fit, bool) { // flops, bytes, ns
	models := make([]*Model, len(rows))
	for i, r := range rows {
		models[i] = &Model{Flops: r[0], MovedBytes: int64(r[1]), MedianNs: r[2]}
	}
	return fitModels(models)
}

func near(a, b, rel float64) bool { return math.Abs(a-b) <= rel*max(math.Abs(a), math.Abs(b), 1e-300) }

func TestFitRecoversALine(t *testing.T) {
	line := func(f, m float64) [3]float64 { return [3]float64{f, m, 700 + 0.5*f + 0.25*m} }
	f, ok := fitOf(line(1000, 64), line(5000, 12800), line(70000, 3200), line(11, 13), line(1e6, 17))
	if !ok || !near(f.coef[0], 700, 1e-9) || !near(f.coef[1], 0.5, 1e-9) || !near(f.coef[2], 0.25, 1e-9) || f.relError > 1e-9 {
		t.Errorf("got %+v, want 700, 0.5, 0.25", f)
	}
}

// Without work the fit is a constant a that minimises Σ(a/tᵢ − 1)², which is
// a = Σ(1/tᵢ) / Σ(1/tᵢ²). For t = 1, 2, 4: a = 1.75/1.3125 = 4/3; the relative
// residuals are 1/3, 1/3 and 2/3, their median 1/3.
func TestFitConstant(t *testing.T) {
	f, ok := fitOf([3]float64{0, 0, 1}, [3]float64{0, 0, 2}, [3]float64{0, 0, 4})
	if !ok || !near(f.coef[0], 4.0/3, 1e-12) || f.coef[1] != 0 || f.coef[2] != 0 || !near(f.relError, 1.0/3, 1e-12) {
		t.Errorf("got %+v, want 4/3 with error 1/3", f)
	}
}

// Bytes that are twice the flops everywhere cannot be told from them; any split
// of 3 ns per flop is a solution.
func TestFitDependentColumns(t *testing.T) {
	f, ok := fitOf([3]float64{10, 20, 30}, [3]float64{100, 200, 300}, [3]float64{1000, 2000, 3000})
	if !ok || !near(f.ns(50, 100), 150, 1e-9) {
		t.Errorf("got %+v, %v; want 150 ns for 50 flops", f, ok)
	}
}

func TestFitNeedsThreeShapes(t *testing.T) {
	if f, ok := fitOf([3]float64{1, 1, 1}, [3]float64{2, 2, 2}); ok {
		t.Errorf("two shapes gave %+v", f)
	}
}

// The solution of a convex problem under x ≥ 0 is where the gradient of the sum
// of squares is zero for positive coefficients and not negative for those at
// zero (Karush-Kuhn-Tucker). Checked with gradients relative to their terms.
func TestFitIsOptimal(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	zeros := 0
	for round := range 300 {
		rows := make([][3]float64, 3+r.IntN(12))
		for i := range rows {
			f, m := math.Round(math.Exp(r.Float64()*16)), math.Round(math.Exp(r.Float64()*16))
			rows[i] = [3]float64{f, m, (1000*r.Float64() + f*r.Float64() + m*r.Float64()) * math.Exp(r.NormFloat64())}
		}
		f, ok := fitOf(rows...)
		if !ok {
			t.Fatalf("round %d: no fit", round)
		}
		for j, c := range f.coef {
			grad, size := 0.0, 0.0
			for _, row := range rows {
				x := [3]float64{1, row[0], row[1]}[j] / row[2]
				grad += x * (f.ns(row[0], row[1])/row[2] - 1)
				size += x
			}
			switch {
			case c < 0 || math.IsNaN(c):
				t.Errorf("round %d: coefficient %d is %g", round, j, c)
			case c > 0 && math.Abs(grad) > 1e-6*size, c == 0 && grad < -1e-6*size:
				t.Errorf("round %d: coefficient %d = %g has gradient %g of %g", round, j, c, grad, size)
			case c == 0:
				zeros++
			}
		}
	}
	if zeros == 0 {
		t.Error("no case had a coefficient at its bound")
	}
}
