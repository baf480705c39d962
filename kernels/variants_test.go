package kernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"dahl/dag"
)

// TestVariantsAgainstReference compares every variant with "ref".
//
// A result is a sum of N products of inputs, added in another order. Both variants
// err from the exact sum by at most γ·Σ|a||b|, γ = N·u/(1-N·u), u half the distance
// of 1 and the next number (Higham, Accuracy and Stability of Numerical Algorithms,
// section 3.1), so they differ by at most 2γ·Σ|a||b|. What is there before (mode
// ReadWrite) and the bias are two more terms. The bound of each element is computed
// by the reference itself in float64 on the absolute values of the inputs, which
// gives Σ|a||b|, itself with a relative error below 1e-12, covered by the 1.01.
//
// Operations that move or compare values, or do the same few operations per element
// in both variants, each rounded, must be equal bit for bit. So must softmax but for its
// exponentials, see compareSoftmax.
func TestVariantsAgainstReference(t *testing.T) {
	eachCall(t, 120, compareVariants)
}

func compareVariants(t *testing.T, s *sample) {
	t.Helper()
	k := s.kernel
	want := s.clone()
	runVariant(want, &k.Variants[0])
	terms := summands(s)
	var scale *sample
	if terms > 0 {
		scale = s.magnitudes()
		runVariant(scale, &k.Variants[0])
	}
	for v := 1; v < len(k.Variants); v++ {
		if !k.Variants[v].RunsHere() {
			continue
		}
		got := s.clone()
		runVariant(got, &k.Variants[v])
		if k.Op == "softmax_xent" || k.Op == "softmax_xent.eval" {
			compareSoftmax(t, s, got, want, k.Variants[v].Name)
			continue
		}
		for i := range s.buffers {
			compare(t, s, got, want, scale, i, terms, k.Variants[v].Name)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
}

// TestBlocks does the same at extents beyond the blocks of the fast variants, none a
// multiple of them: more than 1024 inputs of a dot product, 256 columns and 64 steps of
// a product in plain Go, panelPixels pixels, rows longer than a panel, and images of
// which two exceed turnedBytes or cachedBytes.
func TestBlocks(t *testing.T) {
	for _, c := range []struct {
		op     string
		shapes [][]int
		params dag.Params
	}{
		{"dense", [][]int{{3, 5}, {3, 2*1024 + 7}, {5, 2*1024 + 7}, {5}}, nil},
		{"dense.dx", [][]int{{3, 2*256 + 7}, {3, 2*64 + 5}, {2*64 + 5, 2*256 + 7}}, nil},
		{"dense.dw", [][]int{{5, 2*256 + 7}, {2*64 + 3, 5}, {2*64 + 3, 2*256 + 7}, {5}}, nil},
		{"dense.dw.sgd", [][]int{{23, 6*1024 + 7}, {23}, {3, 23}, {3, 6*1024 + 7}, {2}, {23, 6*1024 + 7}, {23}}, sgdParams(0.9, 1, 0.01)},
		{"conv2d", [][]int{{2, 3, 29, 41}, {2, 5, 29, 41}, {3, 5, 3, 3}, {3}}, convParams(1, 1)},
		{"conv2d.dx", [][]int{{2, 5, 53, 67}, {2, 3, 27, 34}, {3, 5, 3, 3}}, convParams(1, 2)},
		{"conv2d.dw", [][]int{{3, 5, 3, 3}, {2, 3, 29, 41}, {2, 5, 29, 41}, {3}}, convParams(1, 1)},
		{"conv2d.nhwc", [][]int{{2, 7, 11, 101}, {2, 7, 11, 67}, {3, 3, 67, 101}, {101}}, append(convParams(1, 1), dag.Param{Name: "relu", Value: 1})},
		{"conv2d.nhwc.dx", [][]int{{2, 7, 11, 101}, {2, 7, 11, 67}, {3, 3, 67, 101}, {2, 7, 11, 101}}, convParams(1, 1)},
		{"conv2d.nhwc.dx", [][]int{{11, 23, 29, 6}, {11, 19, 25, 17}, {5, 5, 17, 6}}, convParams(0, 1)}, // scatters
		{"conv2d.nhwc.dw", [][]int{{3, 3, 67, 101}, {2, 7, 11, 101}, {2, 7, 11, 67}, {101}}, convParams(1, 1)},
		{"conv2d", [][]int{{2, 5, 61, 53}, {2, 7, 61, 53}, {5, 7, 3, 3}, {5}}, convParams(1, 1)},
		{"conv2d.dx", [][]int{{2, 7, 61, 53}, {2, 5, 61, 53}, {5, 7, 3, 3}}, convParams(1, 1)},
		{"conv2d.dw", [][]int{{5, 7, 3, 3}, {2, 5, 61, 53}, {2, 7, 61, 53}, {5}}, convParams(1, 1)},
		{"conv2d", [][]int{{1, 2, 2, panelPixels + 9}, {1, 7, 2, panelPixels + 9}, {2, 7, 3, 3}}, convParams(1, 1)},
	} {
		k, _ := Lookup(c.op)
		for _, real := range []dag.DType{dag.Float32, dag.Float64} {
			s := newSample(k, real, c.shapes, firstModes(k)[:len(c.shapes)], c.params, 0)
			if err := Validate(&s.spec); err != nil {
				t.Fatal(err)
			}
			s.fill(rand.New(rand.NewPCG(19, 23)))
			compareVariants(t, s)
		}
	}
}

func runVariant(s *sample, v *Variant) { v.Run(s.spec.Type)(s.call(v)) }

// summands is the number of products and terms added into one element, 0 where a
// variant must give the reference's bits.
func summands(s *sample) int {
	shape := func(i int) []int { return s.spec.Operands[i].Shape }
	switch s.kernel.Op {
	case "conv2d":
		w := shape(2)
		return w[1]*w[2]*w[3] + 2
	case "conv2d.dx":
		w := shape(2)
		return w[0]*w[2]*w[3] + 2
	case "conv2d.nhwc", "conv2d.nhwc.dx":
		w := shape(2)
		return w[0]*w[1]*w[2] + 2
	case "conv2d.nhwc.dw":
		y := shape(1)
		return y[0]*y[1]*y[2] + 2
	case "conv2d.dw":
		y := shape(1)
		return y[0]*y[2]*y[3] + 2
	case "dense", "dense.relu":
		return shape(1)[1] + 2
	case "dense.dx", "dense.dx.relu":
		return shape(1)[1] + 2
	case "dense.dw":
		return shape(1)[0] + 2
	case "dense.dw.sgd":
		return shape(2)[0] + 10 // and products and sums with decay, momentum twice, and rate
	}
	return 0
}

// magnitudes returns the call in float64 with the absolute values of all reals, and of
// a learning rate what makes the step add to the weight.
func (s *sample) magnitudes() *sample {
	var shapes [][]int
	var modes []dag.Mode
	for _, o := range s.spec.Operands {
		shapes, modes = append(shapes, o.Shape), append(modes, o.Mode)
	}
	m := newSample(s.kernel, dag.Float64, shapes, modes, s.spec.Params, 0)
	for i := range s.buffers {
		values := s.values(i)
		sign := 1.0
		if s.kernel.Operands[i].Kind == Scalar {
			sign = -1
		}
		m.set(i, func(j int) float64 { return sign * math.Abs(values[j]) })
	}
	return m
}

// compare checks operand i: bits outside the region, values within.
func compare(t *testing.T, s, got, want, scale *sample, i, terms int, variant string) {
	t.Helper()
	if terms == 0 || s.spec.Operands[i].Mode == dag.Read {
		if !got.sameBytes(want, i) {
			t.Errorf("%s %v, operand %s: %s differs from ref: %v, want %v",
				s.spec.Key(), s.spec.Type, s.kernel.Operands[i].Name, variant, got.values(i), want.values(i))
		}
		return
	}
	g, w, limit := got.values(i), want.values(i), scale.values(i)
	nu := float64(terms) * unitRoundoff(s.spec.Type)
	for j := range g {
		if bound := 2 * 1.01 * nu / (1 - nu) * limit[j]; !(math.Abs(g[j]-w[j]) <= bound) {
			t.Errorf("%s %v, operand %s[%d]: %s gives %g, ref %g, difference %g > %g",
				s.spec.Key(), s.spec.Type, s.kernel.Operands[i].Name, j, variant, g[j], w[j], g[j]-w[j], bound)
			return
		}
	}
	// What lies around the region must not change: put the reference's values into
	// the region and compare all bytes.
	both := got.clone()
	both.set(i, func(j int) float64 { return w[j] })
	if !both.sameBytes(want, i) {
		t.Errorf("%s, operand %s: %s writes outside its region", s.spec.Key(), s.kernel.Operands[i].Name, variant)
	}
}

// unitRoundoff is half the distance of 1 and the next number.
func unitRoundoff(t dag.DType) float64 {
	if t == dag.Float32 {
		return 0x1p-24
	}
	return 0x1p-53
}

// TestRegions checks that no variant changes an operand it only reads, or anything
// outside the regions it writes, and that a written region holds nothing of what was
// there before: filled with NaN, or 0xff bytes, it gives the same bits.
func TestRegions(t *testing.T) {
	eachCall(t, 40, func(t *testing.T, s *sample) {
		for v := range s.kernel.Variants {
			variant := &s.kernel.Variants[v]
			if !variant.RunsHere() {
				continue
			}
			got, poisoned := s.clone(), s.clone()
			for i, o := range s.spec.Operands {
				if o.Mode == dag.Write {
					poisoned.poison(i)
				}
			}
			runVariant(got, variant)
			runVariant(poisoned, variant)
			for i, o := range s.spec.Operands {
				name := s.kernel.Operands[i].Name
				if o.Mode == dag.Read && !got.sameBytes(s, i) {
					t.Errorf("%s %s: changes %s, which it only reads", variant.Name, s.spec.Key(), name)
				}
				if o.Mode != dag.Read && !got.sameOutside(s, i) {
					t.Errorf("%s %s: changes what lies around %s", variant.Name, s.spec.Key(), name)
				}
				if !poisoned.sameBytes(got, i) {
					t.Errorf("%s %s: %s depends on what it held before", variant.Name, s.spec.Key(), name)
				}
			}
		}
		if t.Failed() {
			t.FailNow()
		}
	})
}

// poison fills operand i's region with 0xff bytes, which are NaN in both float types.
func (s *sample) poison(i int) {
	size := int(s.buffers[i].Type.SizeBytes())
	s.each(i, func(at int) {
		for b := range size {
			s.data[i][at*size+b] = 0xff
		}
	})
}

// sameOutside compares operand i of two samples bit for bit outside its region.
func (s *sample) sameOutside(t *sample, i int) bool {
	a, b := s.clone(), t.clone()
	a.poison(i)
	b.poison(i)
	return a.sameBytes(b, i)
}

// TestAccumulation checks that ReadWrite is Write plus what was there before. In the
// reference this is one addition, so it is exact; variants are compared with the
// reference above.
func TestAccumulation(t *testing.T) {
	eachCall(t, 40, func(t *testing.T, s *sample) {
		for i := range s.spec.Operands {
			o := &s.spec.Operands[i]
			if o.Mode != dag.ReadWrite || len(s.kernel.Operands[i].Modes) == 1 {
				continue
			}
			added, alone := s.clone(), s.clone()
			alone.spec.Operands = append([]OperandSpec(nil), s.spec.Operands...)
			alone.spec.Operands[i].Mode = dag.Write
			runVariant(added, &s.kernel.Variants[0])
			runVariant(alone, &s.kernel.Variants[0])
			before, sum := s.values(i), alone.values(i)
			for j, v := range added.values(i) {
				want := before[j] + sum[j]
				if s.spec.Type == dag.Float32 {
					want = float64(float32(before[j]) + float32(sum[j]))
				}
				if v != want {
					t.Fatalf("%s: %g + %g gives %g", s.spec.Key(), before[j], sum[j], v)
				}
			}
		}
	})
}

// TestNoAllocation runs every variant of every operation once more.
func TestNoAllocation(t *testing.T) {
	eachCall(t, 4, func(t *testing.T, s *sample) {
		for v := range s.kernel.Variants {
			if !s.kernel.Variants[v].RunsHere() {
				continue
			}
			call, run := s.call(&s.kernel.Variants[v]), s.kernel.Variants[v].Run(s.spec.Type)
			if n := testing.AllocsPerRun(5, func() { run(call) }); n != 0 {
				t.Errorf("%s %s: %g allocations", s.kernel.Variants[v].Name, s.spec.Key(), n)
			}
		}
	})
}
