package nn_test

import (
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// stub is a layer of some traits and an output of some shape, with or without a parameter.
type stub struct {
	layers.Elementwise
	traits nn.Traits
	out    []int
	params []nn.Parameter
}

func (stub) Kind() string                    { return "stub" }
func (s stub) Traits() nn.Traits             { return s.traits }
func (s stub) Output([][]int) ([]int, error) { return slices.Clone(s.out), nil }
func (s stub) Params([][]int) []nn.Parameter { return slices.Clone(s.params) }
func (s stub) Forward(n *nn.Node)            { n.View() }
func (stub) Backward(*nn.Node)               {}

// TestTraitsAreChecked has layers whose traits and shapes do not fit together.
func TestTraitsAreChecked(t *testing.T) {
	for _, test := range []struct {
		layers []nn.Layer
		want   string
	}{
		{[]nn.Layer{stub{out: []int{4}, traits: nn.Traits{Weight: true}}}, "has no parameters"},
		{[]nn.Layer{layers.Dense{Outputs: 4}, stub{out: []int{4}, traits: nn.Traits{Integers: true}}}, "whole numbers have no gradient"},
		{[]nn.Layer{stub{out: []int{4}, traits: nn.Traits{Integers: true}, params: []nn.Parameter{{Name: "weight", Shape: []int{1}}}}}, "whole numbers have no gradient"},
		{[]nn.Layer{stub{out: []int{1, 1, 2, 1, 2}}}, "want 1 to 4 dimensions"},
		{[]nn.Layer{stub{out: nil}}, "want 1 to 4 dimensions"},
	} {
		if _, err := nn.New("m", []int{4}, test.layers...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.layers, err, test.want)
		}
	}
}

// TestViews views samples of 12 numbers in other shapes on their way to the last layer. An image of several channels and pixels
// has another order of elements.
func TestViews(t *testing.T) {
	for _, test := range []struct {
		shape []int
		fits  bool
	}{{[]int{3, 4}, true}, {[]int{1, 2, 3, 2}, true}, {[]int{1, 3, 4}, true}, {[]int{12, 1, 1}, true}, {[]int{3, 2, 2}, false}} {
		view := nn.Traits{View: true}
		m, err := nn.New("m", []int{12}, layers.Dense{Outputs: 12}, stub{out: test.shape, traits: view}, layers.Activation{Function: "tanh"}, layers.Flatten{}, layers.Dense{Outputs: 2})
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Lower(nn.LowerOptions{Batch: 5, Samples: 5, Type: dag.Float32, Train: true})
		if (err == nil) != test.fits {
			t.Errorf("%v: %v", test.shape, err)
		}
	}
}
