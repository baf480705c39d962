package fit

import (
	"math"
	"math/rand/v2"
	"testing"
)

func fitOf(rows ...[3]float64) (Calls, bool) { // flops, bytes, ns
	of := make([][3]float64, len(rows))
	for i, r := range rows {
		of[i] = Row(r[0], r[1], r[2])
	}
	return OfCalls(of)
}

func near(a, b, rel float64) bool { return math.Abs(a-b) <= rel*max(math.Abs(a), math.Abs(b), 1e-300) }

func TestFitRecoversALine(t *testing.T) {
	line := func(f, m float64) [3]float64 { return [3]float64{f, m, 700 + 0.5*f + 0.25*m} }
	f, ok := fitOf(line(1000, 64), line(5000, 12800), line(70000, 3200), line(11, 13), line(1e6, 17))
	if !ok || !near(f.Coef[0], 700, 1e-9) || !near(f.Coef[1], 0.5, 1e-9) || !near(f.Coef[2], 0.25, 1e-9) || f.RelError > 1e-9 {
		t.Errorf("got %+v, want 700, 0.5, 0.25", f)
	}
}

// Without work the fit is a constant a that minimises Σ(a/tᵢ − 1)², which is
// a = Σ(1/tᵢ) / Σ(1/tᵢ²). For t = 1, 2, 4: a = 1.75/1.3125 = 4/3. Left out in turn:
//
//	1: a = 0.75/0.3125 = 12/5, off by 7/5
//	2: a = 1.25/1.0625 = 20/17, off by 7/17
//	4: a = 1.5/1.25 = 6/5, off by 7/10
//
// Two of the three lie within 7/10.
func TestFitConstant(t *testing.T) {
	f, ok := fitOf([3]float64{0, 0, 1}, [3]float64{0, 0, 2}, [3]float64{0, 0, 4})
	if !ok || !near(f.Coef[0], 4.0/3, 1e-12) || f.Coef[1] != 0 || f.Coef[2] != 0 || !near(f.RelError, 0.7, 1e-12) {
		t.Errorf("got %+v, want 4/3 with error 7/10", f)
	}
}

// TestFitErrorCoversNewShapes draws calls of a known line whose times are off by a
// relative error uniform in ±20 %. Of a further call of the line two of three errors
// are below 2/3 of 20 %, as |u| of a uniform u is uniform; the fit adds its own, which
// vanishes with many shapes. So over many draws the error bar is 13.3 %: with 60 shapes
// the coefficients are off by about 0.2/√3/√20 < 3 %, and a mean over 40 fits is to
// lie within that of it.
func TestFitErrorCoversNewShapes(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 2))
	draw := func() [3]float64 {
		f, m := math.Exp(r.Float64()*12), math.Exp(r.Float64()*12)
		return [3]float64{math.Round(f), math.Round(m), (500 + 2*math.Round(f) + 3*math.Round(m)) * (1 + 0.2*(2*r.Float64()-1))}
	}
	sum, covered, total := 0.0, 0, 0
	const fits, shapes, fresh = 40, 60, 50
	for range fits {
		rows := make([][3]float64, shapes)
		for i := range rows {
			rows[i] = draw()
		}
		f, ok := fitOf(rows...)
		if !ok {
			t.Fatal("no fit")
		}
		sum += f.RelError
		for range fresh {
			row := draw()
			total++
			if math.Abs(f.Ns(row[0], row[1])/row[2]-1) <= f.RelError {
				covered++
			}
		}
	}
	if mean := sum / fits; math.Abs(mean-0.2*2/3) > 0.03 {
		t.Errorf("mean error bar %.3f, want 0.133 ± 0.03", mean)
	}
	// Standard deviation of the share: √(2/9/2000) = 1 %; five of them.
	if share := float64(covered) / float64(total); math.Abs(share-2.0/3) > 0.053 {
		t.Errorf("%.3f of new calls lie within the error bar, want 2/3", share)
	}
}

// Bytes that are twice the flops everywhere cannot be told from them; any split
// of 3 ns per flop is a solution.
func TestFitDependentColumns(t *testing.T) {
	f, ok := fitOf([3]float64{10, 20, 30}, [3]float64{100, 200, 300}, [3]float64{1000, 2000, 3000})
	if !ok || !near(f.Ns(50, 100), 150, 1e-9) {
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
		for j, c := range f.Coef {
			grad, size := 0.0, 0.0
			for _, row := range rows {
				x := [3]float64{1, row[0], row[1]}[j] / row[2]
				grad += x * (f.Ns(row[0], row[1])/row[2] - 1)
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
