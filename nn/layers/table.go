package layers

import (
	"fmt"
	"slices"

	"dahl/naming"
	"dahl/nn"
)

// Elementwise is embedded by layers with one input and no parameters, of which each output depends on the input at the
// same place.
type Elementwise struct{}

// Output implements [nn.Layer].
func (Elementwise) Output(in [][]int) ([]int, error) { return one(in) }

// Flops implements [nn.Layer] with one operation per element.
func (Elementwise) Flops(_ [][]int, out []int) float64 { return float64(nn.Elems(out)) }

// one is the shape of the only input of a layer.
func one(in [][]int) ([]int, error) {
	if len(in) != 1 {
		return nil, fmt.Errorf("%d inputs; want one", len(in))
	}
	return in[0], nil
}

// oneImage is the shape of the only input of a layer that needs an image.
func oneImage(in [][]int, layer string) ([]int, error) {
	shape, err := one(in)
	if err == nil && len(shape) != 3 {
		err = fmt.Errorf("%s needs C×H×W", layer)
	}
	return shape, err
}

// Info is a line of the table of layers.
type Info struct {
	Kind string
	Doc  string
	// Keys are the numbers and flags of a model file. New reads them.
	Keys []Key
	New  func(s Settings) nn.Layer
}

// Key is one setting of a layer in a model file: a whole number, a fraction, or a flag.
type Key struct {
	Name     string
	Min, Max float64
	Default  float64
	Needed   bool // there is no default
	Flag     bool
	Fraction bool // any number between the limits
	// Sides is how many numbers a list may have that stands in place of one: 2 for rows and columns,
	// or 4 for top, left, bottom and right, of which it may then also have 2. 0 means there is no list.
	Sides int
	Doc   string
}

// Settings are the values of a layer's keys, flags as 0 and 1; defaults are filled in. The further
// numbers of a list are behind the key with their position, as "kernel[1]".
type Settings map[string]float64

// Set gives a key a number, or a list of them.
func (s Settings) Set(key string, values ...float64) {
	for i, v := range values {
		if i > 0 {
			s[fmt.Sprintf("%s[%d]", key, i)] = v
		} else {
			s[key] = v
		}
	}
}

// list is the numbers of a key.
func (s Settings) list(key string) []int {
	all := []int{s.count(key)}
	for {
		v, more := s[fmt.Sprintf("%s[%d]", key, len(all))]
		if !more {
			return all
		}
		all = append(all, int(v))
	}
}

// count is a setting that is a whole number.
func (s Settings) count(key string) int { return int(s[key]) }

// MaxExtent is the largest whole number in a model file.
const MaxExtent = 1 << 24

// All is the table of layers.
func All() []Info {
	return slices.Concat(products(), tokens(), sequences(), images(), values(), activations())
}

// ByName finds a line of the table of layers.
func ByName(kind string) (Info, error) {
	return naming.Find("layer", kind, All(), func(k Info) string { return k.Kind })
}

// share is the part that each of n devices has of a number.
func share(what string, of, n int) (int, error) {
	if of%n > 0 {
		return 0, fmt.Errorf("%d %s are no equal parts for %d devices", of, what, n)
	}
	return of / n, nil
}
