package calls

import (
	"strconv"
	"strings"
)

// Windows is the number of windows of size k at distance stride in an extent with
// padding on both sides: floor((extent+2·pad-k)/stride) + 1, or 0 if none fits.
func Windows(extent, k, pad, stride int) int {
	if extent+2*pad < k {
		return 0
	}
	return (extent+2*pad-k)/stride + 1
}

// Volume is the number of elements of operand i.
func (s *Spec) Volume(i int) float64 {
	n := 1.0
	for _, e := range s.Operands[i].Shape {
		n *= float64(e)
	}
	return n
}

// option is a parameter that a call may leave out. Then a number or another
// parameter stands for it.
type option struct {
	Name   string
	number float64
	Other  string // empty means the number
}

// Options are the parameters that a call may leave out, in the order of Call.Params.
type Options []option

// ParseOptions reads Options, "parameter=number" or "parameter=parameter" each.
func ParseOptions(text string) (all Options) {
	for _, text := range strings.Fields(text) {
		name, otherwise, _ := strings.Cut(text, "=")
		o := option{Name: name, Other: otherwise}
		if v, err := strconv.ParseFloat(otherwise, 64); err == nil {
			o.number, o.Other = v, ""
		}
		all = append(all, o)
	}
	return all
}

// Value is a parameter of a valid call, or what stands for it where the call leaves it out.
func (all Options) Value(of *Spec, name string) float64 {
	for i := range all {
		o := &all[i]
		if o.Name != name {
			continue
		}
		if v, given := of.Params.Get(name); given {
			return v
		}
		if o.Other != "" {
			return all.Value(of, o.Other)
		}
		return o.number
	}
	return of.Param(name)
}
