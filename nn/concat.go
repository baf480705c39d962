package nn

import (
	"fmt"
	"slices"
	"strconv"

	"dahl/dag"
)

// Concat puts the channels, or the features, of its inputs behind each other. It is no task where
// the layers before it write into the concatenation: see doc.go.
type Concat struct{}

// Kind implements [Layer].
func (Concat) Kind() string { return "concat" }

// Traits says where values and gradients are.
func (Concat) Traits() Traits { return Traits{Passes: true, Joins: true} }

// Output implements [Layer].
func (Concat) Output(in [][]int) ([]int, error) {
	if len(in) < 2 {
		return nil, fmt.Errorf("%d inputs; want two or more, as in input = [\"conv1\", \"conv2\"]", len(in))
	}
	out := slices.Clone(in[0])
	for _, other := range in[1:] {
		if len(other) != len(out) || !slices.Equal(other[1:], out[1:]) {
			return nil, fmt.Errorf("inputs differ in more than their number of channels")
		}
		out[0] += other[0]
	}
	return out, nil
}

// Flops implements [Layer].
func (Concat) Flops([][]int, []int) float64 { return 0 }

// Forward implements [Layer]. It copies the inputs that are not in their place.
func (Concat) Forward(n *Node) {
	for i := range n.ins {
		x, place := &n.ins[i], n.ins[i]
		place.value, place.valueIn = n.out.value, n.out.valueIn.from(&n.out, n.offset(i))
		if x.value == place.value && x.valueIn.first == place.valueIn.first {
			continue
		}
		n.l.tiles(n, phaseForward+"."+strconv.Itoa(i+1), "copy", nil, n.passing(), place.values(dag.AlongOutputs), x.values(dag.AlongInputs))
	}
}

// Backward implements [Layer].
func (Concat) Backward(*Node) {}
