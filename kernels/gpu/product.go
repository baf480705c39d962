package gpu

import (
	"math"
	"math/bits"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Dense layers and convolutions on CUDA devices are one kernel, the product of
// kernels/cuda/product.h. Its operands say how their elements lie. This file fills in its
// parameter. product_cut.go cuts its work into tiles and splits. dense.go,
// convolution.go and convolution_pool.go make the operands of each operation.

// CUDADivision mirrors Division: x/divisor = x·multiplier >> shift for 0 ≤ x < 2^31.
type cudaDivision struct{ divisor, multiplier, shift uint32 }

// divideBy: with 2^l ≥ d the multiplier ⌈2^(31+l)/d⌉ is 2^(31+l)/d + e/d, 0 ≤ e < d ≤ 2^l. So
// x·multiplier/2^(31+l) exceeds x/d by less than x/2^31·1/d < 1/d, which is not enough to reach
// the next integer.
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

// The operation after the sum, as After of product.h, and the place of the ones, as Ones.
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

// partialBytes is the workspace for sums of splits, each m rows of n elements rounded up to 4.
func (f *productFamily) partialBytes(t dag.DType, math productMath, p *productParams) int64 {
	c := f.cut(t, math, p)
	if c.splits == 1 {
		return 0
	}
	return int64(c.splits) * int64(p.m) * int64((p.n+3)&^3) * t.SizeBytes()
}

// launches are the product p, with operands and result filled in, and the sum of its splits,
// which lie at work.
func (f *productFamily) launches(t dag.DType, math productMath, p productParams, work uint64) []offload.Launch {
	c := f.cut(t, math, &p)
	p.tilesN, p.steps, p.splits, p.partial = int32(c.tilesN), int32(c.steps), int32(c.splits), work
	p.storesFours(t)
	all := []offload.Launch{{
		Module: f.moduleOf(math), Symbol: f.symbol(t, math, c.tile),
		Grid: [3]uint32{uint32(c.tilesM * c.tilesN), uint32(c.splits), 1}, Block: [3]uint32{productThreads, 1, 1},
		Params: offload.Params(p),
	}}
	if c.splits == 1 {
		return all
	}
	p.tilesN = int32(dag.CeilDiv(int(p.n), 32))
	return append(all, offload.Launch{
		Module: "product", Symbol: "product_sum" + typeSuffix(t),
		Grid: [3]uint32{uint32(p.m * p.tilesN), 1, 1}, Block: [3]uint32{productThreads, 1, 1},
		Params: offload.Params(p),
	})
}

// moduleOf is the module with the kernels of a math. Modules are compiled when they are loaded,
// so those for tensor cores are separate.
func (f *productFamily) moduleOf(math productMath) string {
	if math.tensor {
		return f.module + "_tensor"
	}
	return f.module
}

// symbol is the kernel of a tile.
func (f *productFamily) symbol(t dag.DType, math productMath, tile productTile) string {
	return f.name + "_" + math.name + "_" + tile.String() + typeSuffix(t)
}

// typeSuffix ends the symbols of kernels for a type.
func typeSuffix(t dag.DType) string {
	if t == dag.Float64 {
		return "_f64"
	}
	return "_f32"
}

// productThreads is the threads of every block.
const productThreads = 256

// products are the products of an operation, one after the other. Each has the whole workspace.
type products func(*calls.DeviceCall) []productParams

// Variants are the variants of an operation with named parameters: "cuda", and if the family has
// such tiles "tf32" and "bf16" on tensor cores.
func (f *productFamily) Variants(of products, params ...string) []calls.Variant {
	var all []calls.Variant
	for _, math := range []productMath{mathSIMT, mathTF32, mathBF16} {
		if math.tensor && f.tensor == nil {
			break
		}
		launches := func(call *calls.DeviceCall) []offload.Launch {
			var all []offload.Launch
			for _, p := range of(call) {
				all = append(all, f.launches(call.Type, math, p, call.Work)...)
			}
			return all
		}
		workspace := func(s *calls.Spec) int64 {
			var most int64
			for _, p := range of(unplaced(s, params)) {
				most = max(most, f.partialBytes(s.Type, math, &p))
			}
			return most
		}
		v := math.variant(launches, workspace)
		v.Takes = f.takes
		all = append(all, v)
	}
	return all
}

// mostCounted bounds the extents and inner strides of products, which are counted in 32 bits,
// with one more tap of ones and columns rounded up to 4.
const mostCounted = math.MaxInt32 - 8

// variant is the variant for a math.
func (m productMath) variant(launches func(*calls.DeviceCall) []offload.Launch, workspace func(*calls.Spec) int64) calls.Variant {
	v := calls.Variant{Name: m.name, Code: calls.CUDACode, Doc: m.doc, Launches: launches, WorkspaceBytes: workspace, MostElements: mostCounted}
	if m.tensor {
		v.Types, v.Capability, v.FactorBits = []dag.DType{dag.Float32}, 80, m.bits
	}
	return v
}

// unplaced is a call of whole buffers at some address, for finding the extents of products and
// their operands. An operand at 0 does not exist.
func unplaced(s *calls.Spec, params []string) *calls.DeviceCall {
	call := &calls.DeviceCall{Type: s.Type}
	for _, o := range s.Operands {
		call.Args = append(call.Args, calls.BindDevice(1<<20, &dag.Buffer{Type: o.Type, Shape: o.Shape}, nil, o.Mode))
	}
	for _, name := range params {
		call.Params = append(call.Params, calls.Sliding.Value(s, name))
	}
	return call
}
