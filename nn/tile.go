package nn

import (
	"fmt"

	"dahl/dag"
)

const none = dag.None

// tile is a part of a layer's work: samples × channels (or features).
type tile struct{ samples, channels dag.Range }

func (t tile) String() string {
	return fmt.Sprintf("%d:%d,%d:%d", t.samples.Lo, t.samples.Hi, t.channels.Lo, t.channels.Hi)
}

// box is the tile in a tensor with the batch in front; nil if it is the whole tensor.
func (t tile) box(shape []int) dag.Box {
	return boxOf(shape, t.samples, t.channels)
}

// rows is the box of the tile's samples.
func (t tile) rows(shape []int) dag.Box { return boxOf(shape, t.samples) }

// boxOf restricts the first dimensions of a shape; nil if nothing is restricted.
func boxOf(shape []int, first ...dag.Range) dag.Box {
	box := make(dag.Box, len(shape))
	isWhole := true
	for d, e := range shape {
		box[d] = dag.Range{Lo: 0, Hi: e}
		if d < len(first) {
			isWhole = isWhole && first[d] == box[d]
			box[d] = first[d]
		}
	}
	if isWhole {
		return nil
	}
	return box
}

// eachRange visits [0, extent) in pieces of a size, the last one shorter if need be.
func eachRange(extent, size int, visit func(dag.Range)) {
	for lo := 0; lo < extent; lo += size {
		visit(dag.Range{Lo: lo, Hi: min(lo+size, extent)})
	}
}

// eachTile visits the tiles of a tensor, samples outermost.
func eachTile(shape []int, samples, channels int, visit func(tile)) {
	eachRange(shape[0], samples, func(s dag.Range) {
		eachRange(shape[1], channels, func(c dag.Range) { visit(tile{s, c}) })
	})
}

// eachTile visits a tensor in the tiles of the layer.
func (n *node) eachTile(shape []int, visit func(tile)) {
	eachTile(shape, n.tiles.SampleTile, n.tiles.OutputTile, visit)
}

// clip turns 0 into the whole extent and limits a tile to it.
func clip(size, extent int) int {
	if size == 0 || size > extent {
		return extent
	}
	return size
}

func parts(extent, size int) int { return (extent + size - 1) / size }

func writes(b dag.BufferID, box dag.Box) dag.Access  { return access(b, box, dag.Write) }
func reads(b dag.BufferID, box dag.Box) dag.Access   { return access(b, box, dag.Read) }
func updates(b dag.BufferID, box dag.Box) dag.Access { return access(b, box, dag.ReadWrite) }
func reduces(b dag.BufferID, box dag.Box) dag.Access { return access(b, box, dag.Reduce) }

func access(b dag.BufferID, box dag.Box, mode dag.Mode) dag.Access {
	return dag.Access{Region: dag.Region{Buffer: b, Box: box}, Mode: mode}
}
