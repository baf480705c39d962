package nn

import (
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
)

// Operand is a region of a buffer that an operation of a layer accesses. Each of its tasks accesses a part. The operation says whether it reads
// or writes it.
type Operand struct {
	dag.Region
	axes      []dag.Dimension // the dimension of the layer behind each dimension of the region
	parameter bool            // it is a parameter, or the gradient of one, to which tasks add
	of        int             // the extent of the last dimension of which the region has a part. 0 means that it has all.
	positions int             // of a sample, which its first dimension counts with the samples. 0 means that it counts samples alone.
}

// Part is some of the last dimension of an operand. It is cut into as many parts as all of the dimension would be.
func (n *Node) Part(o Operand, r dag.Range) Operand {
	shape := n.l.shapeOf(o)
	last := len(shape) - 1
	if o.Box = slices.Clone(o.Box); o.Box == nil {
		o.Box = dag.Whole(shape)
	}
	o.Box[last] = dag.Range{Lo: o.Box[last].Lo + r.Lo, Hi: o.Box[last].Lo + r.Hi}
	o.of = shape[last]
	return o
}

// Row is one row of an operand of two dimensions.
func (n *Node) Row(o Operand, row int) Operand {
	o.Box = dag.Box{{Lo: row, Hi: row + 1}, {Hi: n.l.shapeOf(o)[1]}}
	return o
}

// Positions is some positions of the sequences that an operand has.
func (n *Node) Positions(o Operand, r dag.Range) Operand {
	if o.Box = slices.Clone(o.Box); o.Box == nil {
		o.Box = dag.Whole(n.l.shapeOf(o))
	}
	o.Box[1] = r
	return o
}

// NoAxis stands for a dimension of an operand along which no layer is cut.
const NoAxis = dag.NumDimensions

// access is how an operation accesses its operand of this number.
func (o *Operand) access(k *kernels.Kernel, operand int) dag.Access {
	a := dag.Access{Region: o.Region}
	if operand < len(k.Operands) {
		modes := k.Operands[operand].Modes
		if a.Mode = modes[0]; o.parameter && len(modes) > 1 {
			a.Mode = dag.Reduce
		}
	}
	return a
}

// side is a dimension along which an operation is cut: a dimension of the written operand, or a loop of a sum.
type side struct {
	along        dag.Dimension
	dim          int    // of the written operand; -1: summed over
	loop         string // over which it sums
	extent, size int
	cuttable     bool
	block        int        // a part has some of one block of this extent, or whole ones
	whole        bool       // a part has no part of a block
	of           int        // the extent that the layer's cut is for, if the side is a part of it; else 0
	meets        bool       // the loop meets a side of the written operand in windows, so that some parts of both have nothing to sum
	shares       []dag.Part // of devices, whose numbers add up over all sides; nil means that one device has all

	among int // how many devices the shares are for

	positions int  // of samples: how many of each the dimension counts; 0 is one
	within    bool // of positions: the dimension counts these of each sample
}

// range of a dimension or a loop, of which the side before has a range, for a part of the side. A part of positions is one of a single sample.
func (s *side) rangeIn(of, part dag.Range) dag.Range {
	switch {
	case s.positions > 0:
		return dag.Range{Lo: part.Lo * s.positions, Hi: part.Hi * s.positions}
	case s.within:
		return dag.Range{Lo: of.Lo + part.Lo, Hi: of.Hi - s.extent + part.Hi}
	}
	return part
}

func (s *side) isCut() bool { return s.size < s.extent }

// resize gives the tiles of a side their size by a cut.
func (s *side) resize(cut *dag.Cut) {
	if s.cuttable {
		size := clip(*cut.Of(s.along), max(s.extent, s.of))
		if s.of > 0 {
			size = dag.CeilDiv(s.extent, dag.CeilDiv(s.of, size))
		}
		if s.shares != nil {
			size = min(size, slices.MaxFunc(s.shares, func(a, b dag.Part) int { return a.Len() - b.Len() }).Len())
		}
		if s.size = size; s.whole {
			s.size = max(s.size, s.block)
		}
	}
}

// summed are the dimensions of a layer behind the loops over which operations sum.
var summed = map[string]dag.Dimension{
	"n": dag.AlongSamples, "f": dag.AlongOutputs, "c": dag.AlongInputs,
	"oh": dag.AlongRows, "ph": dag.AlongRows, "ow": dag.AlongColumns, "pw": dag.AlongColumns,
	"t+i-past": dag.AlongColumns, "t": dag.AlongColumns, // of an attention: keys of queries, queries of keys
}

// cutOf is which numbers of a layer cut an operation. All tiles of the layer are stated.
type cutOf func(dag.LayerLowering) dag.Cut

// tiles adds the tasks of an operation. A part with nothing to sum has no accesses, and is no task. The operation says by its statement ([kernels.Space]) which part of each operand
// a tile touches, halos among them, so that no layer has code for a particular cut. If a summed dimension is cut, tasks
// add to the first operand; [dag.Expand] gives their sums an order. tiles returns along which
// sides the operation is or may be cut.
func (l *lowerer) tiles(n *Node, step, op string, params dag.Params, cuts cutOf, operands ...Operand) []side {
	o := &tiled{lowerer: l, n: n, step: step, whole: dag.Task{Op: op, Params: params}, operands: slices.Clone(operands)}
	if err := o.find(); err != nil {
		n.Fail(fmt.Errorf("operation %s: %w", op, err))
		return nil
	}
	cut := cuts(n.tiles)
	sides := l.sidesOf(n.Name, o.space, &cut, o.operands)
	if sumsParts(sides) {
		l.b.Accumulate(o.operands[0].Buffer, cut.Accumulators)
	}
	if l.note(n, sides, cuts, o.part); l.opt.dry {
		whole := o.part(sides, wholeOf(sides))
		l.vary(&whole)
	} else if r := l.ringOf(n, step, o.kernel, sides); r != nil {
		o.addAround(r, sides)
	} else {
		o.add(sides)
	}
	return sides
}

// tiled is an operation of a layer that becomes tasks.
type tiled struct {
	*lowerer
	n        *Node
	step     string
	kernel   *kernels.Kernel
	space    *kernels.Space
	whole    dag.Task // without parts
	operands []Operand
}

// find looks the operation up, and how its operands depend on each other.
func (o *tiled) find() (err error) {
	k, known := o.m.kernels.Lookup(o.whole.Op)
	if o.kernel = k; known {
		for i := range min(len(o.operands), len(k.Operands)) {
			o.operands[i] = o.byPosition(o.operands[i], k.Operands[i].Dims)
		}
		for i := range o.operands {
			o.whole.Accesses = append(o.whole.Accesses, o.operands[i].access(k, i))
		}
	}
	o.whole.Type = o.arithmetic(o.whole.Accesses)
	o.space, err = o.m.kernels.SpaceOf(calls.SpecOf(&o.whole, o.b.BufferAt))
	return err
}

// part is the task with a range of each side.
func (o *tiled) part(sides []side, ranges []dag.Range) dag.Task {
	return o.partBy(o.space.Tile, sides, ranges)
}

// partBy is the task with the tile that a function gives for the written box and the ranges of sums.
func (o *tiled) partBy(tileOf func(dag.Box, map[string]dag.Range) *kernels.Tile, sides []side, ranges []dag.Range) dag.Task {
	box, sums := dag.Whole(o.shapeOf(o.operands[0])), map[string]dag.Range{}
	for i, s := range sides {
		if s.dim >= 0 {
			box[s.dim] = s.rangeIn(box[s.dim], ranges[i])
		} else if s.isCut() {
			of, known := sums[s.loop]
			if !known {
				of = dag.Range{Hi: s.extent}
			}
			sums[s.loop] = s.rangeIn(of, ranges[i])
		}
	}
	tile, t := tileOf(box, sums), o.whole
	t.Params, t.Accesses = tile.Params, make([]dag.Access, 0, len(o.whole.Accesses))
	if tile.Outside && meets(sides) {
		return t
	}
	for i, a := range o.whole.Accesses {
		if tile.Boxes[i] != nil {
			if a.Box = o.within(a.Region, tile.Boxes[i]); sumsParts(sides) && len(o.kernel.Operands[i].Modes) > 1 {
				a.Mode, t.Merge = dag.Reduce, o.kernel.Merge
			}
			t.Accesses = append(t.Accesses, a)
		}
	}
	phase, _, _ := strings.Cut(o.step, ".")
	t.Name = o.n.Name + "." + o.step + "[" + o.partText(sides, ranges, o.operands[0].axes) + "]"
	t.Labels = labelsOf(o.n.Name, phase)
	return t
}

// add adds the tasks of all parts.
func (o *tiled) add(sides []side) {
	tiler := kernels.Tiler{Space: o.space}
	eachPart(sides, func(ranges []dag.Range) {
		if t := o.partBy(tiler.Tile, sides, ranges); len(t.Accesses) > 0 {
			device, _ := o.seat(sides, ranges)
			o.lowerer.add(o.onDevice(t, device))
		}
	})
	if s := o.sharing(o.n.Name); s != nil && s.Along == dag.AlongRows {
		eachPart(sides, func(ranges []dag.Range) {
			if device, _ := o.seat(sides, ranges); device >= 0 {
				o.latest[device], _ = o.b.TaskNamed(o.part(sides, ranges).Name)
			}
		})
	}
}

// addAround adds them in the order of a ring.
func (o *tiled) addAround(r *ring, sides []side) {
	var parts [][]dag.Range
	eachPart(sides, func(ranges []dag.Range) { parts = append(parts, slices.Clone(ranges)) })
	r.order(parts)
	for _, ranges := range parts {
		if t := o.part(sides, ranges); len(t.Accesses) > 0 {
			device, _ := o.seat(sides, ranges)
			r.add(o.onDevice(t, device), device, o.operands)
		}
	}
}

// sumsParts reports whether an operation is cut along a side over which it sums.
func sumsParts(sides []side) bool {
	return slices.ContainsFunc(sides, func(s side) bool { return s.dim < 0 && s.isCut() })
}

// meets reports whether an operation is cut such that parts may have nothing to sum.
func meets(sides []side) bool {
	return slices.ContainsFunc(sides, func(s side) bool { return s.meets && s.isCut() })
}

// sidesOf lists the dimensions along which an operation is or may be cut, in the order of [dag.Dimension]. Its tasks have all of
// a dimension along which it cannot be cut, such as the classes of a maximum.
func (l *lowerer) sidesOf(layer string, space *kernels.Space, cut *dag.Cut, operands []Operand) []side {
	written := operands[0]
	shape, positions := l.shapeOf(written), 0
	for i := range operands {
		positions = max(positions, operands[i].positions)
	}
	var sides []side
	add := func(s side, can bool) {
		if s.along == dag.AlongSamples && positions > 0 {
			rows := side{along: dag.AlongRows, dim: s.dim, loop: s.loop, extent: positions, within: true}
			s.positions, s.extent = positions, s.extent/positions
			rows.cuttable, rows.size, rows.block = can, rows.extent, rows.extent
			sides = append(sides, rows)
		}
		s.cuttable, s.size, s.block = can, s.extent, s.extent
		if s.dim >= 0 && s.positions == 0 {
			s.block, s.whole = space.Block(s.dim), space.WholeBlocks(s.dim)
		}
		sides = append(sides, s)
	}
	for dim, along := range written.axes {
		if along != NoAxis {
			s := side{along: along, dim: dim, extent: shape[dim]}
			if dim == len(shape)-1 {
				s.of = written.of
			}
			add(s, space.Cuttable(dim))
		}
	}
	reduced := space.Reduced()
	for _, loop := range space.Summed() {
		if along, ok := summed[loop.Name]; ok {
			add(side{along: along, dim: -1, loop: loop.Name, extent: loop.Extent, meets: space.Meets(loop.Name)}, slices.Contains(reduced, loop))
		}
	}
	slices.SortFunc(sides, func(a, b side) int { return int(a.along - b.along) })
	l.shareSides(layer, sides)
	for i := range sides {
		sides[i].resize(cut)
	}
	return sides
}

// eachPart visits the parts of all sides, the first one outermost.
func eachPart(sides []side, visit func([]dag.Range)) {
	ranges := make([]dag.Range, len(sides))
	var along func(i int)
	along = func(i int) {
		if i == len(sides) {
			visit(ranges)
			return
		}
		sides[i].each(func(r dag.Range) {
			ranges[i] = r
			along(i + 1)
		})
	}
	along(0)
}

// each visits the parts of a side. Of the groups of a convolution a part has as many as fit its size,
// or some channels of one.
func (s *side) each(visit func(dag.Range)) {
	shares := s.shares
	if shares == nil {
		shares = []dag.Part{{Range: dag.Range{Hi: s.extent}}}
	}
	for _, r := range shares {
		for lo, hi := r.Lo, 0; lo < r.Hi; lo = hi {
			hi = min(lo+s.size, r.Hi)
			if end := lo - lo%s.block + s.block; hi > end {
				hi -= hi % s.block
				if hi > end && lo%s.block > 0 {
					hi = end
				}
			}
			visit(dag.Range{Lo: lo, Hi: hi})
		}
	}
}

// unit is the least extent of a part.
func (s *side) unit() int {
	if s.whole {
		return s.block
	}
	return 1
}

// partText names a part by its samples, its channels and what else is cut.
func (l *lowerer) partText(sides []side, ranges []dag.Range, axes []dag.Dimension) string {
	channels := dag.AlongInputs
	if slices.Contains(axes, dag.AlongOutputs) {
		channels = dag.AlongOutputs
	}
	samples, rest := l.now.samples, ""
	var of dag.Range
	for i := range sides {
		switch s := &sides[i]; {
		case s.along == dag.AlongSamples:
			samples = l.inBatch(ranges[i])
		case s.along == channels:
			of = ranges[i]
		case s.isCut():
			rest += "," + s.along.String() + "=" + rangeText(ranges[i])
		}
	}
	return rangeText(samples) + "," + rangeText(of) + rest
}

// byPosition is the operand as an operation has it. Where the statement has one dimension less, the operation takes rows: the positions of all
// samples are its first dimension.
func (l *lowerer) byPosition(o Operand, dims string) Operand {
	fields, shape := strings.Fields(dims), l.shapeOf(o)
	b := l.b.BufferAt(o.Buffer)
	if strings.Contains(dims, "...") || len(shape) != len(fields)+1 || o.parameter || len(o.axes) < 2 || shape[1] != b.Shape[1] {
		return o
	}
	id := l.asRows(o.Buffer, append([]int{b.Shape[0] * b.Shape[1]}, b.Shape[2:]...))
	rows := Operand{Region: dag.Region{Buffer: id}, positions: shape[1], axes: slices.Concat(o.axes[:1], o.axes[2:])}
	if o.Box != nil {
		first := dag.Range{Lo: o.Box[0].Lo * shape[1], Hi: o.Box[0].Hi * shape[1]}
		rows.Box = append(dag.Box{first}, o.Box[2:]...)
	}
	return rows
}

// shapeOf is the extents of an operand.
func (l *lowerer) shapeOf(o Operand) []int {
	if o.Box == nil {
		return l.b.BufferAt(o.Buffer).Shape
	}
	shape := make([]int, len(o.Box))
	for d, r := range o.Box {
		shape[d] = r.Len()
	}
	return shape
}

// within turns a box of a region into one of its buffer; nil stands for the whole buffer.
func (l *lowerer) within(of dag.Region, box dag.Box) dag.Box {
	for d := range of.Box {
		box[d].Lo += of.Box[d].Lo
		box[d].Hi += of.Box[d].Lo
	}
	if box.IsWhole(l.b.BufferAt(of.Buffer).Shape) {
		return nil
	}
	return box
}
