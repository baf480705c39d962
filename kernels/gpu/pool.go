package gpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Pooling on a CUDA device, see cuda/pool.cu. A call with more elements than one launch takes is
// cut between samples.

// extentsParams mirrors Extents of cuda/pool.cu.
type extentsParams struct{ Extent1, Extent2, Extent3 cudaDivision }

// stridesParams mirrors Strides of cuda/pool.cu.
type stridesParams struct {
	Sample int64
	Inner  [3]int32
}

// stridesOf is the distances of a map.
func stridesOf(a *calls.DeviceArg) stridesParams {
	return stridesParams{Sample: int64(a.Stride[0]), Inner: [3]int32{int32(a.Stride[1]), int32(a.Stride[2]), int32(a.Stride[3])}}
}

// windowForm mirrors Window of cuda/pool.cu.
type windowForm struct{ Height, Width, Step, Top, Left int32 }

// windowFormOf returns the windows of a call of a pooling.
func windowFormOf(c *calls.DeviceCall) windowForm {
	return windowForm{Step: c.Param(1), Top: c.Param(2), Left: c.Param(3), Height: c.Param(4), Width: c.Param(5)}
}

// windowParams mirrors WindowParams of cuda/pool.cu.
type windowParams struct {
	Y, Index, X          uint64
	YStride, IndexStride stridesParams
	XStride              stridesParams
	XRow, XColumn        int32
	Extents              extentsParams
	Total                int32
	Window               windowForm
	Rows, Columns        int32
}

// OnCUDAPool is the variant "cuda" of a pooling.
func OnCUDAPool(doc string, launches func(*calls.DeviceCall) []offload.Launch) []calls.Variant {
	all := OnCUDA(doc, launches)
	all[0].Takes = takesEven
	return all
}

// PoolOnCUDA launches a kernel over the elements of y, with or without an index.
func PoolOnCUDA(symbol string, index bool) func(*calls.DeviceCall) []offload.Launch {
	return func(c *calls.DeviceCall) []offload.Launch {
		y, x := &c.Args[0], &c.Args[len(c.Args)-1]
		p := windowParams{
			Window: windowFormOf(c), Extents: extentsOf(y), XRow: int32(x.Stride[1]), XColumn: int32(x.Stride[2]),
			Rows: int32(x.Shape[1]), Columns: int32(x.Shape[2]),
		}
		p.YStride, p.XStride = stridesOf(y), stridesOf(x)
		p.XStride.Inner[0] *= p.Window.Step
		p.XStride.Inner[1] *= p.Window.Step
		if index {
			p.IndexStride = stridesOf(&c.Args[1])
		}
		return bySamples(y, c.Symbol(symbol), func(n int, total int32) []byte {
			p.Total = total
			p.Y, p.X = y.Sample(n), x.Sample(n)
			if index {
				p.Index = c.Args[1].Sample(n)
			}
			return offload.Params(p)
		})
	}
}

// spreadParams mirrors SpreadParams of cuda/pool.cu.
type spreadParams struct {
	Dx, Dy, Index         uint64
	Extents               extentsParams
	Step                  cudaDivision
	Total                 int32
	Window                windowForm
	Rows, Columns         int32
	DxStride              stridesParams
	DyStride, IndexStride stridesParams
}

// SpreadOnCUDA launches a kernel over the elements of dx, with or without an index.
func SpreadOnCUDA(symbol string, index bool) func(*calls.DeviceCall) []offload.Launch {
	return func(c *calls.DeviceCall) []offload.Launch {
		dx, dy := &c.Args[0], &c.Args[1]
		p := spreadParams{
			Window: windowFormOf(c), Step: divideBy(int(c.Params[1])), Extents: extentsOf(dx),
			Rows: int32(dy.Shape[1]), Columns: int32(dy.Shape[2]),
		}
		p.DxStride, p.DyStride = stridesOf(dx), stridesOf(dy)
		if index {
			p.IndexStride = stridesOf(&c.Args[2])
		}
		return bySamples(dx, c.Symbol(symbol), func(n int, total int32) []byte {
			p.Total = total
			p.Dx, p.Dy = dx.Sample(n), dy.Sample(n)
			if index {
				p.Index = c.Args[2].Sample(n)
			}
			return offload.Params(p)
		})
	}
}

// GlobalOnCUDA takes the average of a window that is the image.
func GlobalOnCUDA() []calls.Variant {
	return OnCUDA("an image per thread", func(c *calls.DeviceCall) []offload.Launch {
		window, x := *c, &c.Args[1]
		window.Params = []float64{1, 1, 0, 0, float64(x.Shape[1]), float64(x.Shape[2])}
		return PoolOnCUDA("avgpool", false)(&window)
	})
}

// globalParams mirrors GlobalParams of cuda/pool.cu.
type globalParams struct {
	Dx, Dy             uint64
	DxStride, DyStride stridesParams
	Extents            extentsParams
	Total              int32
	Pixels             float64
}

// GlobalDxOnCUDA is the variant of globalavgpool.nhwc.dx: dx = dy/pixels. Operands are dx of n×h×w×c and dy of n×1×1×c.
func GlobalDxOnCUDA() []calls.Variant {
	return OnCUDA("an element of dx per thread", func(c *calls.DeviceCall) []offload.Launch {
		dx, dy := &c.Args[0], &c.Args[1]
		p := globalParams{DxStride: stridesOf(dx), DyStride: stridesOf(dy), Extents: extentsOf(dx), Pixels: c.Params[0]}
		p.DyStride.Inner[0], p.DyStride.Inner[1] = 0, 0
		return bySamples(dx, c.Symbol("globalavgpool.dx"), func(n int, total int32) []byte {
			p.Total = total
			p.Dx, p.Dy = dx.Sample(n), dy.Sample(n)
			return offload.Params(p)
		})
	})
}

func extentsOf(a *calls.DeviceArg) extentsParams {
	return extentsParams{divideBy(a.Shape[1]), divideBy(a.Shape[2]), divideBy(a.Shape[3])}
}

// bySamples launches one thread for each element of a map. A launch takes as many samples
// as have no more than cudaMost elements. params are the parameters of the samples from n on.
func bySamples(a *calls.DeviceArg, symbol string, params func(n int, total int32) []byte) []offload.Launch {
	each := a.Shape[1] * a.Shape[2] * a.Shape[3]
	var all []offload.Launch
	for n, step := 0, max(1, cudaMost/each); n < a.Shape[0]; n += step {
		samples := min(step, a.Shape[0]-n)
		total := int32(samples * each)
		all = append(all, offload.Launch{
			Module: "pool", Symbol: symbol, Params: params(n, total),
			Block: [3]uint32{cudaThreads, 1, 1}, Grid: [3]uint32{blocksOf(int(total), cudaThreads), 1, 1},
		})
	}
	return all
}
