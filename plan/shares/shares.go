package shares

// Step is the work of a training step in every lowering, whatever the tiles of its layers.
type Step struct {
	Work []Work
	// Chain is work from one update of a weight to the next. A tile of each depends on a tile of the one before, and the
	// first on the last of the step before.
	Chain []Link
}

// Work is an operation. A tile has a share of it, and the shares of all tiles add up to 1.
type Work struct {
	Name  string
	Forms []Form // one of which a lowering has
}

// Form is an operation that a lowering may have for some work. A tile with a share has no fewer flops than the share of these. Its
// share is the product of its parts of all sides, and it moves no fewer bytes than the sum of Moved.
type Form struct {
	Op, Type string
	Flops    float64
	Sides    []int // extents
	Moved    []Moved
	Also     []Work // of every lowering with this form

	levels []level
}

// Moved is bytes of an operand. A tile moves the product of its parts of the sides on which the operand depends.
type Moved struct {
	Bytes   float64
	Depends uint // on these sides, as bits
}

// Link is work of a chain. If it is Uniform, the tiles of a chain may be drawn at random such that the tile of this work is each
// with the probability of its share.
type Link struct {
	Work    int
	Uniform bool
}

// NewStep makes a step.
func NewStep(work []Work, chain []Link) *Step {
	findLevels(work)
	return &Step{work, chain}
}

func findLevels(work []Work) {
	for i := range work {
		for k := range work[i].Forms {
			f := &work[i].Forms[k]
			f.levels = f.newLevels()
			findLevels(f.Also)
		}
	}
}
