package gpu

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Attention by tiles on a CUDA device, see cuda/attention_tiles.h. Symbols have the name of the variant and the features for which a kernel is
// made. Heads of other extents have zeros behind theirs.

// mostOfHead is the most features of a head that tiles are made for.
const mostOfHead = 128

// attentionTile mirrors Shape of cuda/attention_tile.h.
type attentionTile struct {
	features int // of a head, or more
	warps    int // of a block, with 16 rows each
	columns  int // positions of the operands that come by, in one stage
}

// attentionTileOf is the tile for heads of some features.
func attentionTileOf(width int32) attentionTile {
	switch {
	case width <= 32:
		return attentionTile{32, 4, 32}
	case width <= 64:
		return attentionTile{64, 4, 32}
	}
	return attentionTile{mostOfHead, 2, 16}
}

func (t attentionTile) rows() int { return 16 * t.warps }

// sharedBytes is the room of some operands of the block's rows, and of two stages of two operands that come by.
func (t attentionTile) sharedBytes(own int) uint32 {
	return uint32((own*t.rows() + 4*t.columns) * (t.features + 8) * 4)
}

// byTiles are the variants by tiles of float32: in its own arithmetic, and on tensor cores.
func (a attentionPass) byTiles() (all []calls.Variant) {
	for _, of := range []struct {
		name, module, doc string
		bits              int
	}{
		{"tiled", "attention_tiled", "tiles of queries against tiles of keys, which are copied while others are used", 0},
		{"tf32", "attention_tensor", "as tiled, on tensor cores: factors rounded to 11 bits, sums in float32", calls.TF32Bits},
		{"bf16", "attention_tensor", "as tiled, on tensor cores: factors rounded to 8 bits, sums in float32", calls.BF16Bits},
	} {
		all = append(all, calls.Variant{
			Name: of.name, Code: calls.CUDACode, Doc: of.doc, Types: []dag.DType{dag.Float32}, Capability: 80, FactorBits: of.bits, Blocks: true,
			Takes:    takesHeads(a.q + 1),
			Launches: func(c *calls.DeviceCall) []offload.Launch { return a.tileLaunches(c, of.module, of.name) },
		})
	}
	return all
}

// tileLaunches have a block for each tile of rows of results.
func (a attentionPass) tileLaunches(c *calls.DeviceCall, module, name string) []offload.Launch {
	p, heads, positions := a.params(c)
	p.Vector = flag(a.isVector(c, p.Width))
	tile, own := attentionTileOf(p.Width), 2
	if a.symbol == "attention" { // the forward pass keeps the queries alone
		own = 1
	}
	tiles, threads := heads*dag.CeilDiv(positions, tile.rows()), 32*tile.warps
	return bySampleOfHeads(c, a.operands, p, threads*tiles, func(_ *attentionParams, samples int) offload.Launch {
		return offload.Launch{
			Module: module, Symbol: c.Symbol(fmt.Sprintf("%s.%s.%d", a.symbol, name, tile.features)), SharedBytes: tile.sharedBytes(own),
			Block: [3]uint32{uint32(threads), 1, 1}, Grid: [3]uint32{uint32(samples * tiles), 1, 1},
		}
	})
}

// isVector reports whether the features of all heads lie at multiples of 16 bytes.
func (a attentionPass) isVector(c *calls.DeviceCall, width int32) bool {
	is := width%4 == 0
	for i, of := range a.operands {
		if f, _ := of(new(attentionParams)); f != nil {
			x := &c.Args[i]
			is = is && x.Addr%16 == 0 && x.Stride[0]%4 == 0 && x.Stride[1]%4 == 0
		}
	}
	return is
}

var headOptions = calls.ParseOptions("heads=1")

// takesHeads refuses heads of more features than a tile has. k is the operand of the keys.
func takesHeads(k int) func(*calls.Spec) error {
	return func(s *calls.Spec) error {
		if width := s.Operands[k].Shape[2] / int(headOptions.Value(s, "heads")); width > mostOfHead {
			return fmt.Errorf("heads of %d features, tiles have at most %d", width, mostOfHead)
		}
		return nil
	}
}
