package layerwise

import (
	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// Network is a training step whose layers are whole, as package nn describes it: what the model needs to know.
type Network struct {
	Operations []Operation // by task of one graph
	Fused      []Fused
	// Machine is the machine with the devices of a list.
	Machine func(devices string) (*platform.Platform, error)
	// Price is the cost of tasks with buffers of a graph by task and device of a machine; a duration below zero says that the device cannot run it.
	Price func(*dag.Graph, []dag.Task, *platform.Platform) ([][]schedule.Cost, error)
}

// Operation is an operation with the ways to cut it.
type Operation struct {
	Graph *dag.Graph // of the task
	Task  dag.Task
	Sides []Side
	// Cut is how the operation is cut where its layer is lowered so.
	Cut func(dag.LayerLowering) dag.Cut
	// Tiles lists the different tasks under a cut with their numbers, sums of accumulators in phase "reduce" among them.
	Tiles func(dag.Cut) ([]Tile, error)
	// Part is a task with ranges of all sides. It says the regions.
	Part func([]dag.Range) dag.Task
}

// Side is a dimension of an operation.
type Side struct {
	Along         dag.Dimension
	Pass          dag.Pass // whose cut says how it is cut
	Extent, Block int
	Summed        bool
	Cuttable      bool
}

// Tile is a task, and how many are like it.
type Tile struct {
	Task  dag.Task
	Count int
}

// Fused is an operation that takes the place of others where its layer is lowered so.
type Fused struct {
	Operation
	Of      []dag.TaskID
	Applies func(dag.LayerLowering) bool
}

// parts is the number of parts of a side.
func (s *Side) parts(cut *dag.Cut) int {
	size := *cut.Of(s.Along)
	switch {
	case !s.Cuttable || size <= 0 || size >= s.Extent:
		return 1
	case size >= s.Block:
		return ceilDiv(s.Extent, size/s.Block*s.Block)
	}
	return s.Extent / s.Block * ceilDiv(s.Block, size)
}

// rangeOf is a part of a side, as a fraction of its extent.
func (s *Side) rangeOf(cut *dag.Cut, part int) (lo, hi float64) {
	size, extent := *cut.Of(s.Along), float64(s.Extent)
	switch {
	case !s.Cuttable || size <= 0 || size >= s.Extent:
		return 0, 1
	case size >= s.Block:
		size = size / s.Block * s.Block
		return float64(part*size) / extent, float64(min((part+1)*size, s.Extent)) / extent
	}
	each := ceilDiv(s.Block, size)
	block, within := part/each*s.Block, part%each*size
	return float64(block+within) / extent, float64(block+min(within+size, s.Block)) / extent
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
