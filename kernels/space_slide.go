package kernels

import (
	"maps"
	"slices"
	"strings"

	"dahl/dag"
)

// Tiler makes tiles of a call one after the other. Where devices share samples, most differ from the one before by where they begin: then
// only their boxes are moved.
type Tiler struct {
	*Space
	tile    Tile // the one before, with boxes of its own
	written dag.Box
	reduced map[string]dag.Range
	slides  map[string][]operandDim // by loop, as far as it has been asked for; nil means that it does not slide
	moves   []move
}

// operandDim is a dimension of an operand.
type operandDim struct{ operand, dim int }

// move is the distance of ranges along some dimensions from their places in the tile before.
type move struct {
	dims []operandDim
	by   int
}

// Tile is [Space.Tile].
func (t *Tiler) Tile(written dag.Box, reduced map[string]dag.Range) *Tile {
	if t.isLike(written, reduced) {
		tile := t.tile.copied()
		for _, m := range t.moves {
			for _, at := range m.dims {
				if box := tile.Boxes[at.operand]; box != nil {
					box[at.dim].Lo, box[at.dim].Hi = box[at.dim].Lo+m.by, box[at.dim].Hi+m.by
				}
			}
		}
		return tile
	}
	tile := t.Space.Tile(written, reduced)
	t.tile, t.written, t.reduced = *tile.copied(), slices.Clone(written), maps.Clone(reduced)
	return tile
}

// copied is a tile with boxes of its own.
func (t *Tile) copied() *Tile {
	of, dims := *t, 0
	for _, box := range t.Boxes {
		dims += len(box)
	}
	room := make(dag.Box, 0, dims)
	of.Boxes = slices.Clone(t.Boxes)
	for i, box := range t.Boxes {
		if box != nil {
			first := len(room)
			room = append(room, box...)
			of.Boxes[i] = room[first:len(room):len(room)]
		}
	}
	return &of
}

// isLike reports whether a tile differs from the one before only by the moves that it finds.
func (t *Tiler) isLike(written dag.Box, reduced map[string]dag.Range) bool {
	if t.written == nil || len(written) != len(t.written) || len(reduced) != len(t.reduced) {
		return false
	}
	t.moves = t.moves[:0]
	for d, r := range written {
		if r != t.written[d] && !t.slidesTo(t.text(0, d), t.written[d], r) {
			return false
		}
	}
	for loop, r := range reduced {
		if was, known := t.reduced[loop]; !known || r != was && !t.slidesTo(loop, was, r) {
			return false
		}
	}
	return true
}

// slidesTo adds the move of a loop from one range to another one. It reports whether nothing else differs.
func (t *Tiler) slidesTo(loop string, from, to dag.Range) bool {
	if from.Len() != to.Len() || from.Lo == 0 || to.Lo == 0 { // the first tile may have other operands
		return false
	}
	dims, known := t.slides[loop]
	if !known {
		dims = t.slide(loop)
		if t.slides == nil {
			t.slides = map[string][]operandDim{}
		}
		t.slides[loop] = dims
	}
	t.moves = append(t.moves, move{dims, to.Lo - from.Lo})
	return dims != nil
}

// slide lists the dimensions of operands that are a loop by itself. Nil means that an operand or a parameter depends on the loop in another way.
func (p *Space) slide(loop string) (dims []operandDim) {
	_, begins, _ := strings.Cut(p.kernel.Begins, "=")
	if begins == loop || p.Meets(loop) || slices.ContainsFunc(p.sizes, func(z size) bool { return z.loop == loop }) {
		return nil
	}
	for i := range p.spec.Operands {
		for d := range p.spec.Operands[i].Shape {
			switch x := p.index(i, d); {
			case p.text(i, d) == loop && (x == nil || x.isLoop() && !x.Reversed && x.Block == ""):
				dims = append(dims, operandDim{i, d})
			case x != nil && x.has(loop):
				return nil
			}
		}
	}
	return dims
}
