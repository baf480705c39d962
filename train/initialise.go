package train

import (
	"fmt"
	"math"
	"slices"

	"dahl/dag"
	"dahl/nn"
)

// Initialiser fills a parameter with its first values.
type Initialiser func(p *nn.Parameter, values []float64) error

// Uniform draws all parameters from U(lo, hi).
func Uniform(seed uint64, lo, hi float64) Initialiser {
	return func(p *nn.Parameter, values []float64) error {
		nn.InitBetween(values, seed, p.Name, lo, hi)
		return nil
	}
}

// FromNPZ takes the parameters from a file, for a network of a type.
func FromNPZ(path string, t dag.DType) (Initialiser, error) {
	arrays, err := nn.ReadNPZ(path)
	if err != nil {
		return nil, asInput(fmt.Errorf("reading the initial weights: %w", err))
	}
	given := map[string]*nn.Array{}
	for i := range arrays {
		given[arrays[i].Name] = &arrays[i]
	}
	return func(p *nn.Parameter, values []float64) error {
		a, ok := given[p.Name]
		if !ok || a.Len() != p.Elems() {
			return inputErrorf("%s: no array %q with %d elements (shape %v)", path, p.Name, p.Elems(), p.Shape)
		}
		copy(values, a.Float64s())
		bad := func(v float64) bool { return notFinite(v) || t == dag.Float32 && math.Abs(v) > math.MaxFloat32 }
		if i := slices.IndexFunc(values, bad); i >= 0 {
			return inputErrorf("%s: array %q has %v at %v; want a finite number of type %s", path, p.Name, values[i], indexOf(i, a.Shape), t)
		}
		return nil
	}, nil
}

// indexOf is the index in each dimension of an element of an array in row-major order.
func indexOf(i int, shape []int) []int {
	index := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		index[d], i = i%shape[d], i/shape[d]
	}
	return index
}
