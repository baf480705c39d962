package main

import (
	"math"
	"strconv"
	"strings"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/train"
)

// uniformInit begins an --init that draws all weights from one interval.
const uniformInit = "uniform:"

// newInitialiser reads --init: nothing for PyTorch's default distributions,
// uniform:A:B for U(A, B), else an .npz file.
func newInitialiser(o *options, t dag.DType) (train.Initialiser, error) {
	if o.Init == "" {
		return nil, nil
	}
	if bounds, ok := strings.CutPrefix(o.Init, uniformInit); ok {
		lo, hi, err := parseBounds(bounds)
		if err != nil {
			return nil, err
		}
		return train.Uniform(o.Seed, lo, hi), nil
	}
	return train.FromNPZ(o.Init, t)
}

func parseBounds(s string) (lo, hi float64, err error) {
	a, b, ok := strings.Cut(s, ":")
	lo, errLo := strconv.ParseFloat(a, 64)
	hi, errHi := strconv.ParseFloat(b, 64)
	if !ok || errLo != nil || errHi != nil || !(lo < hi) || math.IsInf(hi-lo, 0) {
		return 0, 0, cli.InputErrorf("--init %s%s: want two finite numbers, the smaller first, as in %s-0.1:0.1", uniformInit, s, uniformInit)
	}
	return lo, hi, nil
}
