package kerneltest

import (
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
)

// primes for the extents of a call, pairwise different, so that no two dimensions
// can be swapped unnoticed.
var primes = []int{2, 3, 5, 7, 11, 13, 17, 19}

// wider is added to one extent of some calls, so that rows are longer than two vectors.
const wider = 32

// Each runs a test over random cases of every operation that computes, see [Cases]. Where a variant for CPUs takes
// only some calls, an eighth as many more are such calls.
func Each(t *testing.T, cases int, test func(t *testing.T, c *Case)) {
	t.Helper()
	if testing.Short() {
		cases = max(2, cases/16)
	}
	for _, k := range kernels.Kernels() {
		if !k.Host {
			t.Run(k.Op, func(t *testing.T) {
				for c := range Cases(&k, cases) {
					test(t, c)
				}
				for i := range k.Variants {
					if v := &k.Variants[i]; v.RunsOn(calls.GoCode) && v.Takes != nil {
						for c := range Taken(&k, v, (cases+7)/8) {
							test(t, c)
						}
						return // the other levels take the same
					}
				}
			})
		}
	}
}

// Cases yields random cases of an operation: extents of 1 and pairwise different primes,
// whole buffers and regions of larger ones, both element types, all modes, padding up to 3 that
// may differ from side to side, and stride 1 to 3. The same come every time, whatever other operations there are.
func Cases(k *kernels.Kernel, n int) iter.Seq[*Case] {
	return cases(k, n, func(i int, rng *rand.Rand) *Case {
		return Random(k, rng, []dag.DType{dag.Float32, dag.Float64}[i%2])
	})
}

// Taken yields cases of those calls that a variant takes, in float32.
func Taken(k *kernels.Kernel, v *calls.Variant, n int) iter.Seq[*Case] {
	return cases(k, n, func(_ int, rng *rand.Rand) *Case {
		for {
			if c := Random(k, rng, dag.Float32); v.Fits(&c.Spec) == nil {
				return c
			}
		}
	})
}

func cases(k *kernels.Kernel, n int, draw func(i int, rng *rand.Rand) *Case) iter.Seq[*Case] {
	return func(yield func(*Case) bool) {
		seed := fnv.New64a()
		seed.Write([]byte(k.Op))
		rng := rand.New(rand.NewPCG(seed.Sum64(), 20))
		for i := range n {
			c := draw(i, rng)
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

// Random draws shapes, modes and parameters of a valid call from the statement of the operation.
// Data are zero. Optional operands are left out of half of the cases that are valid without them.
func Random(k *kernels.Kernel, rng *rand.Rand, real dag.DType) *Case {
	for {
		c := draw(k, rng, real)
		if k.Validate(&c.Spec) == nil {
			return c
		}
	}
}

// draw draws a call that may be invalid where parameters and modes exclude each other.
func draw(k *kernels.Kernel, rng *rand.Rand, real dag.DType) *Case {
	d := newDrawing(k, rng)
	var shapes [][]int
	var modes []dag.Mode
	required := 0
	for i, o := range k.Operands {
		shapes, modes = append(shapes, d.shape(d.indices[i])), append(modes, o.Modes[rng.IntN(len(o.Modes))])
		if !o.Optional {
			required++
		}
	}
	var params dag.Params
	for _, name := range append(d.given, k.Params...) {
		params = append(params, dag.Param{Name: name, Value: d.param(name)})
	}
	margin := rng.IntN(3)
	if required < len(shapes) && rng.IntN(2) == 0 {
		if c := New(k, real, shapes[:required], modes[:required], params, margin); k.Validate(&c.Spec) == nil {
			return c
		}
	}
	return New(k, real, shapes, modes, params, margin)
}

// drawing is one call while it is drawn. A loop or a parameter means the same in all operands. Its
// value is drawn when it is first needed, since some values follow from others.
type drawing struct {
	kernel    *kernels.Kernel
	rng       *rand.Rand
	indices   [][]kernels.Subscript
	sizes     map[string]string // of loops by parameter
	options   map[string]string // substitutes of parameters that the call leaves out
	given     []string          // those that it does not leave out
	free      []int             // extents that no loop has yet
	wide      string            // the loop whose extent is longer than two vectors; empty means none
	symmetric bool              // windows have the same padding on all sides
	extents   map[string]int    // of loops by name, of windows' indices by text
	rest      []int             // the extents of "..."
	params    map[string]float64
}

func newDrawing(k *kernels.Kernel, rng *rand.Rand) *drawing {
	d := &drawing{
		kernel: k, rng: rng, symmetric: rng.IntN(2) == 0,
		sizes: map[string]string{}, options: map[string]string{}, extents: map[string]int{}, params: map[string]float64{},
	}
	for _, text := range strings.Fields(k.Sizes) {
		loop, param, _ := strings.Cut(text, "=")
		d.sizes[loop] = param
	}
	d.drawOptions()
	var err error
	if d.indices, err = k.Subscripts(); err != nil {
		panic("kerneltest: " + k.Op + ": " + err.Error())
	}
	for _, p := range rng.Perm(len(primes)) {
		e := primes[p]
		if rng.IntN(6) == 0 {
			e = 1
		}
		d.free = append(d.free, e)
	}
	if loops := d.rows(); len(loops) > 0 && rng.IntN(3) == 0 {
		d.wide = loops[rng.IntN(len(loops))]
	}
	return d
}

// drawOptions draws which parameters a call does not leave out. Half of the calls leave out all. Of
// groups, some have one channel or one filter each.
func (d *drawing) drawOptions() {
	all := d.rng.IntN(2) == 0
	for _, text := range strings.Fields(d.kernel.Options) {
		name, otherwise, _ := strings.Cut(text, "=")
		if d.options[name] = otherwise; !all && d.rng.IntN(2) == 0 {
			d.given = append(d.given, name)
			d.params[name] = float64(1 + d.rng.IntN(3))
		}
	}
	if d.params["groups"] > 1 {
		for _, loop := range []string{"c", "f"} {
			if d.rng.IntN(2) == 0 {
				d.extents[loop] = 1
			}
		}
	}
}

// rows are the loops over rows of an operand that may be of any length.
func (d *drawing) rows() []string {
	var loops []string
	for _, indices := range d.indices {
		if last := indices[len(indices)-1]; len(indices) > 1 && len(last.Terms) == 1 && last.Offset == "" {
			if loop := last.Terms[0].Loop; d.windowOf(loop) == nil {
				loops = append(loops, loop)
			}
		}
	}
	return loops
}

// windowOf is the index of windows that has a loop. Nil means that none has it.
func (d *drawing) windowOf(loop string) *kernels.Subscript {
	for _, indices := range d.indices {
		for i := range indices {
			x := &indices[i]
			if x.Offset != "" && slices.ContainsFunc(x.Terms, func(t kernels.Term) bool { return t.Loop == loop }) {
				return x
			}
		}
	}
	return nil
}

// next is an extent that no loop has taken.
func (d *drawing) next() int {
	e := d.free[0]
	d.free = d.free[1:]
	return e
}

// shape is the shape of an operand.
func (d *drawing) shape(indices []kernels.Subscript) []int {
	var shape []int
	for i := range indices {
		switch x := &indices[i]; {
		case x.Extent > 0:
			shape = append(shape, x.Extent)
		case len(x.Terms) == 0: // "..."
			if d.rest == nil {
				n := 1 + d.rng.IntN(4)
				d.rest, d.free = d.free[:n], d.free[n:]
			}
			shape = append(shape, d.rest...)
		case x.Offset != "":
			d.window(x)
			shape = append(shape, d.extents[x.Text])
		default:
			e := d.extent(x.Terms[0].Loop)
			if x.Block != "" {
				e *= int(d.param(d.sizes[x.Block]))
			}
			shape = append(shape, e)
		}
	}
	return shape
}

// extent is the extent of a loop.
func (d *drawing) extent(loop string) int {
	if x := d.windowOf(loop); x != nil {
		d.window(x)
	}
	e, ok := d.extents[loop]
	if !ok {
		e = d.next()
		switch param := d.sizes[loop]; loop {
		case "g":
			e = int(d.param(param))
		case "e": // features of the heads of queries that share a head of keys
			e = d.extent("d") * int(d.param("group"))
		case d.wide:
			e += wider
		case "hyper": // with the factor of a clipped gradient, or without
			e = 2 + d.rng.IntN(2)
		}
		d.extents[loop] = e
	}
	return e
}

// window draws the extents of an index of windows: of what they slide over, of the windows, and
// then how many there are. In poolings each window holds an element.
func (d *drawing) window(x *kernels.Subscript) {
	if _, ok := d.extents[x.Text]; ok {
		return
	}
	over, before, after := d.next(), d.padding(), d.padding()
	if top, ok := d.params["top"]; ok && d.symmetric {
		before = int(top)
	}
	if d.symmetric {
		after = before
	} else if d.rng.IntN(6) == 0 {
		before = -d.rng.IntN(d.factor(x.Terms[0]))
	}
	room, maxima := over+before+after, slices.Contains(d.kernel.Params, "height")
	if maxima {
		room = over
	}
	span := 1
	for _, t := range x.Terms[1:] {
		f := d.factor(t)
		e := d.position(t.Loop, max(1, (room-span)/f+1))
		span += f * (e - 1)
		d.extents[t.Loop] = e
	}
	if maxima {
		before, after = min(before, span-1), min(after, span-1)
	}
	d.params[x.Offset] = float64(before)
	d.extents[x.Text] = over
	d.extents[x.Terms[0].Loop] = max(1, (over+before+after-span)/d.factor(x.Terms[0])+1)
}

func (d *drawing) padding() int { return d.rng.IntN(4) }

// factor is the product of a term's parameters.
func (d *drawing) factor(t kernels.Term) int {
	f := 1
	for _, name := range t.Factors {
		f *= int(d.param(name))
	}
	return f
}

// position draws the extent of a loop over positions in a window, up to most.
func (d *drawing) position(loop string, most int) int {
	param, ok := d.sizes[loop]
	if v, drawn := d.params[param]; drawn {
		return int(v)
	}
	e := 1 + d.rng.IntN(min(5, most))
	if i, drawn := d.extents["i"]; drawn && d.rng.IntN(3) > 0 {
		e = min(i, most) // a square
	} else if ok && d.rng.IntN(2) == 0 {
		e = min(2, most) // the window of the fast variants
	}
	if ok {
		d.params[param] = float64(e)
	}
	return e
}

func (d *drawing) param(name string) float64 {
	v, ok := d.params[name]
	if otherwise, optional := d.options[name]; !ok && optional {
		if _, err := fmt.Sscan(otherwise, &v); err != nil {
			v = d.param(otherwise)
		}
		return v
	}
	if !ok {
		v = d.drawParam(name)
		d.params[name] = v
	}
	return v
}

// drawParam draws a parameter from its line in the table of parameters.
func (d *drawing) drawParam(name string) float64 {
	p, _ := kernels.ParamByName(name)
	v, least := 0.0, 0.0
	switch {
	case p.Values == nil:
		panic(fmt.Sprintf("kerneltest: %s has a parameter %s, which has no values in the table of package kernels", d.kernel.Op, name))
	case p.With != "" && d.param(p.With) == 0:
		return 0
	case p.Above != "":
		least = float64(d.extent(p.Above))
	}
	if v = p.Values[0]; len(p.Values) > 1 {
		v = p.Values[d.rng.IntN(len(p.Values))]
	}
	return least + v
}
