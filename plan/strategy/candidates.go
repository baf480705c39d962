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
	most := n.accelerators()
	of := *n
	of.Times = n.timesOnce(most)
	add := func(format string, numbers ...any) {
		name := fmt.Sprintf(format, numbers...)
		s, err := ByName(name)
		if err != nil {
			panic("strategy: " + err.Error())
		}
		l, err := s.Split.Lowering(&of)
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
	for devices := 2; devices <= most; devices *= 2 {
		for _, shared := range []string{"data-parallel", "tensor-parallel", "spatial", "owt"} {
			add("%s:%d", shared, devices)
		}
		batches := n.microBatches(devices)
		if batches == 0 {
			continue
		}
		add("1f1b:%dx%d", devices, batches)
		add("interleaved:%dx2x%d", devices, batches)
		if 2*devices <= most {
			add("tensor-parallel:2+1f1b:%dx%d", devices, batches)
			add("data-parallel:2+1f1b:%dx%d", devices, batches)
		}
	}
	return all
}

// microBatches is a number of micro-batches for a pipeline of some devices: four for each, or two where only these divide the batch. 0 means that neither does. The
// bubble is then up to a quarter of the work, or half of it.
func (n *Network) microBatches(devices int) int {
	for _, each := range []int{4, 2} {
		if n.Batch%(each*devices) == 0 {
			return each * devices
		}
	}
	return 0
}

// timesOnce returns times for as many seats as asked for, from times for the most of them, which it asks for once for each number of micro-batches.
func (n *Network) timesOnce(most int) func(dag.Lowering, []Seat) ([]string, [][]float64, error) {
	type times struct {
		layers  []string
		seconds [][]float64
		err     error
	}
	known := map[int]*times{}
	return func(l dag.Lowering, seats []Seat) ([]string, [][]float64, error) {
		of := known[l.MicroBatches]
		if of == nil {
			of = &times{}
			known[l.MicroBatches] = of
			all, err := Seats(n.Platform, most)
			if of.err = err; err == nil {
				of.layers, of.seconds, of.err = n.Times(l, all)
			}
		}
		if of.err != nil {
			return nil, nil, of.err
		}
		first := make([][]float64, len(of.seconds))
		for i := range first {
			first[i] = of.seconds[i][:len(seats)]
		}
		return of.layers, first, nil
	}
}
