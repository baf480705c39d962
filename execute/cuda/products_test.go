//go:build cuda

package cuda

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/kerneltest"
)

// TestProductTiles runs products at extents that are cut into each of the tiles, with and
// without splits, in whole buffers and in regions of larger ones: every product that is
// compiled is launched once at least.
func TestProductTiles(t *testing.T) {
	launched := map[string]bool{}
	d := newKernelBench(t)
	rng := rand.New(rand.NewPCG(13, 17))
	for _, c := range []struct {
		op     string
		shapes [][]int
		params dag.Params
		margin int
	}{
		{"dense", [][]int{{1031, 523}, {1031, 3}, {523, 3}, {523}}, nil, 0},
		{"dense", [][]int{{1031, 1033}, {1031, 3}, {1033, 3}, {1033}}, nil, 0},
		{"dense", [][]int{{260, 264}, {260, 36}, {264, 36}, {264}}, nil, 4},
		{"dense.relu", [][]int{{3, 263}, {3, 131}, {263, 131}, {263}}, nil, 1},
		{"dense", [][]int{{67, 10}, {67, 541}, {10, 541}, {10}}, nil, 0},
		{"dense.dx", [][]int{{1031, 523}, {1031, 3}, {3, 523}}, nil, 0},
		{"dense.dx", [][]int{{1031, 1033}, {1031, 3}, {3, 1033}}, nil, 0},
		{"dense.dx.relu", [][]int{{136, 140}, {136, 12}, {12, 140}, {136, 140}}, nil, 4},
		{"dense.dw", [][]int{{1031, 523}, {3, 1031}, {3, 523}, {1031}}, nil, 0},
		{"dense.dw", [][]int{{1031, 1033}, {3, 1031}, {3, 1033}, {1031}}, nil, 0},
		{"dense.dw", [][]int{{263, 3}, {131, 263}, {131, 3}, {263}}, nil, 1},
		{"dense.dw", [][]int{{12, 544}, {132, 12}, {132, 544}, {12}}, nil, 4},
		{"dense.dw", [][]int{{3, 8}, {5003, 3}, {5003, 8}, {3}}, nil, 0},
		{"dense.dw.sgd", [][]int{{5, 13}, {4099, 5}, {4099, 13}, {2}, {5}, {5, 13}, {5}}, kerneltest.SGDParams(0.9, 1, 0.01), 0},
		{"conv2d.nhwc", [][]int{{1, 127, 131, 17}, {1, 127, 131, 3}, {1, 1, 3, 17}, {17}}, kerneltest.ConvReLUParams(0, 1, 1), 0},
		{"conv2d.nhwc", [][]int{{1, 31, 37, 521}, {1, 31, 37, 3}, {1, 1, 3, 521}, {521}}, kerneltest.ConvReLUParams(0, 1, 0), 0},
		{"conv2d.nhwc", [][]int{{1, 1, 3, 263}, {1, 1, 3, 131}, {1, 1, 131, 263}, {263}}, kerneltest.ConvReLUParams(0, 1, 1), 1},
		{"conv2d.nhwc", [][]int{{1, 5, 13, 3}, {1, 5, 13, 67}, {3, 3, 67, 3}, {3}}, kerneltest.ConvReLUParams(1, 1, 1), 0},
		{"conv2d.nhwc.dx", [][]int{{2, 17, 19, 32}, {2, 17, 19, 36}, {3, 3, 36, 32}, {2, 17, 19, 32}}, kerneltest.ConvParams(1, 1), 4},
		{"conv2d.nhwc.dx", [][]int{{2, 17, 19, 4}, {2, 9, 10, 36}, {3, 3, 36, 4}, {2, 17, 19, 4}}, kerneltest.ConvParams(1, 2), 0},
		{"conv2d.nhwc.dw", [][]int{{1, 1, 263, 269}, {1, 1, 3, 269}, {1, 1, 3, 263}, {269}}, kerneltest.ConvParams(0, 1), 0},
		{"conv2d.nhwc.dw", [][]int{{3, 3, 61, 523}, {1, 1, 2, 523}, {1, 1, 2, 61}, {523}}, kerneltest.ConvParams(1, 1), 1},
		{"conv2d.nhwc.dw", [][]int{{3, 3, 1, 5}, {2, 17, 19, 5}, {2, 17, 19, 1}, {5}}, kerneltest.ConvParams(1, 1), 0},
		{"conv2d.nhwc.dw", [][]int{{3, 3, 16, 32}, {2, 17, 19, 32}, {2, 17, 19, 16}, {32}}, kerneltest.ConvParams(1, 1), 4},
		{"conv2d.nhwc.dw.sgd", [][]int{{32, 16, 3, 3}, {2, 17, 19, 32}, {2, 17, 19, 16}, {2}, {32}, {32, 16, 3, 3}, {32}},
			append(kerneltest.ConvParams(1, 1), kerneltest.SGDParams(0.9, 1, 0.01)...), 4},
		{"conv2d.nhwc.dw.sgd.nobias", [][]int{{32, 16, 3, 3}, {2, 17, 19, 32}, {2, 17, 19, 16}, {2}, {32, 16, 3, 3}},
			append(kerneltest.ConvParams(1, 1), kerneltest.SGDParams(0.9, 1, 0.01)...), 4},
		{"conv2d.nhwc.pool", [][]int{{3, 6, 7, 36}, {3, 6, 7, 36}, {3, 14, 16, 4}, {3, 3, 4, 36}, {36}}, kerneltest.ConvPoolParams(0, 1, 2, 2), 4},
		{"conv2d.nhwc.pool", [][]int{{3, 5, 6, 8}, {3, 5, 6, 8}, {3, 14, 16, 4}, {3, 3, 4, 8}, {8}}, kerneltest.ConvPoolParams(0, 1, 3, 2), 1},
		{"conv2d.nhwc.pool.dw", [][]int{{1, 1, 263, 269}, {1, 1, 3, 269}, {1, 1, 3, 269}, {1, 1, 3, 263}, {269}}, kerneltest.ConvPoolParams(0, 1, 1, 1), 0},
		{"conv2d.nhwc.pool.dw", [][]int{{3, 3, 61, 523}, {1, 1, 2, 523}, {1, 1, 2, 523}, {1, 1, 2, 61}, {523}}, kerneltest.ConvPoolParams(1, 1, 1, 1), 1},
		{"conv2d.nhwc.pool.dw", [][]int{{3, 3, 1, 5}, {2, 8, 9, 5}, {2, 8, 9, 5}, {2, 17, 19, 1}, {5}}, kerneltest.ConvPoolParams(1, 1, 2, 2), 0},
		{"conv2d.nhwc.pool.dw", [][]int{{3, 3, 1, 31}, {1, 37, 35, 31}, {1, 37, 35, 31}, {1, 74, 71, 1}, {31}}, kerneltest.ConvPoolParams(1, 1, 2, 2), 0},
		{"conv2d.nhwc.pool.dw", [][]int{{5, 5, 12, 36}, {2, 7, 7, 36}, {2, 7, 7, 36}, {2, 16, 16, 12}, {36}}, kerneltest.ConvPoolParams(2, 1, 3, 2), 4},
	} {
		k, _ := kernels.KernelByName(c.op)
		types := []dag.DType{dag.Float32, dag.Float64}
		if c.margin == 0 {
			types = types[:1] // float64 has few tiles, and the cases with margins meet all of them
		}
		for _, real := range types {
			s := kerneltest.New(k, real, c.shapes, kerneltest.FirstModes(k)[:len(c.shapes)], c.params, c.margin)
			must(t, kernels.Validate(&s.Spec))
			s.Fill(rng)
			expected := kerneltest.Expect(s)
			for v := range d.variants(s) {
				// Large results are there for the tiles that nothing smaller is cut into.
				if fresh := launchesOf(s, v, launched); fresh || len(s.Data[0]) < 1<<20 {
					if got := d.run(s, v); got != nil {
						must(t, expected.Compare(got, v))
					}
				}
			}
		}
	}
	for _, symbol := range compiledProducts(t) {
		if !launched[symbol] {
			t.Errorf("no case launches %s", symbol)
		}
	}
}

// launchesOf notes what a variant of a case launches, and reports whether there is a kernel
// that was not noted before; at the addresses of a device or at others, the symbols are the
// same.
func launchesOf(c *kerneltest.Case, v *calls.Variant, launched map[string]bool) (fresh bool) {
	for _, l := range v.Launches(c.DeviceCall(make([]uint64, len(c.Buffers)), 0)) {
		fresh = fresh || !launched[l.Symbol]
		launched[l.Symbol] = true
	}
	return fresh
}

// compiledProducts are the symbols of all products in the sources.
func compiledProducts(t *testing.T) []string {
	files, err := filepath.Glob("../../kernels/cuda/*.cu")
	must(t, err)
	product := regexp.MustCompile(`(?m)^(?:PRODUCT|ENTRY)\(((?:dense|conv2d|product)_\w+),`)
	var all []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		must(t, err)
		for _, m := range product.FindAllStringSubmatch(string(text), -1) {
			all = append(all, m[1])
		}
	}
	if len(all) == 0 {
		t.Fatal("the sources have no products")
	}
	return all
}

// TestDescentIsTwoOperations: dense.dw.sgd changes weights, biases and velocities as
// dense.dw and then sgd do, bit for bit, also where sums are split (of 5003 samples). So does dense.dw.sgd.nobias without
// biases.
func TestDescentIsTwoOperations(t *testing.T) {
	d := newKernelBench(t)
	rng := rand.New(rand.NewPCG(5, 7))
	for _, e := range [][3]int{{7, 3, 5}, {67, 17, 131}, {5003, 5, 13}} {
		samples, w := e[0], []int{e[1], e[2]}
		for _, real := range []dag.DType{dag.Float32, dag.Float64} {
			for _, step := range []dag.Params{kerneltest.SGDParams(0, 0, 0), kerneltest.SGDParams(0.9, 0, 0.01), kerneltest.SGDParams(0.9, 1, 0.01)} {
				d.compareDescent(rng, "dense.dw", "cuda", real, 1, nil, step, w, [][]int{{samples, w[0]}, {samples, w[1]}})
			}
		}
	}
}

// TestConvDescentIsThreeOperations: conv2d.nhwc.dw.sgd and conv2d.nhwc.pool.dw.sgd change
// weights, biases and velocities as the gradient, oihw and sgd do, bit for bit, also where
// sums are split (of 2·37·41 pixels). So do the operations without a bias.
func TestConvDescentIsThreeOperations(t *testing.T) {
	d := newKernelBench(t)
	rng := rand.New(rand.NewPCG(61, 67))
	for i, g := range []struct{ x, y, pooled, w []int }{ // windows of 3, padding 1; pooling of 2 at stride 2
		{[]int{2, 37, 41, 3}, []int{2, 37, 41, 5}, []int{2, 18, 20, 5}, []int{5, 3, 3, 3}},
		{[]int{1, 7, 13, 67}, []int{1, 7, 13, 71}, []int{1, 3, 6, 71}, []int{71, 67, 3, 3}},
	} {
		for _, real := range []dag.DType{dag.Float32, dag.Float64} {
			for _, step := range []dag.Params{kerneltest.SGDParams(0, 0, 0.01), kerneltest.SGDParams(0.9, 0, 0.01), kerneltest.SGDParams(0.9, 1, 0)} {
				for _, c := range []struct {
					op       string
					geometry dag.Params
					inputs   [][]int
				}{
					{"conv2d.nhwc.dw", kerneltest.ConvParams(1, 1), [][]int{g.y, g.x}},
					{"conv2d.nhwc.pool.dw", kerneltest.ConvPoolParams(1, 1, 2, 2), [][]int{g.pooled, g.pooled, g.x}},
				} {
					for _, math := range []string{"cuda", "tf32"} {
						if math == "cuda" || real == dag.Float32 && d.device.Capability >= 80 {
							d.compareDescent(rng, c.op, math, real, i, c.geometry, step, g.w, c.inputs)
						}
					}
				}
			}
		}
	}
}

// compareDescent compares a variant of op.sgd with those of op, oihw where weights have four dimensions and sgd, in regions with
// a margin. inputs are the shapes of what op reads, w that of the weights.
func (b *kernelBench) compareDescent(rng *rand.Rand, op, math string, real dag.DType, margin int, geometry, step dag.Params, w []int, inputs [][]int) {
	call := func(op, variant string, params dag.Params, shapes [][]int, values ...[]float64) (c, after *kerneltest.Case) {
		k, _ := kernels.KernelByName(op)
		c = kerneltest.New(k, real, shapes, kerneltest.FirstModes(k), params, margin)
		must(b.t, kernels.Validate(&c.Spec))
		c.Fill(rng)
		for i, v := range values {
			if v != nil {
				c.Set(i, func(j int) float64 { return v[j] })
			}
		}
		v, _ := k.Variant(variant)
		return c, b.run(c, v)
	}
	packed, bias, hyper := w, w[:1], 1+len(inputs)
	if len(w) == 4 {
		packed = []int{w[2], w[3], w[1], w[0]}
	}
	shapes := append(append([][]int{w}, inputs...), []int{2}, bias, w, bias)
	s, fused := call(op+".sgd", math, append(geometry[:len(geometry):len(geometry)], step...), shapes)
	if math == "cuda" {
		b.compareWithoutBias(s, fused)
	}
	values := [][]float64{nil}
	for i := range inputs {
		values = append(values, s.Values(1+i))
	}
	_, grads := call(op, math, geometry, append(append([][]int{packed}, inputs...), bias), values...)
	turned := grads
	if len(w) == 4 {
		_, turned = call("oihw", "cuda", nil, [][]int{w, packed}, nil, grads.Values(0))
	}
	for i, g := range [][]float64{turned.Values(0), grads.Values(1 + len(inputs))} {
		parameter, velocity := []int{0, hyper + 1}[i], hyper+2+i
		shape := s.Spec.Operands[parameter].Shape
		_, stepped := call("sgd", "cuda", step, [][]int{shape, shape, {2}, shape}, s.Values(parameter), g, s.Values(hyper), s.Values(velocity))
		if !slices.Equal(fused.Values(parameter), stepped.Values(0)) || !slices.Equal(fused.Values(velocity), stepped.Values(3)) {
			b.t.Errorf("%s %s %s: operand %d has other bits than after three operations", math, op, s.Spec.Key(), parameter)
		}
	}
}

// compareWithoutBias checks that the operation without a bias changes weights and velocities as that with one did. The
// extents are such that the row or column of ones, which it lacks, does not change the tiles and splits.
func (b *kernelBench) compareWithoutBias(before, after *kerneltest.Case) {
	alone := before.WithoutBias()
	must(b.t, kernels.Validate(&alone.Spec))
	v, _ := alone.Kernel.Variant("cuda")
	alone = b.run(alone, v)
	for _, name := range []string{"w", "vw"} {
		if !slices.Equal(alone.Values(alone.Operand(name)), after.Values(after.Operand(name))) {
			b.t.Errorf("%s %s: %s has other bits than beside a bias", alone.Kernel.Op, alone.Spec.Key(), name)
		}
	}
}

// TestCopiesKeepBits: from capability 8.0 on tiles are filled by copies and before through
// registers, and the results have the same bits: of operands that are copied in units of 16
// bytes and by elements, along the sum and across it, with ones and with ends, in long sums
// that go several times round the slots and in splits.
func TestCopiesKeepBits(t *testing.T) {
	registers, copies := newKernelBench(t), newKernelBench(t)
	if copies.device.Capability < 80 {
		t.Skip("the device copies nothing by itself")
	}
	registers.device.Capability = 75
	rng := rand.New(rand.NewPCG(19, 23))
	for _, c := range []struct {
		op     string
		shapes [][]int
		params dag.Params
		margin int
	}{
		{"dense", [][]int{{67, 71}, {67, 131}, {71, 131}, {71}}, nil, 1},
		{"dense", [][]int{{5, 12}, {5, 132}, {12, 132}, {12}}, nil, 4},
		{"dense.dx", [][]int{{67, 76}, {67, 73}, {73, 76}}, nil, 4},
		{"dense.dx", [][]int{{67, 71}, {67, 73}, {73, 71}}, nil, 1},
		{"dense.dw", [][]int{{7, 131}, {137, 7}, {137, 131}, {7}}, nil, 1},
		{"dense.dw", [][]int{{68, 72}, {1031, 68}, {1031, 72}, {68}}, nil, 0},
		{"conv2d.nhwc", [][]int{{2, 5, 7, 12}, {2, 5, 7, 8}, {3, 3, 8, 12}, {12}}, kerneltest.ConvReLUParams(1, 1, 1), 4},
		{"conv2d.nhwc", [][]int{{2, 5, 7, 67}, {2, 5, 7, 3}, {3, 3, 3, 67}, {67}}, kerneltest.ConvReLUParams(1, 1, 0), 1},
		{"conv2d.nhwc.dx", [][]int{{2, 7, 9, 12}, {2, 4, 5, 36}, {3, 3, 36, 12}}, kerneltest.ConvParams(1, 2), 4},
		{"conv2d.nhwc.dw", [][]int{{3, 3, 1, 5}, {2, 17, 19, 5}, {2, 17, 19, 1}, {5}}, kerneltest.ConvParams(1, 1), 1},
		{"conv2d.nhwc.dw", [][]int{{3, 3, 16, 36}, {1, 11, 13, 36}, {1, 11, 13, 16}, {36}}, kerneltest.ConvParams(1, 1), 4},
		{"conv2d.nhwc.pool.dw", [][]int{{3, 3, 4, 12}, {2, 7, 7, 12}, {2, 7, 7, 12}, {2, 16, 16, 4}, {12}}, kerneltest.ConvPoolParams(1, 1, 3, 2), 4},
		{"conv2d.nhwc.dw.sgd", [][]int{{36, 16, 3, 3}, {1, 11, 13, 36}, {1, 11, 13, 16}, {2}, {36}, {36, 16, 3, 3}, {36}},
			append(kerneltest.ConvParams(1, 1), kerneltest.SGDParams(0.9, 1, 0.01)...), 4},
	} {
		k, _ := kernels.KernelByName(c.op)
		v, _ := k.Variant("cuda")
		for _, real := range []dag.DType{dag.Float32, dag.Float64} {
			s := kerneltest.New(k, real, c.shapes, kerneltest.FirstModes(k)[:len(c.shapes)], c.params, c.margin)
			must(t, kernels.Validate(&s.Spec))
			s.Fill(rng)
			loaded, copied := registers.run(s, v), copies.run(s, v)
			for i := range s.Buffers {
				if !loaded.SameBytes(copied, i) {
					t.Errorf("%s %s: operand %d has other bits by copies than through registers", c.op, s.Spec.Key(), i)
				}
			}
		}
	}
}
