package kernels_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/kerneltest"
	"dahl/must"
)

// TestVariantsAgainstReference compares every variant, the reference among them, with "ref". Before a variant runs, what it
// overwrites is filled with NaN, or 0xff bytes, of which nothing may be left. What is only read, and what lies around a region, must
// keep its bits.
func TestVariantsAgainstReference(t *testing.T) {
	kerneltest.Each(t, 40, func(t *testing.T, c *kerneltest.Case) { compareVariants(t, c, 0) })
}

// compareVariants compares the variants from one on.
func compareVariants(t *testing.T, c *kerneltest.Case, first int) {
	t.Helper()
	expected := kerneltest.Expect(c)
	for v := first; v < len(c.Kernel.Variants); v++ {
		variant := &c.Kernel.Variants[v]
		if !c.Runs(variant) {
			continue
		}
		got := c.Clone()
		for i, o := range c.Spec.Operands {
			if o.Mode == dag.Write {
				got.Poison(i)
			}
		}
		got.Run(variant)
		must.Do(t, expected.Compare(got, variant))
		for i, o := range c.Spec.Operands {
			if o.Mode == dag.Read && !got.SameBytes(c, i) {
				t.Fatalf("%s %s: changes %s, which it only reads", variant.Name, c.Spec.Key(), c.Kernel.Operands[i].Name)
			}
		}
	}
}

// TestBlocks does the same at extents beyond the blocks of the fast variants, none a
// multiple of them: more than 1024 inputs of a dot product, 256 columns and 64 steps of
// a product in plain Go, long rows, filters beyond FiltersBytes, and images of which two exceed
// CachedBytes.
func TestBlocks(t *testing.T) {
	for i, c := range []struct {
		op     string
		shapes [][]int
		params dag.Params
	}{
		{"dense", [][]int{{3, 5}, {3, 2*1024 + 7}, {5, 2*1024 + 7}, {5}}, nil},
		{"dense.dx", [][]int{{3, 2*256 + 7}, {3, 2*64 + 5}, {2*64 + 5, 2*256 + 7}}, nil},
		{"dense.dw", [][]int{{5, 2*256 + 7}, {2*64 + 3, 5}, {2*64 + 3, 2*256 + 7}, {5}}, nil},
		{"dense", [][]int{{67, 151}, {67, 283}, {151, 283}, {151}}, nil}, // copied blocks
		{"dense.relu", [][]int{{67, 151}, {67, 283}, {151, 283}, {151}}, nil},
		{"dense.dx", [][]int{{67, 151}, {67, 283}, {283, 151}}, nil},
		{"dense.dx.relu", [][]int{{67, 151}, {67, 283}, {283, 151}, {67, 151}}, nil},
		{"dense.dw", [][]int{{67, 151}, {283, 67}, {283, 151}, {67}}, nil},
		{"dense.dw.sgd", [][]int{{23, 6*1024 + 7}, {3, 23}, {3, 6*1024 + 7}, {2}, {23}, {23, 6*1024 + 7}, {23}}, kerneltest.SGDParams(0.9, 1, 0.01)},
		{"conv2d.nhwc", [][]int{{2, 7, 11, 101}, {2, 7, 11, 67}, {3, 3, 67, 101}, {101}}, kerneltest.ConvReLUParams(1, 1, 1)},
		{"conv2d.nhwc.dx", [][]int{{2, 7, 11, 101}, {2, 7, 11, 67}, {3, 3, 67, 101}, {2, 7, 11, 101}}, kerneltest.ConvParams(1, 1)},
		{"conv2d.nhwc", [][]int{{1, 5, 13, 541}, {1, 5, 13, 59}, {3, 3, 59, 541}, {541}}, kerneltest.ConvReLUParams(1, 1, 1)}, // panels
		{"conv2d.nhwc.dx", [][]int{{1, 11, 13, 541}, {1, 6, 7, 59}, {3, 3, 59, 541}, {1, 11, 13, 541}}, kerneltest.ConvParams(1, 2)},
		{"conv2d.nhwc.dw", [][]int{{3, 3, 59, 541}, {1, 5, 13, 541}, {1, 5, 13, 59}, {541}}, kerneltest.ConvParams(1, 1)},
		{"conv2d.nhwc.dw", [][]int{{2, 2, 29, 31}, {1, 41, 67, 31}, {1, 17, 61, 29}, {31}}, kerneltest.ConvParams(5, 1)}, // rows of a sample, some beside it
		{"conv2d.nhwc.dw", [][]int{{1, 1, 67, 101}, {3, 19, 23, 101}, {3, 37, 45, 67}}, kerneltest.ConvParams(0, 2)},
		{"conv2d.nhwc.dx", [][]int{{2, 37, 45, 29}, {2, 19, 23, 31}, {1, 1, 31, 29}}, kerneltest.ConvParams(0, 2)},
		{"conv2d.nhwc.pool", [][]int{{1, 3, 11, 541}, {1, 3, 11, 541}, {1, 7, 23, 59}, {3, 3, 59, 541}, {541}}, kerneltest.ConvPoolParams(1, 1, 2, 2)},
		{"conv2d.nhwc.pool.dw", [][]int{{3, 3, 59, 541}, {1, 3, 11, 541}, {1, 3, 11, 541}, {1, 7, 23, 59}, {541}}, kerneltest.ConvPoolParams(1, 1, 2, 2)},
		{"conv2d.nhwc.dx", [][]int{{11, 23, 29, 6}, {11, 19, 25, 17}, {5, 5, 17, 6}}, kerneltest.ConvParams(0, 1)}, // scatters
		{"conv2d.nhwc.dw", [][]int{{3, 3, 67, 101}, {2, 7, 11, 101}, {2, 7, 11, 67}, {101}}, kerneltest.ConvParams(1, 1)},
		{"conv2d.nhwc", [][]int{{1, 29, 31, 101}, {1, 29, 31, 67}, {3, 3, 67, 101}, {101}}, kerneltest.ConvReLUParams(1, 1, 1)}, // two blocks of tiles
		{"conv2d.nhwc.dx", [][]int{{1, 31, 29, 67}, {1, 29, 27, 37}, {3, 3, 37, 67}}, kerneltest.ConvParams(0, 1)},
		{"conv2d.nhwc.dw", [][]int{{3, 3, 67, 37}, {1, 29, 31, 37}, {1, 29, 31, 67}, {37}}, kerneltest.ConvParams(1, 1)},
		{"conv2d.nhwc.pool", [][]int{{1, 14, 15, 37}, {1, 14, 15, 37}, {1, 29, 31, 67}, {3, 3, 67, 37}, {37}}, kerneltest.ConvPoolParams(1, 1, 3, 2)},
		{"conv2d.nhwc.dw.sgd", [][]int{{101, 67, 3, 3}, {2, 7, 11, 101}, {2, 7, 11, 67}, {2}, {101}, {101, 67, 3, 3}, {101}},
			append(kerneltest.ConvParams(1, 1), kerneltest.SGDParams(0.9, 1, 0.01)...)},
		{"layernorm", [][]int{{3, 1031}, {3, 2}, {3, 1031}, {1031}, {1031}}, kerneltest.RowParams(1, 1e-5)},
		{"layernorm.dx", [][]int{{3, 1031}, {3, 1031}, {3, 1031}, {3, 2}, {1031}}, kerneltest.FlagParams("center", 1)},
		// Two tiles of keys and some of queries: causal, to both sides, and a window that a tile of queries leaves behind.
		{"attention", [][]int{{2, 263, 34}, {2, 2, 263}, {2, 263, 34}, {2, 263, 17}, {2, 263, 17}}, kerneltest.HeadParams(1, 2, 263, 262)},
		{"attention", [][]int{{1, 67, 10}, {1, 2, 67}, {1, 67, 10}, {1, 523, 10}, {1, 523, 10}}, kerneltest.HeadParams(2, 1, 600, 40)},
		{"attention.dx", [][]int{{2, 263, 34}, {2, 263, 17}, {2, 263, 17}, {2, 263, 34}, {2, 263, 34}, {2, 263, 17}, {2, 263, 17}, {2, 2, 263}, {2, 2, 263}}, kerneltest.HeadParams(1, 2, 263, 262)},
		{"attention.dq", [][]int{{1, 263, 14}, {1, 263, 14}, {1, 263, 14}, {1, 263, 14}, {1, 263, 14}, {1, 2, 263}, {1, 2, 263}}, kerneltest.HeadParams(2, 1, 23, 22)},
		{"attention.dkv", [][]int{{2, 263, 17}, {2, 263, 17}, {2, 263, 34}, {2, 263, 34}, {2, 263, 17}, {2, 263, 17}, {2, 2, 263}, {2, 2, 263}}, kerneltest.HeadParams(1, 2, 263, 262)},
		{"attention.drop", [][]int{{2, 263, 34}, {2, 2, 263}, {2, 263, 34}, {2, 263, 17}, {2, 263, 17}, {2, 2, 263}}, dropParams(1, 2, 263, 262)},
		{"attention.drop.dq", [][]int{{1, 263, 14}, {1, 263, 14}, {1, 263, 14}, {1, 263, 14}, {1, 263, 14}, {1, 2, 263}, {1, 2, 263}, {1, 2, 263}}, dropParams(2, 1, 23, 22)},
		{"attention.drop.dkv", [][]int{{2, 263, 17}, {2, 263, 17}, {2, 263, 34}, {2, 263, 34}, {2, 263, 17}, {2, 263, 17}, {2, 2, 263}, {2, 2, 263}, {2, 2, 263}}, dropParams(1, 2, 263, 262)},
		// Blocks of 128 classes, and of 256 rows; labels are among them.
		{"xent.sums", [][]int{{263, 3}, {263, 13}, {131, 13}, {263}}, dag.Params{{Name: "first", Value: 7}}},
		{"xent.dx", [][]int{{263, 13}, {263, 13}, {131, 13}, {263}, {263, 3}, {1}}, kerneltest.LogitParams(263, 7)},
		{"xent.dw", [][]int{{131, 13}, {263, 13}, {131, 13}, {263}, {263, 3}}, kerneltest.LogitParams(269, 0)},
	} {
		k, _ := kernels.KernelByName(c.op)
		for _, real := range typesOf(i) {
			s := kerneltest.New(k, real, c.shapes, kerneltest.FirstModes(k)[:len(c.shapes)], c.params, 0)
			must.Do(t, kernels.Validate(&s.Spec))
			s.Fill(rand.New(rand.NewPCG(19, 23)))
			compareVariants(t, s, 1)
		}
	}
}

// dropParams are the parameters of an attention that drops a quarter of the weights.
func dropParams(heads, group, window, past float64) dag.Params {
	return append(kerneltest.HeadParams(heads, group, window, past), dag.Param{Name: "p", Value: 0.25})
}

// typesOf are both float types, or with -short one of them in turn.
func typesOf(i int) []dag.DType {
	if testing.Short() {
		return []dag.DType{dag.Float32, dag.Float64}[i%2:][:1]
	}
	return []dag.DType{dag.Float32, dag.Float64}
}

// addTermsInTurn are operations whose references add each term to what was there, so that no sum needs a place of its own, or merge it with what was there.
// TestTilesMakeTheWhole holds them to the bound of such sums.
var addTermsInTurn = []string{"embedding.dw", "positions.dw", "attention", "attention.drop", "xent.sums", "moments.total"}

// TestAccumulation checks that ReadWrite is Write plus what was there before. In other
// references this is one addition, so it is exact; variants are compared with the
// reference above.
func TestAccumulation(t *testing.T) {
	kerneltest.Each(t, 40, func(t *testing.T, s *kerneltest.Case) {
		for i := range s.Spec.Operands {
			o := &s.Spec.Operands[i]
			if o.Mode != dag.ReadWrite || len(s.Kernel.Operands[i].Modes) == 1 || slices.Contains(addTermsInTurn, s.Kernel.Op) {
				continue
			}
			added, alone := s.Clone(), s.Clone()
			alone.Spec.Operands = append([]calls.OperandSpec(nil), s.Spec.Operands...)
			alone.Spec.Operands[i].Mode = dag.Write
			added.Run(&s.Kernel.Variants[0])
			alone.Run(&s.Kernel.Variants[0])
			before, sum := s.Values(i), alone.Values(i)
			for j, v := range added.Values(i) {
				want := before[j] + sum[j]
				if s.Spec.Type == dag.Float32 {
					want = float64(float32(before[j]) + float32(sum[j]))
				}
				if v != want {
					t.Fatalf("%s: %g + %g gives %g", s.Spec.Key(), before[j], sum[j], v)
				}
			}
		}
	})
}

// TestNoAllocation runs every variant of every operation once more.
func TestNoAllocation(t *testing.T) {
	kerneltest.Each(t, 4, func(t *testing.T, s *kerneltest.Case) {
		for v := range s.Kernel.Variants {
			if !s.Runs(&s.Kernel.Variants[v]) {
				continue
			}
			call, run := s.Call(&s.Kernel.Variants[v]), s.Kernel.Variants[v].Run(s.Spec.Type)
			if n := testing.AllocsPerRun(5, func() { run(call) }); n != 0 {
				t.Errorf("%s %s: %g allocations", s.Kernel.Variants[v].Name, s.Spec.Key(), n)
			}
		}
	})
}
