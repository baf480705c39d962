package kerneltest

import (
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
)

// primes for the extents of a call, pairwise different, so that no two dimensions
// can be swapped unnoticed.
var primes = []int{2, 3, 5, 7, 11, 13, 17, 19}

// wider is added to one extent of some calls, so that rows are longer than two vectors.
const wider = 32

// Each runs a test over random cases of every operation that computes, see [Cases].
func Each(t *testing.T, cases int, test func(t *testing.T, c *Case)) {
	t.Helper()
	for _, k := range kernels.Kernels() {
		if !k.Host {
			t.Run(k.Op, func(t *testing.T) {
				for c := range Cases(&k, cases) {
					test(t, c)
				}
			})
		}
	}
}

// Cases yields random cases of an operation: extents of 1 and pairwise different primes,
// whole buffers and regions of larger ones, both element types, all modes, padding 0 to 3
// and stride 1 to 3. The same come every time, whatever other operations there are.
func Cases(k *kernels.Kernel, n int) iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		seed := fnv.New64a()
		seed.Write([]byte(k.Op))
		rng := rand.New(rand.NewPCG(seed.Sum64(), 20))
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

// Random draws shapes, modes and parameters of a case. Data are zero. Optional operands are
// left out of half of the cases that are valid without them.
func Random(k *kernels.Kernel, rng *rand.Rand, real dag.DType) *Case {
	d := newDrawing(k, rng)
	var shapes [][]int
	var modes []dag.Mode
	required := 0
	for _, o := range k.Operands {
		shapes, modes = append(shapes, d.shape(o.Dims)), append(modes, o.Modes[rng.IntN(len(o.Modes))])
		if !o.Optional {
			required++
		}
	}
	var params dag.Params
	for _, name := range k.Params {
		params = append(params, dag.Param{Name: name, Value: d.param(name)})
	}
	margin := rng.IntN(3)
	if required < len(shapes) && rng.IntN(2) == 0 {
		if c := New(k, real, shapes[:required], modes[:required], params, margin); kernels.Validate(&c.Spec) == nil {
			return c
		}
	}
	return New(k, real, shapes, modes, params, margin)
}

// drawing is one call while it is drawn. A name of an extent or a parameter means the same in all
// operations. Its value is drawn when it is first needed, since some values follow from others.
type drawing struct {
	kernel  *kernels.Kernel
	rng     *rand.Rand
	free    []int  // extents that no name has yet
	wide    string // the name whose extent is longer than two vectors; "": none is
	extents map[string]int
	rest    []int // the extents of "..."
	params  map[string]float64
}

func newDrawing(k *kernels.Kernel, rng *rand.Rand) *drawing {
	d := &drawing{kernel: k, rng: rng, extents: map[string]int{}, params: map[string]float64{}}
	for _, p := range rng.Perm(len(primes)) {
		e := primes[p]
		if rng.IntN(6) == 0 {
			e = 1
		}
		d.free = append(d.free, e)
	}
	if names := rowNames(k); len(names) > 0 && rng.IntN(3) == 0 {
		d.wide = names[rng.IntN(len(names))]
	}
	return d
}

// derived are the extents that follow from others, see drawExtent, and "...", which is no name.
var derived = []string{"k", "oh", "ow", "ph", "pw", "..."}

// rowNames are the names of extents that are rows of an operand and may be of any length.
func rowNames(k *kernels.Kernel) []string {
	var names []string
	for _, o := range k.Operands {
		dims := strings.Fields(o.Dims)
		if last := dims[len(dims)-1]; len(dims) > 1 && !slices.Contains(derived, last) {
			names = append(names, last)
		}
	}
	return names
}

// next is an extent that no name has taken.
func (d *drawing) next() int {
	e := d.free[0]
	d.free = d.free[1:]
	return e
}

// shape is the shape of an operand by its [kernels.Operand] Dims.
func (d *drawing) shape(dims string) []int {
	var shape []int
	for _, name := range strings.Fields(dims) {
		if name == "..." {
			if d.rest == nil {
				n := 1 + d.rng.IntN(4)
				d.rest, d.free = d.free[:n], d.free[n:]
			}
			shape = append(shape, d.rest...)
			continue
		}
		shape = append(shape, d.extent(name))
	}
	return shape
}

func (d *drawing) extent(name string) int {
	if n, err := strconv.Atoi(name); err == nil {
		return n
	}
	e, ok := d.extents[name]
	if !ok {
		e = d.drawExtent(name)
		d.extents[name] = e
	}
	return e
}

// drawExtent draws a free extent, or derives one. A window of k×k slides over an image of h×w and
// gives oh×ow. Over that a window of size×size slides at distance step and gives ph×pw. Without
// step, size is the window over the image.
func (d *drawing) drawExtent(name string) int {
	switch name {
	case "k":
		return 1 + d.rng.IntN(min(5, d.extent("h")+2*d.integer("pad"), d.extent("w")+2*d.integer("pad")))
	case "oh":
		return d.slide("h")
	case "ow":
		return d.slide("w")
	case "ph":
		return windows(d.extent("oh"), d.integer("size"), 0, d.integer("step"))
	case "pw":
		return windows(d.extent("ow"), d.integer("size"), 0, d.integer("step"))
	case d.wide:
		return d.next() + wider
	}
	return d.next()
}

// slide is the number of windows over an extent of the image.
func (d *drawing) slide(over string) int {
	if d.has("size") && !d.has("step") {
		return windows(d.extent(over), d.integer("size"), 0, d.integer("stride"))
	}
	return windows(d.extent(over), d.extent("k"), d.integer("pad"), d.integer("stride"))
}

func (d *drawing) has(param string) bool { return slices.Contains(d.kernel.Params, param) }

// integer is an integer parameter, 0 if the operation does not have it.
func (d *drawing) integer(param string) int {
	if !d.has(param) {
		return 0
	}
	return int(d.param(param))
}

func (d *drawing) param(name string) float64 {
	v, ok := d.params[name]
	if !ok {
		v = d.drawParam(name)
		d.params[name] = v
	}
	return v
}

// drawParam draws a parameter. It knows every name in a kernel's Params.
func (d *drawing) drawParam(name string) float64 {
	switch name {
	case "pad":
		return float64(d.rng.IntN(4))
	case "stride", "step":
		return float64(1 + d.rng.IntN(3))
	case "size":
		over := min(d.extent("h"), d.extent("w"))
		if d.has("step") {
			over = min(d.extent("oh"), d.extent("ow"))
		}
		if d.rng.IntN(2) == 0 {
			return float64(min(2, over)) // the window of the fast variants
		}
		return float64(1 + d.rng.IntN(min(4, over)))
	case "relu":
		return float64(d.rng.IntN(2))
	case "slope":
		return 0.25 * float64(d.rng.IntN(4))
	case "divisor":
		return 255
	case "batch": // of which the call has some samples
		return float64(d.extent("n") + d.rng.IntN(20))
	case "momentum":
		return 0.9 * float64(d.rng.IntN(2))
	case "nesterov":
		if d.param("momentum") == 0 {
			return 0
		}
		return float64(d.rng.IntN(2))
	case "weight_decay":
		return 0.01 * float64(d.rng.IntN(2))
	case "beta1":
		return 0.9
	case "beta2":
		return 0.999
	case "eps":
		return 1e-8
	}
	panic(fmt.Sprintf("kerneltest: %s has a parameter %s, for which drawParam has no values", d.kernel.Op, name))
}

// windows is the number of windows of size k at distance stride in an extent with
// padding on both sides, or 0 if none fits.
func windows(extent, k, pad, stride int) int {
	if extent+2*pad < k {
		return 0
	}
	return (extent+2*pad-k)/stride + 1
}
