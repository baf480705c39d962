package kernels

import (
	"fmt"
	"strings"

	"dahl/kernels/calls"
)

// Param says what is known of a parameter. All operations that have it mean the same by it.
type Param struct {
	Name string
	// Typical is its value where operations are measured without a network.
	Typical float64
	// Values are for tests to draw from. Empty means that shapes decide, as of paddings and windows.
	Values []float64
	// Above names a loop. Its extent is added to a drawn value. Empty means none.
	Above string
	// With names a parameter without which this one is zero. Empty means none.
	With string
}

var params = []Param{
	{Name: "stride", Typical: 1, Values: steps(1, 1, 3)}, {Name: "step", Typical: 2, Values: steps(1, 1, 3)},
	{Name: "height", Typical: 2}, {Name: "width", Typical: 2}, {Name: "size", Typical: 2}, {Name: "before"},
	{Name: "heads", Typical: 4, Values: steps(1, 1, 3)}, {Name: "group", Typical: 1, Values: steps(1, 1, 3)}, {Name: "window"}, {Name: "past"}, {Name: "first", Values: steps(0, 1, 3)},
	{Name: "base", Typical: 10000, Values: []float64{10, 10000}}, {Name: "back", Values: steps(0, 1, 2)},
	{Name: "center", Typical: 1, Values: steps(0, 1, 2)}, {Name: "token", Values: steps(0, 1, 3)}, {Name: "behind", Values: steps(0, 1, 2)},
	{Name: "relu", Typical: 1, Values: steps(0, 1, 2)},
	{Name: "layer", Values: steps(0, 1, 50)}, {Name: "p", Values: steps(0, 0.25, 5)}, {Name: "channels_last", Values: steps(0, 1, 2)},
	{Name: "function", Values: steps(0, 1, len(functions))}, {Name: "setting", Values: steps(0, 0.25, 4)},
	{Name: "slope", Values: steps(0, 0.25, 4)},
	{Name: "divisor", Typical: 255, Values: []float64{255}},
	{Name: "pixels", Typical: 64, Values: steps(1, 1, 50)},
	{Name: "batch", Typical: 256, Values: steps(0, 1, 20), Above: "n"}, // of which a call has some samples
	{Name: "smoothing", Values: steps(0, 0.25, 2)},
	{Name: "max_norm", Typical: 1, Values: []float64{0.25, 25}}, // below the norm of some to some fifty sums of 0.1 or 3, or above
	{Name: "momentum", Typical: 0.9, Values: steps(0, 0.9, 2)}, {Name: "nesterov", Values: steps(0, 1, 2), With: "momentum"},
	{Name: "weight_decay", Values: steps(0, 0.01, 2)}, {Name: "decoupled", Values: steps(0, 1, 2)},
	{Name: "beta1", Typical: 0.9, Values: []float64{0.9}}, {Name: "beta2", Typical: 0.999, Values: []float64{0.999}},
	{Name: "eps", Typical: 1e-8, Values: []float64{1e-8}},
}

// steps are n numbers at equal distances.
func steps(first, distance float64, n int) (all []float64) {
	for i := range n {
		all = append(all, first+float64(distance*float64(i)))
	}
	return all
}

// ParamByName finds what is known of a parameter; ok is false where nothing is.
func ParamByName(name string) (p Param, ok bool) {
	for _, p := range params {
		if p.Name == name {
			return p, true
		}
	}
	return Param{}, false
}

// IndexBound is one more than the greatest index that an operand of a valid call may hold, see
// Values.Below. Zero means any number of its type.
func (k *Kernel) IndexBound(s *calls.Spec, operand int) int {
	text := k.Operands[operand].Values.Below
	if text == "" {
		return 0
	}
	p, err := k.space(s)
	if err != nil {
		panic("kernels: index bound of an invalid call: " + err.Error())
	}
	bound := 1
	for name := range strings.SplitSeq(text, "*") {
		var number int
		if _, err := fmt.Sscan(name, &number); err == nil {
			bound *= number
		} else if v, ok := s.Params.Get(name); ok {
			bound *= int(v)
		} else {
			bound *= p.extent(name)
		}
	}
	return bound
}
