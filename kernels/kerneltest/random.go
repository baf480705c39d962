package kerneltest

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
)

// primes for the extents of a call, pairwise different, so that no two dimensions
// can be swapped unnoticed.
var primes = []int{2, 3, 5, 7, 11, 13, 17, 19}

// Each runs a test over random cases of every operation that computes, see [Cases].
func Each(t *testing.T, cases int, test func(t *testing.T, c *Case)) {
	t.Helper()
	for i := range kernels.All {
		if k := &kernels.All[i]; !k.Host {
			t.Run(k.Op, func(t *testing.T) {
				for c := range Cases(k, cases) {
					test(t, c)
				}
			})
		}
	}
}

// Cases yields random cases of an operation: extents of 1 and pairwise different primes,
// whole buffers and regions of larger ones, both element types, all modes, padding 0 to 2
// and stride 1 to 3. The same come every time.
func Cases(k *kernels.Kernel, n int) iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		seed := slices.IndexFunc(kernels.All, func(other kernels.Kernel) bool { return other.Op == k.Op })
		rng := rand.New(rand.NewPCG(uint64(seed), 20))
		for i := range n {
			c := Random(k, rng, []dag.DType{dag.Float32, dag.Float64}[i%2])
			if err := kernels.Validate(&c.Spec); err != nil {
				panic(fmt.Sprintf("kerneltest: case %d of %s: %v", i, k.Op, err))
			}
			c.Fill(rng)
			if !yield(c) {
				return
			}
		}
	}
}

// Random draws shapes, modes and parameters of a case. Data are zero.
func Random(k *kernels.Kernel, rng *rand.Rand, real dag.DType) *Case {
	e := make([]int, len(primes))
	for i, p := range rng.Perm(len(primes)) {
		e[i] = primes[p]
		if rng.IntN(6) == 0 {
			e[i] = 1
		}
	}
	params, shapes := randomShapes(k.Op, rng, e)
	operands, required := len(k.Operands), 0
	for required < operands && !k.Operands[required].Optional {
		required++
	}
	momentum, _ := params.Get("momentum")
	if required < operands && momentum == 0 && rng.IntN(2) == 0 {
		operands = required
	}
	var modes []dag.Mode
	for _, o := range k.Operands[:operands] {
		modes = append(modes, o.Modes[rng.IntN(len(o.Modes))])
	}
	return New(k, real, shapes[:operands], modes, params, rng.IntN(3))
}

// randomShapes returns parameters and the shapes of all operands of an operation for
// extents e.
func randomShapes(op string, rng *rand.Rand, e []int) (dag.Params, [][]int) {
	switch op {
	case "conv2d", "conv2d.dx", "conv2d.dw":
		return convShapes(op, rng, e)
	case "conv2d.nhwc", "conv2d.nhwc.dx", "conv2d.nhwc.dw", "conv2d.nhwc.pool", "conv2d.nhwc.pool.dw",
		"conv2d.nhwc.dw.sgd", "conv2d.nhwc.pool.dw.sgd":
		return convNHWCShapes(op, rng, e)
	case "maxpool", "maxpool.dx", "avgpool", "avgpool.dx":
		return poolShapes(op, rng, e)
	case "maxpool.nhwc", "maxpool.nhwc.dx":
		return poolNHWCShapes(op, rng, e)
	case "nhwc", "nchw", "hwio", "hwoi", "oihw":
		return nil, layoutShapes(op, rng, e)
	case "load.nhwc":
		return dag.Params{{Name: "divisor", Value: 255}},
			[][]int{{e[0], e[2], e[3], e[4]}, {e[1], e[4], e[2], e[3]}, {e[0]}}
	case "dense", "dense.relu":
		return nil, [][]int{{e[0], e[1]}, {e[0], e[2]}, {e[1], e[2]}, {e[1]}}
	case "dense.dx":
		return nil, [][]int{{e[0], e[2]}, {e[0], e[1]}, {e[1], e[2]}}
	case "dense.dx.relu":
		return nil, [][]int{{e[0], e[2]}, {e[0], e[1]}, {e[1], e[2]}, {e[0], e[2]}}
	case "dense.dw":
		return nil, [][]int{{e[1], e[2]}, {e[0], e[1]}, {e[0], e[2]}, {e[1]}}
	case "relu", "relu.dx":
		s := e[:1+rng.IntN(4)]
		return nil, [][]int{s, s, s}
	case "add":
		s := e[:1+rng.IntN(4)]
		return nil, [][]int{s, s}
	case "load":
		image := e[2 : 2+rng.IntN(4)]
		return dag.Params{{Name: "divisor", Value: 255}},
			[][]int{append([]int{e[0]}, image...), append([]int{e[1]}, image...), {e[0]}}
	case "load.labels":
		return nil, [][]int{{e[0]}, {e[1]}, {e[0]}}
	case "mean", "count":
		return nil, [][]int{{1}, {e[0]}}
	case "sgd":
		s := e[:1+rng.IntN(4)]
		return randomSGD(rng), [][]int{s, s, {2}, s}
	case "dense.dw.sgd":
		return randomSGD(rng), [][]int{{e[1], e[2]}, {e[1]}, {e[0], e[1]}, {e[0], e[2]}, {2}, {e[1], e[2]}, {e[1]}}
	case "dense.nhwc.dw.sgd":
		w := []int{e[1], e[2], e[3], e[4]}
		return randomSGD(rng), [][]int{w, {e[1]}, {e[0], e[1]}, {e[0], e[3], e[4], e[2]}, {2}, w, {e[1]}}
	case "adam":
		s := e[:1+rng.IntN(4)]
		return AdamParams(float64(rng.IntN(2)) * 0.01), [][]int{s, s, {2}, s, s}
	}
	return softmaxShapes(op, e)
}

func randomSGD(rng *rand.Rand) dag.Params {
	momentum, nesterov := float64(rng.IntN(2))*0.9, 0.0
	if momentum != 0 {
		nesterov = float64(rng.IntN(2))
	}
	return SGDParams(momentum, nesterov, float64(rng.IntN(2))*0.01)
}

func convShapes(op string, rng *rand.Rand, e []int) (dag.Params, [][]int) {
	pad, stride := rng.IntN(3), 1+rng.IntN(3)
	n, c, f, h, w := e[0], e[1], e[2], e[3], e[4]
	k := 1 + rng.IntN(min(5, h+2*pad, w+2*pad))
	x := []int{n, c, h, w}
	y := []int{n, f, windows(h, k, pad, stride), windows(w, k, pad, stride)}
	filters := []int{f, c, k, k}
	params := dag.Params{{Name: "pad", Value: float64(pad)}, {Name: "stride", Value: float64(stride)}}
	switch op {
	case "conv2d":
		return params, [][]int{y, x, filters, {f}}
	case "conv2d.dx":
		return params, [][]int{x, y, filters}
	}
	return params, [][]int{filters, y, x, {f}}
}

// convNHWCShapes are convolutions of images with channels last. Some have more filters
// or channels than two vectors hold.
func convNHWCShapes(op string, rng *rand.Rand, e []int) (dag.Params, [][]int) {
	pad, stride := rng.IntN(4), 1+rng.IntN(3)
	n, c, f, h, w := e[0], e[1], e[2], e[3], e[4]
	if rng.IntN(3) == 0 {
		c, f = f, c+30
	}
	k := 1 + rng.IntN(min(5, h+2*pad, w+2*pad))
	oh, ow := windows(h, k, pad, stride), windows(w, k, pad, stride)
	size, step := 1+rng.IntN(min(3, oh, ow)), 1+rng.IntN(3)
	x, y := []int{n, h, w, c}, []int{n, oh, ow, f}
	pooled := []int{n, windows(oh, size, 0, step), windows(ow, size, 0, step), f}
	filters, turned := []int{k, k, c, f}, []int{k, k, f, c}
	pytorch := []int{f, c, k, k}
	params := ConvParams(float64(pad), float64(stride))
	poolParams := ConvPoolParams(float64(pad), float64(stride), float64(size), float64(step))
	switch op {
	case "conv2d.nhwc":
		return append(params, dag.Param{Name: "relu", Value: float64(rng.IntN(2))}), [][]int{y, x, filters, {f}}
	case "conv2d.nhwc.dx":
		return params, [][]int{x, y, turned, x}
	case "conv2d.nhwc.dw":
		return params, [][]int{filters, y, x, {f}}
	case "conv2d.nhwc.dw.sgd":
		return append(params, randomSGD(rng)...), [][]int{pytorch, {f}, y, x, {2}, pytorch, {f}}
	case "conv2d.nhwc.pool.dw.sgd":
		return append(poolParams, randomSGD(rng)...), [][]int{pytorch, {f}, pooled, pooled, x, {2}, pytorch, {f}}
	case "conv2d.nhwc.pool":
		return poolParams, [][]int{pooled, pooled, x, filters, {f}}
	}
	return poolParams, [][]int{filters, pooled, pooled, x, {f}}
}

func poolShapes(op string, rng *rand.Rand, e []int) (dag.Params, [][]int) {
	n, c, h, w := e[0], e[1], e[2], e[3]
	size := 1 + rng.IntN(min(4, h, w))
	if rng.IntN(2) == 0 {
		size = min(2, h, w) // the window of the fast variants
	}
	stride := 1 + rng.IntN(3)
	x := []int{n, c, h, w}
	y := []int{n, c, windows(h, size, 0, stride), windows(w, size, 0, stride)}
	params := PoolParams(float64(size), float64(stride))
	switch op {
	case "maxpool":
		return params, [][]int{y, y, x}
	case "maxpool.dx":
		return params, [][]int{x, y, y}
	case "avgpool":
		return params, [][]int{y, x}
	}
	return params, [][]int{x, y}
}

// poolNHWCShapes are poolShapes with channels last, of which some calls have more
// than a vector holds.
func poolNHWCShapes(op string, rng *rand.Rand, e []int) (dag.Params, [][]int) {
	params, shapes := poolShapes(strings.Replace(op, ".nhwc", "", 1), rng, e)
	channels := e[1]
	if rng.IntN(2) == 0 {
		channels += 32
	}
	for i, s := range shapes {
		shapes[i] = []int{s[0], s[2], s[3], channels}
	}
	return params, shapes
}

// layoutShapes are those of a conversion: maps, or filters with windows of 1 to 5.
func layoutShapes(op string, rng *rand.Rand, e []int) [][]int {
	n, c, h, w := e[0], e[1], e[2], e[3]
	k := 1 + rng.IntN(5)
	switch op {
	case "nhwc":
		return [][]int{{n, h, w, c}, {n, c, h, w}}
	case "nchw":
		return [][]int{{n, c, h, w}, {n, h, w, c}}
	case "hwio":
		return [][]int{{k, k, c, n}, {n, c, k, k}, {k, k, n, c}}
	case "hwoi":
		return [][]int{{k, k, n, c}, {n, c, k, k}}
	}
	return [][]int{{n, c, k, k}, {k, k, c, n}}
}

func softmaxShapes(op string, e []int) (dag.Params, [][]int) {
	n, z := []int{e[0]}, []int{e[0], e[1]}
	batch := dag.Params{{Name: "batch", Value: float64(e[0] + e[2])}}
	switch op {
	case "softmax_xent":
		return batch, [][]int{z, n, n, z, n}
	case "softmax_xent.eval":
		return nil, [][]int{n, n, z, n}
	case "rowmax", "rowsum":
		return nil, [][]int{n, z}
	case "exp_sub":
		return nil, [][]int{z, z, n}
	case "xent":
		return nil, [][]int{n, n, z, n, n, n}
	case "softmax_xent.dx":
		return batch, [][]int{z, z, n, n}
	}
	panic("kerneltest: no random shapes for " + op)
}

// windows is the number of windows of size k at distance stride in an extent with
// padding on both sides, or 0 if none fits.
func windows(extent, k, pad, stride int) int {
	if extent+2*pad < k {
		return 0
	}
	return (extent+2*pad-k)/stride + 1
}
