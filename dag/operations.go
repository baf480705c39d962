package dag

// Operations is a training step whose layers are whole, and its operations with the ways to cut them.
type Operations struct {
	// Graph has a task for each operation, where gradients and updates are apart, and so are two copies of one weight.
	Graph *Graph
	All   []Operation // in the order of the tasks, but of a prepared step without tasks that run once
	Fused []Fused
}

// Operation is an operation of a layer, or of none, as the feed.
type Operation struct {
	Graph *Graph // of the task
	Task  Task   // the whole operation
	Sides []Side // along which it is or may be cut
	// Cut is how the operation is cut where its layer is lowered so.
	Cut func(LayerLowering) Cut
	// Tiles lists the tasks under a cut, and behind them the sums of accumulators in phase "reduce". Tasks of one shape are counted.
	Tiles func(Cut) ([]Tile, error)
	// Part is a task with ranges of all sides. It has no work yet.
	Part func([]Range) Task
}

// Side is a dimension of an operation.
type Side struct {
	Along  Dimension
	Pass   Pass // whose cut of the layer says how it is cut
	Extent int
	// Block says that a tile has some of one block of this extent, or whole ones.
	Block    int
	Whole    bool // a tile has no part of a block
	Of       int  // the extent that the cut of the layer is for, if the side is a part of it; else 0
	Summed   bool // the result does not have it
	Cuttable bool
}

// Tile is a task of an operation, and how many tasks are like it. Their regions differ.
type Tile struct {
	Task  Task
	Count int
}

// Fused is an operation that does the work of several: a gradient with its update, or two copies of a weight.
type Fused struct {
	Operation
	Of []TaskID // the operations, of the graph of all
	// Applies reports whether it takes their place where its layer is lowered so.
	Applies func(LayerLowering) bool
}

// size is the extent of the parts of a side but the last one of a block.
func (s *Side) size(cut *Cut) int {
	size := *cut.Of(s.Along)
	if s.Of > 0 && size > 0 {
		size = CeilDiv(s.Extent, CeilDiv(s.Of, size))
	}
	switch {
	case !s.Cuttable || size <= 0 || size >= s.Extent:
		return s.Extent
	case size >= s.Block:
		return size / s.Block * s.Block
	case s.Whole:
		return s.Block
	default:
		return size
	}
}

// Parts is the number of parts of a side.
func (s *Side) Parts(cut *Cut) int {
	size := s.size(cut)
	if size >= s.Block {
		return CeilDiv(s.Extent, size)
	}
	return s.Extent / s.Block * CeilDiv(s.Block, size)
}

// Range is a part of a side.
func (s *Side) Range(cut *Cut, part int) Range {
	size := s.size(cut)
	if size >= s.Block {
		return Range{part * size, min((part+1)*size, s.Extent)}
	}
	each := CeilDiv(s.Block, size)
	block, within := part/each*s.Block, part%each*size
	return Range{block + within, block + min(within+size, s.Block)}
}

// CeilDiv is a/b rounded up, for a not below 0 and b above 0: how many parts of size b cover a.
func CeilDiv(a, b int) int { return (a + b - 1) / b }

// Step is the work of a training step in every lowering, whatever the tiles of its layers.
type Step struct {
	Work []Work
	// Chains are work from one update of a weight to the next, each of another weight. A tile of each depends on a tile of the one before, and the
	// first on the last of the step before. Works that only some lowerings have come last, wherever they belong.
	Chains [][]Link
}

// Work is an operation of every lowering. A tile has a share of it: the product, over the sides of the operation, of the parts that the tile
// has. The shares of all tiles of a lowering add up to 1.
type Work struct {
	Name      string // of its tasks, without their parts: "conv1.forward"
	Forms     []Form // one of which a lowering has
	Sometimes bool   // only lowerings with a form that names it in Also have it
}

// Form is an operation that a lowering may have for some work, as with a ReLU or without. A tile with a share of it has
// no fewer flops than that share of Flops.
type Form struct {
	Op    string
	Type  DType
	Flops float64
	Sides []int // the extents along which it may be cut
	// Summed are the sides, as bits, over which the operation sums. Tiles that differ in these alone add to a result one after
	// the other, or to accumulators.
	Summed uint
	Result float64 // bytes of the results of such sums, as far as it is known
	Moved  []Moved // what a tile moves is no less than the sum of these
	Also   []int   // the numbers of works of every lowering with this form, such as the update behind a gradient; no other work has forms with these
}

// Moved is bytes of an operand of an operation. A tile moves a part of them: the product of its parts of the sides on which the operand
// depends.
type Moved struct {
	Bytes   float64
	Depends uint // on these sides, as bits
}

// Link is work of a chain from one update of a weight to the next: a tile of each depends on one of the work before. If it is Uniform, the
// tiles of a chain may be drawn at random such that the probability of each tile of the work is its share.
type Link struct {
	Work    int
	Uniform bool
}
