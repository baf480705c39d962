package kernels

import (
	"slices"
	"strings"

	"dahl/dag"
	"dahl/kernels/calls"
)

// Tile is a part of a call that is a call itself.
type Tile struct {
	// Boxes are the parts of the operands that the tile touches. None is empty: where all windows of the
	// tile lie outside an operand, the box is one element of the
	// dimension, and by the parameters windows lie before it. Nil means that the tile lacks an optional
	// operand. Rows of an image that no window reaches are in no box, not even
	// in the box of the whole call.
	Boxes  []dag.Box
	Params dag.Params
	// First says that the tile has the first index of every reduced loop. It may write
	// its results; the other tiles add theirs.
	First bool
	// Outside says that no window of the tile touches the tile's range of some dimension. The tile then adds nothing.
	Outside bool
}

// Loop is a dimension of the iteration space.
type Loop struct {
	Name   string
	Extent int
}

// Cuttable reports whether the operation may be cut along a dimension of the written operand. Then
// each other operand that must be written has the same dimension.
func (p *Space) Cuttable(dim int) bool {
	along := p.cutOf(0, dim)
	if p.isWhole(along) || p.inBlocks(along) || p.WholeBlocks(dim) && p.extent(along) == 1 {
		return false
	}
	for i := range p.kernel.Operands[:p.kernel.required()] {
		o := &p.kernel.Operands[i]
		if o.writes() && !slices.ContainsFunc(p.dims(i), func(d int) bool { return p.cutOf(i, d) == along }) {
			return false
		}
	}
	return true
}

// cutOf names the loop or the index that a cut along a dimension of an operand cuts: the loop over its blocks, if tiles have whole
// blocks.
func (p *Space) cutOf(i, dim int) string {
	if x := p.index(i, dim); p.wholeBlocks(x) {
		return x.Block
	}
	return p.text(i, dim)
}

// WholeBlocks reports whether tiles have whole blocks of a dimension of the written operand, such as the heads of an attention.
func (p *Space) WholeBlocks(dim int) bool { return p.wholeBlocks(p.index(0, dim)) }

func (p *Space) wholeBlocks(x *Subscript) bool {
	return x != nil && x.Block != "" && p.isWhole(x.Terms[0].Loop)
}

// Summed lists the loops that the written operand does not have.
func (p *Space) Summed() []Loop {
	var all []Loop
	for _, e := range p.extents {
		if e.dim >= 0 && e.index == nil && !p.has(0, e.name) {
			all = append(all, Loop{e.name, e.value})
		}
	}
	for _, name := range strings.Fields(p.kernel.Sums) {
		all = append(all, Loop{name, p.extent(name)})
	}
	return all
}

// Meets reports whether a summed loop meets a dimension of the written operand in windows: of a sum over such a loop, tiles may lie outside.
func (p *Space) Meets(loop string) bool {
	return slices.Contains(strings.Fields(p.kernel.Sums), loop)
}

// Reduced lists the summed loops along which the operation may be cut: the results of such tiles can be
// added up. There are none unless the operation may write and add, and with this
// call's parameters and operands adds, too.
func (p *Space) Reduced() []Loop {
	added := *p.spec
	added.Operands = slices.Clone(added.Operands)
	for i := range added.Operands {
		if len(p.kernel.Operands[i].Modes) > 1 {
			added.Operands[i].Mode = dag.ReadWrite
		}
	}
	if len(p.kernel.Operands[0].Modes) < 2 || p.kernel.Validate(&added) != nil {
		return nil
	}
	return slices.DeleteFunc(p.Summed(), func(l Loop) bool { return p.isWhole(l.Name) || p.inBlocks(l.Name) })
}

// inBlocks reports whether an operand has several blocks of a loop. Some of each block would be no box.
func (p *Space) inBlocks(loop string) bool {
	for _, indices := range p.operands {
		for i := range indices {
			if x := &indices[i]; x.Block != "" && x.Terms[0].Loop == loop && p.extent(x.Block) > 1 {
				return true
			}
		}
	}
	return false
}

// Block is the extent of the blocks of a dimension of the written operand: a tile has some of one,
// or whole ones. One block is the whole dimension.
func (p *Space) Block(dim int) int {
	if x := p.index(0, dim); x != nil && x.Block != "" {
		return p.extent(x.Terms[0].Loop)
	}
	return p.spec.Operands[0].Shape[dim]
}

// isWhole reports whether the table says that tiles have all of a loop.
func (p *Space) isWhole(loop string) bool {
	if strings.HasSuffix(loop, restText) {
		loop = restText
	}
	return slices.Contains(strings.Fields(p.kernel.Whole), loop)
}

func (o *Operand) writes() bool { return o.Modes[0] != dag.Read }

// dims are the dimensions of an operand that are not numbers.
func (p *Space) dims(i int) []int {
	var all []int
	for d := range p.spec.Operands[i].Shape {
		if x := p.index(i, d); x == nil || x.Extent == 0 {
			all = append(all, d)
		}
	}
	return all
}

// index is the index of a dimension of an operand. Nil means that the dimension belongs to "...".
func (p *Space) index(i, d int) *Subscript {
	indices := p.operands[i]
	if d >= len(indices) || indices[d].Text == restText {
		return nil
	}
	return &indices[d]
}

// text is the index as a text, by which equal ones are known.
func (p *Space) text(i, d int) string {
	if x := p.index(i, d); x != nil {
		return x.Text
	}
	return restName(len(p.spec.Operands[i].Shape) - d)
}

// has reports whether an operand depends on a loop.
func (p *Space) has(i int, loop string) bool {
	for d := range p.spec.Operands[i].Shape {
		if x := p.index(i, d); x == nil && p.text(i, d) == loop || x != nil && x.has(loop) {
			return true
		}
	}
	return false
}

// tiling is a tile while its ranges are found: ranges of loops by name, and ranges of the operands'
// indices by text.
type tiling struct {
	*Space
	ranges  []namedRange
	reduced map[string]dag.Range
	shifts  dag.Params // what is added to the offsets of the call
	outside bool
}

// namedRange is the range of a loop or an index. A tile has so few that a list finds them sooner than a map.
type namedRange struct {
	name string
	dag.Range
}

// rangeOf is the range of a name; false means that it has none yet.
func (t *tiling) rangeOf(name string) (dag.Range, bool) {
	for i := range t.ranges {
		if t.ranges[i].name == name {
			return t.ranges[i].Range, true
		}
	}
	return dag.Range{}, false
}

// set gives a name a range.
func (t *tiling) set(name string, r dag.Range) {
	for i := range t.ranges {
		if t.ranges[i].name == name {
			t.ranges[i].Range = r
			return
		}
	}
	t.ranges = append(t.ranges, namedRange{name, r})
}

// Tile writes a box of the first operand (nil means all of it) from ranges of loops
// that are reduced. A loop without a range is whole.
func (p *Space) Tile(written dag.Box, reduced map[string]dag.Range) *Tile {
	t := tiling{Space: p, ranges: make([]namedRange, 0, 16), reduced: reduced}
	for loop, r := range reduced {
		if e := p.bound(loop); e == nil || e.index == nil { // of an index see image
			t.set(loop, r)
		}
	}
	if written == nil {
		written = dag.Whole(p.spec.Operands[0].Shape)
	}
	for d, r := range written {
		t.write(d, r)
	}
	tile := &Tile{First: true, Boxes: make([]dag.Box, 0, len(p.spec.Operands))}
	for loop, r := range reduced {
		tile.First = tile.First && (r.Lo == 0 || !p.Meets(loop))
	}
	for _, e := range p.extents {
		if e.index == nil && !p.has(0, e.name) && e.name != restText && t.loop(e.name).Lo > 0 {
			tile.First = false
		}
	}
	dims := 0
	for i := range p.spec.Operands {
		dims += len(p.spec.Operands[i].Shape)
	}
	room := make(dag.Box, 0, dims) // of all boxes
	for i := range p.spec.Operands {
		var box dag.Box
		if t.keeps(i) {
			first := len(room)
			for d, e := range p.spec.Operands[i].Shape {
				room = append(room, t.box(i, d, e))
			}
			box = room[first:len(room):len(room)]
		}
		tile.Boxes = append(tile.Boxes, box)
	}
	t.begin()
	tile.Params, tile.Outside = t.params(), t.outside
	return tile
}

// begin shifts the parameter that says where a loop begins.
func (t *tiling) begin() {
	if param, loop, has := strings.Cut(t.kernel.Begins, "="); has {
		if lo := t.loop(loop).Lo; lo > 0 {
			t.shifts = append(t.shifts, dag.Param{Name: param, Value: float64(lo)})
		}
	}
}

// params are the parameters of the tile. Where nothing differs, the call's own are shared.
func (t *tiling) params() dag.Params {
	if len(t.shifts) == 0 && len(t.sizes) == 0 {
		return t.spec.Params
	}
	params := make(dag.Params, 0, len(t.spec.Params))
	for _, q := range t.spec.Params {
		shift, _ := t.shifts.Get(q.Name)
		if q.Value += shift; t.needs(&q) {
			params = append(params, q)
		}
	}
	return params
}

// needs sets a parameter to the number of blocks that the tile has. It reports whether the tile has
// the parameter: not if it is one that a call may leave out.
func (t *tiling) needs(q *dag.Param) bool {
	for _, z := range t.sizes {
		if r, cut := t.rangeOf(z.loop); cut && z.param == q.Name {
			q.Value = float64(r.Len())
			return q.Value > 1
		}
	}
	return true
}

// loop is the range of a loop.
func (t *tiling) loop(name string) dag.Range {
	if r, ok := t.rangeOf(name); ok {
		return r
	}
	return dag.Range{Lo: 0, Hi: t.extent(name)}
}

// reversed is a range of a loop counted from its end.
func (t *tiling) reversed(loop string, r dag.Range) dag.Range {
	n := t.extent(loop)
	return dag.Range{Lo: n - r.Hi, Hi: n - r.Lo}
}

// write sets the range of a dimension of the written operand, and the ranges of its loops.
func (t *tiling) write(d int, r dag.Range) {
	x := t.index(0, d)
	switch {
	case x == nil:
		t.set(t.text(0, d), r)
	case x.Extent > 0:
	case x.Reversed:
		t.set(x.Terms[0].Loop, t.reversed(x.Terms[0].Loop, r))
	case x.isLoop():
		t.set(x.Terms[0].Loop, t.inBlock(x, r))
	default:
		out := x.Terms[0].Loop
		windows := t.preimage(x, r)
		t.set(out, atLeastOne(windows, t.extent(out)))
		t.set(x.Text, r)
		t.shift(x, r, windows.Len() == 0)
	}
}

// inBlock notes the blocks of a range of a dimension, and returns the range within one.
func (t *tiling) inBlock(x *Subscript, r dag.Range) dag.Range {
	if x.Block == "" || t.extent(x.Block) == 1 {
		return r
	}
	n := t.extent(x.Terms[0].Loop)
	blocks := dag.Range{Lo: r.Lo / n, Hi: (r.Hi-1)/n + 1}
	t.set(x.Block, blocks)
	if blocks.Len() == 1 {
		return dag.Range{Lo: r.Lo - blocks.Lo*n, Hi: r.Hi - blocks.Lo*n}
	}
	if r.Lo%n != 0 || r.Hi%n != 0 {
		panic("kernels: a tile of " + t.kernel.Op + " has parts of several blocks")
	}
	return dag.Range{Lo: 0, Hi: n}
}

// ofBlocks is the range of a dimension that a loop has, perhaps in blocks.
func (t *tiling) ofBlocks(x *Subscript) dag.Range {
	r := t.loop(x.Terms[0].Loop)
	if x.Block == "" {
		return r
	}
	n, blocks := t.extent(x.Terms[0].Loop), t.loop(x.Block)
	return dag.Range{Lo: blocks.Lo*n + r.Lo, Hi: (blocks.Hi-1)*n + r.Hi}
}

// positions is the least and the greatest distance of an element of a window from its beginning.
func (t *tiling) positions(x *Subscript) (least, most int) {
	for i := range x.Terms[1:] {
		term := &x.Terms[1+i]
		r, f := t.loop(term.Loop), t.factor(term)
		least, most = least+f*r.Lo, most+f*(r.Hi-1)
	}
	return least, most
}

// preimage is the windows that touch a range of the dimension under them.
func (t *tiling) preimage(x *Subscript, r dag.Range) dag.Range {
	stride, before := t.factor(&x.Terms[0]), t.offset(x)
	least, most := t.positions(x)
	lo, hi := -calls.FloorDiv(most-r.Lo-before, stride), calls.FloorDiv(r.Hi-1+before-least, stride)+1
	return within(lo, hi, t.loop(x.Terms[0].Loop))
}

// image is the range of a dimension that windows touch, within the tile's own range of a sum. Windows outside the dimension are left out first, since
// there may be gaps between windows.
func (t *tiling) image(x *Subscript, extent int) dag.Range {
	whole, summed := t.reduced[x.Text]
	if !summed {
		whole = dag.Range{Lo: 0, Hi: extent}
	}
	r, stride, before := t.preimage(x, whole), t.factor(&x.Terms[0]), t.offset(x)
	if r.Len() == 0 {
		return r
	}
	least, most := t.positions(x)
	return within(r.Lo*stride+least-before, (r.Hi-1)*stride+most-before+1, whole)
}

// within is the part of lo to hi in a range; it may be empty.
func within(lo, hi int, r dag.Range) dag.Range {
	lo = min(max(lo, r.Lo), r.Hi)
	return dag.Range{Lo: lo, Hi: max(lo, min(hi, r.Hi))}
}

// atLeastOne is a range below an extent, with one index if it has none.
func atLeastOne(r dag.Range, extent int) dag.Range {
	if r.Len() > 0 {
		return r
	}
	lo := min(r.Lo, extent-1)
	return dag.Range{Lo: lo, Hi: lo + 1}
}

// shift notes how the offset of a subscript differs in the tile, which has the box r of the
// dimension. Where the windows touch nothing, they lie before the box, so far that the next one
// would not lie in it either.
func (t *tiling) shift(x *Subscript, r dag.Range, nothing bool) {
	by, span := r.Lo, 1
	for i := range x.Terms {
		l, f := t.loop(x.Terms[i].Loop), t.factor(&x.Terms[i])
		by -= f * l.Lo
		if i > 0 {
			span += f * (l.Len() - 1)
		}
	}
	if t.outside = t.outside || nothing; nothing {
		n, stride := t.loop(x.Terms[0].Loop).Len(), t.factor(&x.Terms[0])
		by = max(n*stride+1, (n-1)*stride+span) - t.offset(x)
	}
	t.shifts = append(t.shifts, dag.Param{Name: x.Offset, Value: float64(by)})
}

// keeps reports whether the tile has an operand. An optional one enters a sum once if it is read,
// and gets its value once if it is written. One without loops is a factor of all terms.
func (t *tiling) keeps(i int) bool {
	o := &t.kernel.Operands[i]
	if !o.Optional || !slices.ContainsFunc(t.extents, func(e extent) bool { return t.has(i, e.name) }) {
		return true
	}
	for _, e := range t.extents {
		if e.index != nil || e.name == restText || t.has(i, e.name) {
			continue
		}
		if o.writes() == t.has(0, e.name) && t.loop(e.name).Lo > 0 {
			return false
		}
	}
	return true
}

// box is the range of a dimension of an operand.
func (t *tiling) box(i, d, extent int) dag.Range {
	x := t.index(i, d)
	switch {
	case x == nil:
		return t.loop(t.text(i, d))
	case x.Extent > 0:
		return dag.Range{Lo: 0, Hi: extent}
	case x.Reversed:
		return t.reversed(x.Terms[0].Loop, t.loop(x.Terms[0].Loop))
	case x.isLoop():
		return t.ofBlocks(x)
	}
	r, ok := t.rangeOf(x.Text)
	if !ok {
		touched := t.image(x, extent)
		r = atLeastOne(touched, extent)
		t.set(x.Text, r)
		t.shift(x, r, touched.Len() == 0)
	}
	return r
}
