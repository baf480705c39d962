package shares

// Step is the work of a training step in every lowering, whatever the tiles of its layers.
type Step struct {
	Work []Work
	// Chains are work from one update of a weight to the next, each of another weight. A tile of each depends on a tile of the one before, and the
	// first on the last of the step before. Works that only some lowerings have come last, wherever they belong.
	Chains [][]Link
}

// Work is an operation. A tile has a share of it, and the shares of all tiles add up to 1.
type Work struct {
	Name      string
	Forms     []Form // one of which a lowering has
	Sometimes bool   // only lowerings with a form that has it in Also have it
}

// Form is an operation that a lowering may have for some work. A tile with a share has no fewer flops than the share of these. Its
// share is the product of its parts of all sides, and it moves no fewer bytes than the sum of Moved.
type Form struct {
	Op, Type string
	Flops    float64
	Sides    []int // extents
	// Summed are sides, as bits, over which the operation sums. Tiles that differ in these alone add to one result.
	Summed uint
	Result float64 // bytes of all results of sums
	Moved  []Moved
	Also   []int // numbers of works of every lowering with this form; no other work has forms with these

	levels, results []level // of tiles, and of all tiles of a result
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
func NewStep(work []Work, chains [][]Link) *Step {
	for i := range work {
		for k := range work[i].Forms {
			f := &work[i].Forms[k]
			if f.levels = f.newLevels(); f.Summed != 0 {
				f.results = f.ofResult().newLevels()
			}
		}
	}
	return &Step{work, chains}
}

// ofResult is the form as its results are cut, each with all terms of its sum.
func (f *Form) ofResult() *Form {
	of := &Form{Moved: make([]Moved, len(f.Moved))}
	for i, m := range f.Moved {
		of.Moved[i].Bytes = m.Bytes
	}
	for s, extent := range f.Sides {
		if f.Summed>>s&1 == 1 {
			continue
		}
		for i, m := range f.Moved {
			of.Moved[i].Depends |= m.Depends >> s & 1 << len(of.Sides)
		}
		of.Sides = append(of.Sides, extent)
	}
	return of
}
