package kernels

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
)

// maxWindow is the largest pooling window: positions in it are stored in a byte.
const maxWindow = 15

// maxGeometry bounds padding, stride and window, so that extents computed from
// them cannot overflow.
const maxGeometry = 1 << 20

// Constructors of Operand lines. dims names the extents, outermost first. Equal names are equal
// extents throughout the call, and a number is that extent. "..." at the end stands for any
// further dimensions, the same for all operands.

func reads(name string, kind ElemKind, dims string) Operand {
	return Operand{Name: name, Kind: kind, Dims: dims, Modes: []dag.Mode{dag.Read}}
}

func writes(name string, kind ElemKind, dims string) Operand {
	return Operand{Name: name, Kind: kind, Dims: dims, Modes: []dag.Mode{dag.Write}}
}

// sums is a result that is written, or added to the operand's old contents.
func sums(name string, dims string) Operand {
	return Operand{Name: name, Kind: Real, Dims: dims, Modes: []dag.Mode{dag.Write, dag.ReadWrite}}
}

func updates(name string, dims string) Operand {
	return Operand{Name: name, Kind: Real, Dims: dims, Modes: []dag.Mode{dag.ReadWrite}}
}

func optional(o Operand) Operand {
	o.Optional = true
	return o
}

// extent is the value of a name of Dims in a call, and the operand where it was first seen.
type extent struct {
	name    string
	value   int
	operand string
	dim     int
}

// checkExtents compares the operands' shapes with their Dims. The extents of "..."
// are named by their distance from the last dimension. Windows follow from the others.
func (k *Kernel) checkExtents(s *Spec) error {
	var bound []extent
	for i, o := range s.Operands {
		want := &k.Operands[i]
		names, rest := strings.Fields(want.Dims), false
		if n := len(names); n > 0 && names[n-1] == "..." {
			names, rest = names[:n-1], true
		}
		if len(o.Shape) < len(names) || !rest && len(o.Shape) > len(names) {
			return fmt.Errorf("operand %s has shape %v, want dimensions (%s)", want.Name, o.Shape, want.Dims)
		}
		for d, e := range o.Shape {
			var name string
			if d < len(names) {
				name = names[d]
			} else {
				name = strconv.Itoa(d-len(o.Shape)) + " of ..."
			}
			if err := bind(&bound, extent{name, e, want.Name, d}); err != nil {
				return err
			}
		}
		if rest {
			if err := bind(&bound, extent{"...", len(o.Shape) - len(names), want.Name, -1}); err != nil {
				return err
			}
		}
	}
	return k.checkWindows(s, bound)
}

// bind compares an extent with the one bound to its name, or binds it.
func bind(bound *[]extent, e extent) error {
	if fixed, err := strconv.Atoi(e.name); err == nil && fixed != e.value {
		return fmt.Errorf("%s[%d] is %d, want %d", e.operand, e.dim, e.value, fixed)
	}
	for _, b := range *bound {
		switch {
		case b.name != e.name || b.value == e.value:
		case e.dim < 0:
			return fmt.Errorf("%s and %s differ in their number of dimensions", b.operand, e.operand)
		default:
			return fmt.Errorf("extent %s is %d in %s[%d] and %d in %s[%d]",
				e.name, b.value, b.operand, b.dim, e.value, e.operand, e.dim)
		}
	}
	*bound = append(*bound, e)
	return nil
}

// intParam returns a parameter that must be an integer from low to high.
func intParam(s *Spec, name string, low, high int) (int, error) {
	v := s.Param(name)
	if v != math.Trunc(v) || !(v >= float64(low) && v <= float64(high)) {
		return 0, fmt.Errorf("parameter %s is %g, want an integer from %d to %d", name, v, low, high)
	}
	return int(v), nil
}

// realParam checks that a parameter is finite and in [low, high).
func realParam(s *Spec, name string, low, high float64) error {
	if v := s.Param(name); !(v >= low && v < high) {
		return fmt.Errorf("parameter %s is %g, want at least %g and less than %g", name, v, low, high)
	}
	return nil
}

// windows is the number of windows of size k at distance stride in an extent with
// padding on both sides: floor((extent+2·pad-k)/stride) + 1, or 0 if none fits.
func windows(extent, k, pad, stride int) int {
	if extent+2*pad < k {
		return 0
	}
	return (extent+2*pad-k)/stride + 1
}

// checkWindows compares the extents of a map with the windows that slide over an image, in
// operations that have a stride. Extents and parameters of one name mean the same in all of them.
// Windows of k×k over h×w pixels give oh×ow; without k, they are of size×size. In an operation
// that has no oh and ow, windows of size×size at distance step pool them to ph×pw.
func (k *Kernel) checkWindows(s *Spec, bound []extent) error {
	if !slices.Contains(k.Params, "stride") {
		return nil
	}
	g, err := k.geometry(s)
	if err != nil {
		return err
	}
	named := func(name string) *extent {
		if i := slices.IndexFunc(bound, func(e extent) bool { return e.name == name }); i >= 0 {
			return &bound[i]
		}
		return nil
	}
	window := g.size
	if w := named("k"); w != nil {
		window = w.value
	}
	for _, names := range [...][3]string{{"h", "oh", "ph"}, {"w", "ow", "pw"}} {
		in, out := named(names[0]), cmp.Or(named(names[1]), named(names[2]))
		if in == nil || out == nil {
			continue // maps without this dimension
		}
		pixels := windows(in.value, window, g.pad, g.stride)
		want, pooling := pixels, ""
		if out.name == names[2] {
			want = windows(pixels, g.size, 0, g.step)
		}
		if out.value == want {
			continue
		}
		if out.name == names[2] {
			pooling = fmt.Sprintf("windows of %d at stride %d over %d pixels, which are ", g.size, g.step, pixels)
		}
		return fmt.Errorf("%s[%d] is %d, want %d: %swindows of %d at stride %d over %s[%d] = %d with padding %d",
			out.operand, out.dim, out.value, want, pooling, window, g.stride, in.operand, in.dim, in.value, g.pad)
	}
	return nil
}

// geometry is the parameters of windows; those that an operation lacks are 0.
type geometry struct{ pad, stride, size, step, relu int }

func (k *Kernel) geometry(s *Spec) (g geometry, err error) {
	for _, name := range k.Params {
		to, low, high := &g.stride, 1, maxGeometry
		switch name {
		case "stride":
		case "step":
			to = &g.step
		case "pad":
			to, low = &g.pad, 0
		case "size":
			to = &g.size
			if slices.ContainsFunc(k.Operands, func(o Operand) bool { return o.Kind == Mask }) {
				high = maxWindow
			}
		case "relu":
			to, low, high = &g.relu, 0, 1
		default:
			continue
		}
		if *to, err = intParam(s, name, low, high); err != nil {
			return g, err
		}
	}
	return g, nil
}

// volume is the number of elements of operand i.
func (s *Spec) volume(i int) float64 {
	n := 1.0
	for _, e := range s.Operands[i].Shape {
		n *= float64(e)
	}
	return n
}

// perElement is the Work of operations that do a fixed number of flops for each element of
// operand i.
func perElement(flops float64, i int) func(*Spec) (float64, int64) {
	return func(s *Spec) (float64, int64) { return flops * s.volume(i), s.Bytes() }
}

// biasFlops is an addition for each element of operand i, where a call has the operand bias.
func biasFlops(s *Spec, bias, i int) float64 {
	if bias >= len(s.Operands) {
		return 0
	}
	return s.volume(i)
}
