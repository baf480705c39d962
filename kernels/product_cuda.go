package kernels

import (
	"math/bits"
	"strconv"

	"dahl/dag"
	"dahl/kernels/cuda"
)

// Dense layers and convolutions on CUDA devices are one kernel, the product of
// kernels/cuda/product.h, over operands that say how their elements lie. This file fills
// in its parameter and cuts its work into tiles and splits; what the operands of each
// operation are is in dense_cuda.go, conv2d_cuda.go and conv2d_nhwc_cuda.go.

// cudaDivision mirrors Division: x/divisor = x·multiplier >> shift for 0 ≤ x < 2^31.
type cudaDivision struct{ divisor, multiplier, shift uint32 }

// divideBy: with 2^l ≥ d the multiplier ⌈2^(31+l)/d⌉ is 2^(31+l)/d + e/d, 0 ≤ e < d ≤ 2^l, so
// that x·multiplier/2^(31+l) exceeds x/d by less than x/2^31·1/d < 1/d: not by enough to
// reach the next integer.
func divideBy(d int) cudaDivision {
	l := bits.Len(uint(d - 1))
	return cudaDivision{uint32(d), uint32((uint64(1)<<(31+l) + uint64(d) - 1) / uint64(d)), uint32(31 + l)}
}

// productOperand mirrors Operand of product_operand.h.
type productOperand struct {
	address          uint64
	outer            uint64 // may be negative: two's complement
	middle, inner    int32
	tap              [3]int32
	pixels, taps     int32
	rows, columns    cudaDivision
	extent1, extent2 cudaDivision
	step, direction  int32
	originRow        int32
	originColumn     int32
	height, width    int32
	ones             int32
	vector           int32
	pooled           int32
}

// productPooling mirrors Pooling.
type productPooling struct {
	index, outer        uint64
	middle, inner       int32
	rows, columns, size int32
	step                cudaDivision
}

// productParams mirrors ProductParams of product.h.
type productParams struct {
	a, b                                  productOperand
	pool                                  productPooling
	c, cOuter                             uint64
	other, otherOuter                     uint64
	cMiddle, cInner, cChannel             int32
	otherMiddle, otherInner, otherChannel int32
	rows, columns                         cudaDivision
	bias, biasVelocity                    uint64
	hyper                                 uint64
	momentum, weightDecay                 float64
	nesterov                              int32
	after, ones                           int32
	relu, add, addBias                    int32
	vector                                int32
	m, n, k                               int32
	tilesN                                int32
	steps, splits                         int32
	partial                               uint64
}

// What follows the sum, as After of product.h, and where the ones are, as Ones.
const (
	afterStore = iota
	afterDescend
	afterPool
)

const (
	noOnes = iota
	rowOfOnes
	columnOfOnes
)

// productTile is a tile that a product is compiled with, as product_entries.h lists them.
type productTile struct{ rows, columns, depth int }

func (t productTile) String() string { return strconv.Itoa(t.rows) + "x" + strconv.Itoa(t.columns) }

// productFamily is the kernels of one kind of product: modules and symbols begin with
// its name.
type productFamily struct {
	module, name string
	simt         []productTile
	simt64       []productTile
	tensor       []productTile
}

var (
	tile128x64 = productTile{128, 64, 16}
	tile64x64  = productTile{64, 64, 16}
	tile128x16 = productTile{128, 16, 16}
	tile16x128 = productTile{16, 128, 16}
	tile16x32  = productTile{16, 32, 64}
	wide16x32  = productTile{16, 32, 32} // of float64

	tensor128x128 = productTile{128, 128, 16}
	tensor64x64   = productTile{64, 64, 32}
	tensor128x32  = productTile{128, 32, 32}
	tensor32x32   = productTile{32, 32, 64}
)

// productMath is how a product multiplies; its name is the variant's, also in symbols.
type productMath struct {
	name, doc string
	tensor    bool
	pack      int // steps of the sum in a word: the depth of some tiles is a multiple
}

var (
	mathSIMT = productMath{"cuda", "tiles in shared memory; sums cut where there are few tiles", false, 1}
	mathTF32 = productMath{"tf32", "as cuda, on tensor cores: factors rounded to 11 bits, sums in float32", true, 1}
	mathBF16 = productMath{"bf16", "as cuda, on tensor cores: factors rounded to 8 bits, sums in float32", true, 2}
)

// tiles are those of a family for a type and a math.
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
	if t == tensor128x128 || t == tensor32x32 {
		return t.depth * m.pack
	}
	return t.depth
}

// productCut is how a product is cut: which tile, how many lie in each direction, and how
// many tiles of the sum each split takes.
type productCut struct {
	tile          productTile
	tilesM        int
	tilesN        int
	steps, splits int
}

// targetBlocks is how many blocks a product is cut into if its sum is long enough: two for
// each of the 132 multiprocessors of an H100. It is the same on every device, so that
// results are.
const targetBlocks = 264

// leastSteps is the tiles of the sum below which a split does not pay: reading a tile's worth
// of sums back takes about as long.
const leastSteps = 4

// cut chooses the tile with the least cost for a result of m×n and a sum of k, and splits
// the sum where there are few tiles. whole forbids splits.
func (f *productFamily) cut(t dag.DType, math productMath, m, n, k int, whole bool) productCut {
	var best productCut
	least := 0.0
	for _, tile := range f.tiles(t, math) {
		c := productCut{tile: tile, tilesM: ceilDiv(m, tile.rows), tilesN: ceilDiv(n, tile.columns), splits: 1}
		depth := math.depth(tile)
		c.steps = max(1, ceilDiv(k, depth))
		if blocks := c.tilesM * c.tilesN; !whole && blocks < targetBlocks && c.steps >= 2*leastSteps {
			splits := min(ceilDiv(targetBlocks, blocks), c.steps/leastSteps)
			c.steps = ceilDiv(c.steps, splits)
			c.splits = ceilDiv(ceilDiv(k, depth), c.steps)
		}
		if cost := c.cost(depth); best.tilesM == 0 || cost < least {
			best, least = c, cost
		}
	}
	return best
}

// cost compares tiles, in loads of a float from shared memory per multiprocessor: rounds
// of blocks, times the steps of each, times what a step reads (rows and columns of the
// tile) and multiplies (a quarter per element: four schedulers), and 64 steps' worth of
// rows for starting and ending a block.
func (c *productCut) cost(depth int) float64 {
	blocks := c.tilesM * c.tilesN * c.splits
	rounds := float64(ceilDiv(blocks, targetBlocks))
	perStep := float64(c.tile.rows+c.tile.columns) + float64(c.tile.rows*c.tile.columns)/4
	return rounds * (float64(c.steps*depth) + 64) * perStep
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// partialBytes is the workspace for sums of splits, each m rows of n elements rounded up to 4.
func (f *productFamily) partialBytes(t dag.DType, math productMath, p *productParams) int64 {
	c := f.cutOf(t, math, p)
	if c.splits == 1 {
		return 0
	}
	return int64(c.splits) * int64(p.m) * int64((p.n+3)&^3) * t.SizeBytes()
}

func (f *productFamily) cutOf(t dag.DType, math productMath, p *productParams) productCut {
	return f.cut(t, math, int(p.m), int(p.n), int(p.k), p.after == afterPool)
}

// launches are the product p, whose operands and result are filled in, and the sum of its
// splits, which lie at work.
func (f *productFamily) launches(t dag.DType, math productMath, p productParams, work uint64) []cuda.Launch {
	c := f.cutOf(t, math, &p)
	suffix := "_f32"
	if t == dag.Float64 {
		suffix = "_f64"
	}
	p.tilesN, p.steps, p.splits, p.partial = int32(c.tilesN), int32(c.steps), int32(c.splits), work
	p.storesFours(t)
	all := []cuda.Launch{{
		Module: f.module, Symbol: f.name + "_" + math.name + "_" + c.tile.String() + suffix,
		Grid: [3]uint32{uint32(c.tilesM * c.tilesN), uint32(c.splits), 1}, Block: [3]uint32{productThreads, 1, 1},
		Params: cuda.Params(p),
	}}
	if c.splits == 1 {
		return all
	}
	p.tilesN = int32(ceilDiv(int(p.n), 32))
	return append(all, cuda.Launch{
		Module: f.module, Symbol: f.module + "_sum" + suffix,
		Grid: [3]uint32{uint32(p.m * p.tilesN), 1, 1}, Block: [3]uint32{productThreads, 1, 1},
		Params: cuda.Params(p),
	})
}

// productThreads is the threads of every block.
const productThreads = 256

// products are the products that an operation consists of, one after the other; each has
// the whole workspace.
type products func(*DeviceCall) []productParams

// variants are those of an operation, whose parameters are named: "cuda", and if the family
// has such tiles "tf32" and "bf16" on tensor cores.
func (f *productFamily) variants(of products, params ...string) []Variant {
	var all []Variant
	for _, math := range []productMath{mathSIMT, mathTF32, mathBF16} {
		if math.tensor && f.tensor == nil {
			break
		}
		launches := func(call *DeviceCall) []cuda.Launch {
			var all []cuda.Launch
			for _, p := range of(call) {
				all = append(all, f.launches(call.Type, math, p, call.Work)...)
			}
			return all
		}
		workspace := func(s *Spec) int64 {
			var most int64
			for _, p := range of(unplaced(s, params)) {
				most = max(most, f.partialBytes(s.Type, math, &p))
			}
			return most
		}
		all = append(all, math.variant(launches, workspace))
	}
	return all
}

// variant is a variant of a math.
func (m productMath) variant(launches func(*DeviceCall) []cuda.Launch, workspace func(*Spec) int64) Variant {
	v := onCUDA(m.doc, launches, workspace)
	v.Name = m.name
	if m.tensor {
		v.Types, v.Capability = []dag.DType{dag.Float32}, 80
	}
	return v
}

// unplaced is a call of whole buffers at address 0, to learn the extents of products.
func unplaced(s *Spec, params []string) *DeviceCall {
	call := &DeviceCall{Type: s.Type}
	for _, o := range s.Operands {
		call.Args = append(call.Args, BindDevice(0, &dag.Buffer{Type: o.Type, Shape: o.Shape}, nil, o.Mode))
	}
	for _, name := range params {
		call.Params = append(call.Params, s.Param(name))
	}
	return call
}
