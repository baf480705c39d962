package gpu

import (
	"slices"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Building a batch on a CUDA device, see cuda/load.cu.

// loadParams mirrors LoadParams of cuda/load.cu.
type loadParams struct {
	Rows       rowsParams
	X, Samples stridedParams
	Index      uint64
	Divisor    float64
}

// LoadOnCUDA divides pixels.
func LoadOnCUDA(c *calls.DeviceCall) []offload.Launch {
	return load(c, c.Symbol("load"), c.Params[0])
}

// LoadRowsOnCUDA copies numbers, tokens and labels. Elements of four bytes are copied as float32.
func LoadRowsOnCUDA(c *calls.DeviceCall) []offload.Launch {
	symbol := "load_rows_f32"
	if c.Args[0].Type == dag.Float64 {
		symbol = "load_rows_f64"
	}
	return load(c, symbol, 1)
}

// load cuts the batch into launches of at most CUDAMost elements each.
func load(c *calls.DeviceCall, symbol string, divisor float64) []offload.Launch {
	x, samples := c.Args[0], c.Args[1]
	each := 1
	for _, e := range x.Shape[1:] {
		each *= e
	}
	var all []offload.Launch
	for n, step := 0, max(1, cudaMost/each); n < x.Shape[0]; n += step {
		part := x
		part.Addr, part.Shape = x.Sample(n), slices.Clone(x.Shape)
		part.Shape[0] = min(step, x.Shape[0]-n)
		all = append(all, elementwise([]*calls.DeviceArg{&part, &samples}, 1, func(r rowsParams, o []stridedParams) offload.Launch {
			return offload.Launch{Module: "load", Symbol: symbol, Params: offload.Params(loadParams{
				Rows: r, X: o[0], Samples: o[1], Index: c.Args[2].Sample(n), Divisor: divisor,
			})}
		})...)
	}
	return all
}

// loadNHWCParams mirrors LoadNHWCParams of cuda/load.cu.
type loadNHWCParams struct {
	X, Images, Index                 uint64
	Divisor                          float64
	XStride, ImageStride             [3]int64
	Samples, Rows, Columns, Channels int32
}

// LoadNHWCOnCUDA launches load.nhwc: it gathers images by an index, divides their pixels and puts channels last. Operands are x
// of n×h×w×c, images of N×c×h×w, and index of n.
func LoadNHWCOnCUDA(c *calls.DeviceCall) []offload.Launch {
	x, images := &c.Args[0], &c.Args[1]
	p := loadNHWCParams{
		X: x.Addr, Images: images.Addr, Index: c.Args[2].Addr, Divisor: c.Params[0],
		Samples: int32(x.Shape[0]), Rows: int32(x.Shape[1]), Columns: int32(x.Shape[2]), Channels: int32(x.Shape[3]),
	}
	for d := range 3 {
		p.XStride[d], p.ImageStride[d] = int64(x.Stride[d]), int64(images.Stride[d])
	}
	blocks := blocksOf(x.Shape[1]*x.Shape[2]*x.Shape[3], cudaThreads)
	return []offload.Launch{{
		Module: "load", Symbol: c.Symbol("load_nhwc"), Params: offload.Params(p),
		Block: [3]uint32{cudaThreads, 1, 1},
		Grid:  [3]uint32{blocks, min(blocksOf(x.Shape[0], loadSamples), layersOf(blocks)), 1},
	}}
}

// loadSamples is the samples that a thread of load_nhwc takes at a time.
const loadSamples = 4

// blocksOf is the number of blocks of a size for some elements.
func blocksOf(elements, each int) uint32 { return uint32((elements + each - 1) / each) }

// layersOf is how many layers of some blocks make cudaBlocks, which fill a device.
func layersOf(blocks uint32) uint32 { return (cudaBlocks + blocks - 1) / blocks }
