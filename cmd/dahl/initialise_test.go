package main

import (
	"slices"
	"testing"

	"dahl/cmd/dahl/flags"
	"dahl/dag"
	"dahl/must"
	"dahl/nn"
)

// uniform:A:B draws from [A, B) and nothing else; two parameters get different
// numbers, the same seed and name the same ones.
func TestUniformInit(t *testing.T) {
	draw := must.Get(flags.NewInitialiser(&flags.Options{Init: "uniform:-0.25:0.75", Seed: 3}, nil, dag.Float32))(t)
	values := map[string][]float64{}
	for _, name := range []string{"conv1.weight", "conv1.bias", "conv1.weight again"} {
		p := nn.Parameter{Name: name[:min(len(name), len("conv1.weight"))], Shape: []int{7, 11}, FanIn: 11}
		v := make([]float64, p.Elems())
		must.Do(t, draw(&p, 0, v))
		values[name] = v
		if lo, hi := slices.Min(v), slices.Max(v); lo < -0.25 || hi >= 0.75 || lo >= 0 || hi <= 0.5 {
			// Of 77 numbers, none below 0 has the probability 0.75^77 < 1e-9.
			t.Errorf("%s: from %g to %g", name, lo, hi)
		}
	}
	if !slices.Equal(values["conv1.weight"], values["conv1.weight again"]) || slices.Equal(values["conv1.weight"], values["conv1.bias"]) {
		t.Error("numbers depend on seed and name alone, and on the name")
	}
}

func TestUniformInitRefuses(t *testing.T) {
	for _, s := range []string{"uniform:", "uniform:1", "uniform:1:1", "uniform:2:1", "uniform:0:x", "uniform:NaN:1", "uniform:0:Inf", "uniform:-1e308:1e308", "uniform:0:1e39", "uniform:-1e39:0"} {
		if _, err := flags.NewInitialiser(&flags.Options{Init: s}, nil, dag.Float32); err == nil {
			t.Errorf("%s is taken", s)
		}
	}
}
