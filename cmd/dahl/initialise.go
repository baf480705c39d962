package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

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
	return initialiserFromFile(o.Init)
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

func initialiserFromFile(path string) (initialiser, error) {
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
		return nil
	}, nil
}
