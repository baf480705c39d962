package gpu

import (
	"slices"

	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Building a batch on a CUDA device, see cuda/load.cu.

// loadParams mirrors LoadParams of cuda/load.cu.
type loadParams struct {
	Rows      rowsParams
	X, Images stridedParams
	Index     uint64
	Divisor   float64
}

// LoadOnCUDA takes as many samples at a time as have no more than cudaMost elements.
func LoadOnCUDA(c *calls.DeviceCall) []offload.Launch {
	x, images := c.Args[0], c.Args[1]
	each := 1
	for _, e := range x.Shape[1:] {
		each *= e
	}
	var all []offload.Launch
	for n, step := 0, max(1, cudaMost/each); n < x.Shape[0]; n += step {
		part := x
		part.Addr, part.Shape = x.Sample(n), slices.Clone(x.Shape)
		part.Shape[0] = min(step, x.Shape[0]-n)
		all = append(all, elementwise([]*calls.DeviceArg{&part, &images}, 1, func(r rowsParams, o []stridedParams) offload.Launch {
			return offload.Launch{Module: "load", Symbol: c.Symbol("load"), Params: offload.Params(loadParams{
				Rows: r, X: o[0], Images: o[1], Index: c.Args[2].Sample(n), Divisor: c.Params[0],
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

// loadLabelsParams mirrors LoadLabelsParams of cuda/load.cu.
type loadLabelsParams struct {
	Y, Labels, Index uint64
	Samples          int32
}

func LoadLabelsOnCUDA(c *calls.DeviceCall) []offload.Launch {
	n := c.Args[0].Shape[0]
	return []offload.Launch{{
		Module: "load", Symbol: c.Symbol("load_labels"),
		Params: offload.Params(loadLabelsParams{c.Args[0].Addr, c.Args[1].Addr, c.Args[2].Addr, int32(n)}),
		Block:  [3]uint32{cudaThreads, 1, 1}, Grid: [3]uint32{blocksOf(n, cudaThreads), 1, 1},
	}}
}

// loadSamples is the samples that a thread of load_nhwc takes at a time.
const loadSamples = 4

// blocksOf is the number of blocks of a size for some elements.
func blocksOf(elements, each int) uint32 { return uint32((elements + each - 1) / each) }

// layersOf is how many layers of some blocks make cudaBlocks, which fill a device.
func layersOf(blocks uint32) uint32 { return (cudaBlocks + blocks - 1) / blocks }
