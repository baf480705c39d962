package layerwise

import (
	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// Network is the operations of a network, and their prices.
type Network struct {
	dag.Operations
	// Machine is the machine with the devices of a list.
	Machine func(devices string) (*platform.Platform, error)
	// Price is the cost of tasks with buffers of a graph by task and device of a machine; a duration below zero says that the device cannot run it.
	Price func(*dag.Graph, []dag.Task, *platform.Platform) ([][]schedule.Cost, error)
}

// rangeOf is a part of a side, as a fraction of its extent.
func rangeOf(s *dag.Side, cut *dag.Cut, part int) (lo, hi float64) {
	r, extent := s.Range(cut, part), float64(s.Extent)
	return float64(r.Lo) / extent, float64(r.Hi) / extent
}
