package npz

import (
	"math"
	"slices"
	"sort"
	"strconv"

	"dahl/dag"
)

// Difference says in which numbers two lists of arrays differ.
type Difference struct {
	Arrays  int `json:"arrays"`  // in both lists, of equal shapes
	Numbers int `json:"numbers"` // of these arrays
	Differ  int `json:"differ"`  // of these numbers

	OnlyA  []string `json:"only_first,omitempty"`
	OnlyB  []string `json:"only_second,omitempty"`
	Shapes []string `json:"other_shapes,omitempty"` // names of arrays in both lists

	Each  []ArrayDifference `json:"each"` // arrays with numbers that differ, in the order of the first list
	First []NumberPair      `json:"first"`
	Worst []NumberPair      `json:"worst"` // by ULP, and of equal ones the first
}

// ArrayDifference is two arrays of one name.
type ArrayDifference struct {
	Name        string  `json:"name"`
	Type        string  `json:"type"` // in which they are compared
	Shape       []int   `json:"shape"`
	Numbers     int     `json:"numbers"`
	Differ      int     `json:"differ"`
	MaxULP      float64 `json:"max_ulp"`
	MaxRelative float64 `json:"max_relative"`
}

// NumberPair is two numbers at one place.
type NumberPair struct {
	Array string  `json:"array"`
	Index []int   `json:"index"`
	A     string  `json:"first"` // the shortest text that is read back as the number
	B     string  `json:"second"`
	ULP   float64 `json:"ulp"`      // how many numbers of the type lie from one to the other; of whole numbers their difference
	Rel   float64 `json:"relative"` // their difference over the larger magnitude, up to 2; 2 also where one is not finite
}

// Compare finds the numbers that differ. It lists the first and the worst of them, most in number. Of two types the coarser one counts: a
// float64 is rounded to compare it with a float32. All NaNs are equal, and 0 and -0 differ by no ULP.
func Compare(a, b []Array, most int) *Difference {
	d := &Difference{}
	for i := range b {
		if !slices.ContainsFunc(a, func(x Array) bool { return x.Name == b[i].Name }) {
			d.OnlyB = append(d.OnlyB, b[i].Name)
		}
	}
	for i := range a {
		switch at := slices.IndexFunc(b, func(x Array) bool { return x.Name == a[i].Name }); {
		case at < 0:
			d.OnlyA = append(d.OnlyA, a[i].Name)
		case !slices.Equal(a[i].Shape, b[at].Shape):
			d.Shapes = append(d.Shapes, a[i].Name)
		default:
			d.add(&a[i], &b[at], most)
		}
	}
	return d
}

// add compares two arrays of one shape.
func (d *Difference) add(a, b *Array, most int) {
	t := coarser(a.Type, b.Type)
	of := ArrayDifference{Name: a.Name, Type: t.String(), Shape: a.Shape, Numbers: a.Len()}
	x, y := a.Float64s(), b.Float64s()
	for i := range x {
		if t == dag.Float32 {
			x[i], y[i] = float64(float32(x[i])), float64(float32(y[i]))
		}
		if math.Float64bits(x[i]) == math.Float64bits(y[i]) || math.IsNaN(x[i]) && math.IsNaN(y[i]) {
			continue
		}
		p := NumberPair{ULP: ulps(x[i], y[i], t), Rel: relative(x[i], y[i])}
		of.Differ, of.MaxULP, of.MaxRelative = of.Differ+1, max(of.MaxULP, p.ULP), max(of.MaxRelative, p.Rel)
		place := sort.Search(len(d.Worst), func(j int) bool { return d.Worst[j].ULP < p.ULP })
		if len(d.First) >= most && place >= most {
			continue
		}
		p.Array, p.Index, p.A, p.B = a.Name, IndexOf(i, a.Shape), numberText(x[i], t), numberText(y[i], t)
		if len(d.First) < most {
			d.First = append(d.First, p)
		}
		d.Worst = slices.Insert(d.Worst, place, p)
		d.Worst = d.Worst[:min(most, len(d.Worst))]
	}
	d.Arrays, d.Numbers, d.Differ = d.Arrays+1, d.Numbers+of.Numbers, d.Differ+of.Differ
	if of.Differ > 0 {
		d.Each = append(d.Each, of)
	}
}

// coarser is the type in which two numbers are compared.
func coarser(a, b dag.DType) dag.DType {
	for _, t := range []dag.DType{dag.Float32, dag.Float64} {
		if a == t || b == t {
			return t
		}
	}
	return a
}

// ulps counts the numbers of a type from one to the other. An infinity is the number behind the largest one, and a NaN is
// further than all numbers.
func ulps(a, b float64, t dag.DType) float64 {
	switch {
	case math.IsNaN(a) || math.IsNaN(b):
		return math.MaxUint64
	case t == dag.Float32:
		return math.Abs(float64(ordered(uint64(math.Float32bits(float32(a))), 31) - ordered(uint64(math.Float32bits(float32(b))), 31)))
	case t != dag.Float64:
		return math.Abs(a - b)
	}
	x, y := ordered(math.Float64bits(a), 63), ordered(math.Float64bits(b), 63)
	return float64(uint64(max(x, y)) - uint64(min(x, y)))
}

// ordered maps the bits of floats to whole numbers in their order; the sign is at a bit.
func ordered(bits uint64, sign int) int64 {
	if bits>>sign == 1 {
		return -int64(bits &^ (1 << sign))
	}
	return int64(bits)
}

// numberText is the shortest text that is read back as a number of a type.
func numberText(v float64, t dag.DType) string {
	if t == dag.Float32 {
		return strconv.FormatFloat(v, 'g', -1, 32)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func relative(a, b float64) float64 {
	if r := math.Abs(a-b) / max(math.Abs(a), math.Abs(b)); r <= 2 {
		return r
	}
	if a == b { // 0 and -0
		return 0
	}
	return 2
}

// IndexOf is the index in each dimension of an element of an array.
func IndexOf(i int, shape []int) []int {
	index := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		index[d], i = i%shape[d], i/shape[d]
	}
	return index
}
