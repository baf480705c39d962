package plan

import (
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
)

// operation is one of a layer's three, which a lowering cuts each by itself.
type operation struct {
	name string // before the names of its numbers
	of   func(*dag.LayerLowering) *dag.Cut
	over []dag.Dimension // which it sums
}

var operations = []operation{
	{"", func(l *dag.LayerLowering) *dag.Cut { return &l.Forward }, []dag.Dimension{dag.AlongInputs}},
	{"gradient ", func(l *dag.LayerLowering) *dag.Cut { return &l.WeightGradient }, []dag.Dimension{dag.AlongSamples, dag.AlongRows, dag.AlongColumns}},
	{"input-gradient ", func(l *dag.LayerLowering) *dag.Cut { return &l.InputGradient }, []dag.Dimension{dag.AlongOutputs}},
}

var ofWeightGradient, ofInputGradient = &operations[1], &operations[2]

// sums reports whether a sum of the operation is cut.
func (o *operation) sums(ll, extents *dag.LayerLowering) bool {
	return slices.ContainsFunc(o.over, func(d dag.Dimension) bool {
		tile, extent := *o.of(ll).Of(d), *o.of(extents).Of(d)
		return tile > 0 && tile < extent
	})
}

// quantity is a number of a layer: how much a task of one of its operations has of a dimension, or the accumulators of its sum.
type quantity struct {
	*operation
	name  string        // of one
	along dag.Dimension // NumDimensions: accumulators
}

const ofSums = dag.NumDimensions

// quantities are all of them: operations × dimensions and accumulators.
var quantities = func() (all []quantity) {
	for i := range operations {
		o := &operations[i]
		for along := range dag.NumDimensions {
			all = append(all, quantity{o, o.name + strings.TrimSuffix(along.String(), "s"), along})
		}
		all = append(all, quantity{o, o.name + "accumulator", ofSums})
	}
	return all
}()

// in is the number of a layer.
func (q *quantity) in(ll *dag.LayerLowering) *int {
	if q.along == ofSums {
		return &q.of(ll).Accumulators
	}
	return q.of(ll).Of(q.along)
}

// have is the number of a layer, of at most so many; 0 stands for the most, or for one accumulator.
func (q *quantity) have(ll *dag.LayerLowering, most int) int {
	switch value := *q.in(ll); {
	case value > 0:
		return min(value, most)
	case q.along == ofSums:
		return 1
	}
	return most
}

// isUsual reports whether default lowerings choose the number.
func (q *quantity) isUsual() bool {
	return q.operation != ofInputGradient && (q.along == dag.AlongSamples || q.along == dag.AlongOutputs || q.along == ofSums && q.operation == ofWeightGradient)
}

// text is a number of the quantity, as in "1 sample", "4 samples" and "all samples".
func (q *quantity) text(value int) string {
	if value == 0 {
		return "all " + q.name + "s"
	}
	return counted(value, q.name)
}

// counted is a number of things by the name of one.
func counted(n int, name string) string {
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}

// followed is the cut of an input gradient by which it has as many parts as the forward pass, see [dag.LayerLowering].
func followed(forward dag.Cut, extents *dag.LayerLowering) (g dag.Cut) {
	for d := range dag.NumDimensions {
		from := d
		switch d {
		case dag.AlongInputs:
			from = dag.AlongOutputs
		case dag.AlongOutputs:
			from = dag.AlongInputs
		}
		tile, of, extent := *forward.Of(from), *extents.Forward.Of(from), *extents.InputGradient.Of(d)
		switch {
		case tile == 0 || of == 0 || extent == 0:
		case extent == of:
			*g.Of(d) = tile
		default:
			*g.Of(d) = inParts(extent, inParts(of, tile))
		}
	}
	return g
}

// inParts is how much each of so many parts has, or how many parts of such a size there are.
func inParts(extent, by int) int { return (extent + by - 1) / by }
