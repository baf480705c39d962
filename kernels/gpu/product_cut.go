package gpu

import (
	"strconv"

	"dahl/dag"
	"dahl/kernels/calls"
)

// productTile is a tile for which a product is compiled, as product_entries.h lists them: rows
// and columns of the result, and steps of the sum at a time.
type productTile struct{ rows, columns, depth int }

// resident is how many blocks a multiprocessor has at a time, by the bounds of product_entries.h
// on their registers.
func (t productTile) resident() int {
	if t == tensor128x128 {
		return 1
	}
	return 2
}

// String is the tile's name in symbols.
func (t productTile) String() string { return strconv.Itoa(t.rows) + "x" + strconv.Itoa(t.columns) }

var (
	tile128x64 = productTile{128, 64, 16}
	tile64x64  = productTile{64, 64, 16}
	tile128x32 = productTile{128, 32, 16}
	tile64x32  = productTile{64, 32, 32}
	tile128x16 = productTile{128, 16, 16}
	tile16x128 = productTile{16, 128, 16}
	tile16x32  = productTile{16, 32, 64}
	tile16x16  = productTile{16, 16, 64}
	wide16x32  = productTile{16, 32, 32} // of float64

	tensor128x128 = productTile{128, 128, 16}
	tensor64x64   = productTile{64, 64, 32}
	tensor128x32  = productTile{128, 32, 16}
	tensor32x32   = productTile{32, 32, 64}
)

// productFamily is the kernels of one kind of product: their module, and the beginning of their
// symbols.
type productFamily struct {
	module, name         string
	simt, simt64, tensor []productTile // of float32, of float64, and of tensor cores

	transposedA, transposedB bool // in memory, where both factors are matrices

	takes func(*calls.Spec) error // see Variant.Takes
}

// productMath is a way to multiply in a product. Its name is the variant's, also in symbols.
type productMath struct {
	name, doc string
	tensor    bool
	bits      int     // of a rounded factor
	pack      int     // steps of the sum in a word: the depth of some tiles is a multiple
	rate      float64 // multiplications per cycle and multiprocessor
}

var (
	mathSIMT = productMath{"cuda", "tiles in shared memory; sums cut where there are few tiles", false, 0, 1, 128}
	mathTF32 = productMath{"tf32", "as cuda, on tensor cores: factors rounded to 11 bits, sums in float32", true, calls.TF32Bits, 1, 512}
	mathBF16 = productMath{"bf16", "as cuda, on tensor cores: factors rounded to 8 bits, sums in float32", true, calls.BF16Bits, 2, 1024}
)

// tiles lists the tiles of a family for a type and a math.
func (f *productFamily) tiles(t dag.DType, m productMath) []productTile {
	switch {
	case m.tensor:
		return f.tensor
	case t == dag.Float64:
		return f.simt64
	}
	return f.simt
}

// depth is the steps of the sum that a tile takes at a time.
func (m productMath) depth(t productTile) int {
	if t != tensor64x64 {
		return t.depth * m.pack
	}
	return t.depth
}

// productCut is a cut of a product: its tile, how many tiles lie in each direction, into how many
// splits the sum falls, and how many tiles of the sum each split takes.
type productCut struct {
	tile           productTile
	tilesM, tilesN int
	splits, steps  int
}

// The cost of a cut is estimated in cycles of an H100. The machine is the same wherever the
// product runs, so the order of sums, and with it the bits, is the same too.
const (
	multiprocessors = 132
	loadLatency     = 600  // from a load of global memory to its value
	floatsPerCycle  = 6.5  // read by a multiprocessor from the second-level cache: 5.5 TB/s in all
	blockCycles     = 1000 // to start and end a block, without its stores
	sumCycles       = 3000 // to start product_sum after the product
	sumsPerCycle    = 300  // float sums of splits written and read back, by the whole device
)

// maxBlocks bounds splits: with as many blocks no part of the machine is idle for long.
const maxBlocks = 4 * multiprocessors

// cut chooses the tile and the number of splits with the least cost. Products that pool
// are not split.
func (f *productFamily) cut(t dag.DType, math productMath, p *productParams) productCut {
	var best productCut
	least := 0.0
	for _, tile := range f.tiles(t, math) {
		c := productCut{tile: tile, tilesM: dag.CeilDiv(int(p.m), tile.rows), tilesN: dag.CeilDiv(int(p.n), tile.columns)}
		depth := math.depth(tile)
		steps := max(1, dag.CeilDiv(int(p.k), depth))
		splits := max(1, min(steps, maxBlocks/(c.tilesM*c.tilesN)))
		if p.after == afterPool {
			splits = 1
		}
		for s := 1; s <= splits; s++ {
			c.steps = dag.CeilDiv(steps, s)
			c.splits = dag.CeilDiv(steps, c.steps)
			if cost := c.cycles(math, depth); best.splits == 0 || cost < least {
				best, least = c, cost
			}
		}
	}
	return best
}

// cycles estimates a cut. The blocks of a multiprocessor share its arithmetic and its way to the
// cache. While one block waits for its loads, another multiplies.
func (c *productCut) cycles(math productMath, depth int) float64 {
	rows, columns := float64(c.tile.rows), float64(c.tile.columns)
	rounds := dag.CeilDiv(c.tilesM*c.tilesN*c.splits, multiprocessors)
	resident := float64(min(rounds, c.tile.resident()))
	step := max(float64(depth)*max(rows*columns/math.rate, (rows+columns)/floatsPerCycle), loadLatency/resident)
	stores := rows * columns / floatsPerCycle
	total := float64(rounds) * (float64(c.steps)*step + stores + blockCycles/resident)
	if c.splits > 1 {
		total += sumCycles + float64(c.tilesM*c.tilesN*c.splits)*rows*columns/sumsPerCycle
	}
	return total
}
