package main

import (
	"math"
	"strconv"
	"strings"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/nn"
	"dahl/train"
)

// uniformInit begins an --init that draws all weights from one interval.
const uniformInit = "uniform:"

// newInitialiser reads --init: nothing for PyTorch's default distributions,
// uniform:A:B for U(A, B), else an .npz file with the parameters of a network of a type.
func newInitialiser(o *options, m *nn.Model, t dag.DType) (train.Initialiser, error) {
	if o.Init == "" {
		return nil, nil
	}
	bounds, ok := strings.CutPrefix(o.Init, uniformInit)
	if !ok {
		return train.FromNPZ(o.Init, m, t)
	}
	a, b, _ := strings.Cut(bounds, ":")
	lo, errLo := strconv.ParseFloat(a, 64)
	hi, errHi := strconv.ParseFloat(b, 64)
	if errLo != nil || errHi != nil || !(lo < hi) || math.IsInf(hi-lo, 0) {
		return nil, cli.InputErrorf("--init %s: want two finite numbers, the smaller first, as in %s-0.1:0.1", o.Init, uniformInit)
	}
	if t == dag.Float32 && max(-lo, hi) > math.MaxFloat32 {
		return nil, cli.InputErrorf("--init %s: no float32 is beyond %g; take narrower bounds", o.Init, math.MaxFloat32)
	}
	return train.Uniform(o.Seed, lo, hi), nil
}
