package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
	"dahl/nn"
)

// uniformInit begins an --init that draws all weights from one interval.
const uniformInit = "uniform:"

// initialiser fills a parameter with its first values.
type initialiser func(p *nn.Parameter, values []float64) error

// newInitialiser reads --init: nothing for PyTorch's default distributions,
// uniform:A:B for U(A, B), else an .npz file.
func newInitialiser(o *options) (initialiser, error) {
	if o.Init == "" {
		return func(p *nn.Parameter, values []float64) error {
			p.Init(values, o.Seed)
			return nil
		}, nil
	}
	if bounds, ok := strings.CutPrefix(o.Init, uniformInit); ok {
		lo, hi, err := parseBounds(bounds)
		if err != nil {
			return nil, err
		}
		return func(p *nn.Parameter, values []float64) error {
			nn.InitBetween(values, o.Seed, p.Name, lo, hi)
			return nil
		}, nil
	}
	return initialiserFromFile(o.Init, o)
}

func parseBounds(s string) (lo, hi float64, err error) {
	a, b, ok := strings.Cut(s, ":")
	lo, errLo := strconv.ParseFloat(a, 64)
	hi, errHi := strconv.ParseFloat(b, 64)
	if !ok || errLo != nil || errHi != nil || !(lo < hi) || math.IsInf(hi-lo, 0) {
		return 0, 0, inputErrorf("--init %s%s: want two finite numbers, the smaller first, as in %s-0.1:0.1", uniformInit, s, uniformInit)
	}
	return lo, hi, nil
}

func initialiserFromFile(path string, o *options) (initialiser, error) {
	single := o.DType == dag.Float32.String()
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
		if i := slices.IndexFunc(values, func(v float64) bool { return !isFinite(v) || single && math.Abs(v) > math.MaxFloat32 }); i >= 0 {
			return inputErrorf("%s: array %q has %v at %v; want a finite number of --dtype %s", path, p.Name, values[i], indexOf(i, a.Shape), o.DType)
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
