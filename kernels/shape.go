package kernels

import (
	"fmt"
	"math"

	"dahl/dag"
	"dahl/kernels/calls"
)

// maxWindow is the largest pooling window: positions in it are stored in a byte.
const maxWindow = 15

// maxGeometry bounds padding, stride and window, so that extents computed from
// them cannot overflow.
const maxGeometry = 1 << 20

// Constructors of Operand lines. dims are subscripts, see Subscript.

// reads is an operand that is read. Statements call the input of a layer x.
func reads(name string, kind ElemKind, dims string) Operand {
	return Operand{Name: name, Kind: kind, Dims: dims, Modes: []dag.Mode{dag.Read}, Input: name == "x" && kind == Real}
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

// below is an operand of indices below a bound, see Values.Below.
func (o Operand) below(bound string) Operand {
	o.Values.Below = bound
	return o
}

// positions is an operand of positions in windows, or of none. window is the elements of a window.
func (o Operand) positions(window string) Operand {
	o.Values.OrNone = true
	return o.below(window)
}

// orNone is an operand of labels below a bound, or of -1 for none.
func (o Operand) orNone(bound string) Operand {
	o.Values.OrNone = true
	return o.below(bound)
}

// within is an operand of numbers between two.
func (o Operand) within(least, most float64) Operand {
	o.Values.Least, o.Values.Most = least, most
	return o
}

// often is an operand of which some numbers matter.
func (o Operand) often(numbers ...float64) Operand {
	o.Values.Often = numbers
	return o
}

// positive is an operand of sums of squares.
func (o Operand) positive() Operand { return o.within(0.5, 1.5) }

// ties are equal numbers among which a kernel seeks the greatest. Negative zero is none of them,
// since it is not defined which of two zeros is the greatest.
var ties = []float64{-1, -0.5, 0, 0.5, 1}

func optional(o Operand) Operand {
	o.Optional = true
	return o
}

// intParam returns a parameter that must be an integer from low to high.
func intParam(s *calls.Spec, name string, low, high int) (int, error) {
	return integer(name, s.Param(name), low, high)
}

func integer(name string, v float64, low, high int) (int, error) {
	if v != math.Trunc(v) || !(v >= float64(low) && v <= float64(high)) {
		return 0, fmt.Errorf("parameter %s is %g, want an integer from %d to %d", name, v, low, high)
	}
	return int(v), nil
}

// realParam checks that a parameter is finite and in [low, high).
func realParam(s *calls.Spec, name string, low, high float64) error {
	if v := s.Param(name); !(v >= low && v < high) {
		return fmt.Errorf("parameter %s is %g, want at least %g and less than %g", name, v, low, high)
	}
	return nil
}

// perElement is the Flops of operations that do a fixed number of flops for each element of
// operand i.
func perElement(flops float64, i int) func(*calls.Spec) float64 {
	return func(s *calls.Spec) float64 { return flops * s.Volume(i) }
}

// biasFlops is an addition for each element of operand i, where a call has the operand bias.
func biasFlops(s *calls.Spec, bias, i int) float64 {
	if bias >= len(s.Operands) {
		return 0
	}
	return s.Volume(i)
}
