package strategy

import (
	"fmt"
	"reflect"

	"dahl/dag"
)

// Lowered is a network as a strategy lowers it.
type Lowered struct {
	Name string // of the strategy, as [ByName] takes it
	dag.Lowering
}

// mostCandidates bounds the list of [For].
const mostCandidates = 24

// For lists the strategies of networks that make sense. They have two devices, or twice as many, up to all but processors. Micro-batches divide the
// batch. Strategies that lower the network in the same way, or cannot, are left out.
func For(n *Network) (all []Lowered) {
	add := func(format string, numbers ...any) {
		name := fmt.Sprintf(format, numbers...)
		of, err := ByName(name)
		if err != nil {
			panic("strategy: " + err.Error())
		}
		l, err := of.Split.Lowering(n)
		if err != nil || len(all) == mostCandidates {
			return
		}
		for _, other := range all {
			if reflect.DeepEqual(other.Lowering, l) {
				return
			}
		}
		all = append(all, Lowered{name, l})
	}
	most := n.accelerators()
	for devices := 2; devices <= most; devices *= 2 {
		for _, each := range []int{4, 2} { // a bubble of a fifth of the work, and one of a third
			if batches := each * devices; n.Batch%batches == 0 {
				add("1f1b:%dx%d", devices, batches)
				add("interleaved:%dx2x%d", devices, batches)
				break
			}
		}
	}
	return all
}
