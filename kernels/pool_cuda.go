package kernels

import "dahl/kernels/cuda"

// Pooling on a CUDA device, see cuda/pool.cu. A call with more elements than one launch takes is
// cut between samples.

// extentsParams mirrors Extents of cuda/pool.cu.
type extentsParams struct{ Extent1, Extent2, Extent3 cudaDivision }

// stridesParams mirrors Strides of cuda/pool.cu.
type stridesParams struct {
	Sample int64
	Inner  [3]int32
}

// rowMajor is the order of the dimensions within a sample.
var rowMajor = [3]int{1, 2, 3}

// stridesOf is the distances of a map, with the dimensions within a sample in some order.
func stridesOf(a *DeviceArg, order [3]int) stridesParams {
	s := stridesParams{Sample: int64(a.Stride[0])}
	for i, d := range order {
		s.Inner[i] = int32(a.Stride[d])
	}
	return s
}

// windowForm mirrors Window of cuda/pool.cu.
type windowForm struct{ Height, Width, Step, Top, Left, ChannelsLast int32 }

// windowFormOf is that of a call of a pooling. rows is the dimension of rows, followed by columns:
// 2, or 1 where channels are last.
func windowFormOf(c *DeviceCall, rows int) windowForm {
	w := windowForm{Step: c.param(1), Top: c.param(2), Left: c.param(3), Height: c.param(4), Width: c.param(5)}
	if rows == 1 {
		w.ChannelsLast = 1
	}
	return w
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

// onCUDAPool is the variant "cuda" of a pooling.
func onCUDAPool(doc string, launches func(*DeviceCall) []cuda.Launch) []Variant {
	all := onCUDA(doc, launches)
	all[0].Takes = takesEven
	return all
}

// poolOnCUDA launches a kernel over the elements of y, with or without an index. rows is as in
// windowFormOf.
func poolOnCUDA(symbol string, index bool, rows int) func(*DeviceCall) []cuda.Launch {
	return func(c *DeviceCall) []cuda.Launch {
		y, x := &c.Args[0], &c.Args[len(c.Args)-1]
		p := windowParams{
			Window: windowFormOf(c, rows), Extents: extentsOf(y), XRow: int32(x.Stride[rows]), XColumn: int32(x.Stride[rows+1]),
			Rows: int32(x.Shape[rows]), Columns: int32(x.Shape[rows+1]),
		}
		p.YStride, p.XStride = stridesOf(y, rowMajor), stridesOf(x, rowMajor)
		p.XStride.Inner[rows-1] *= p.Window.Step
		p.XStride.Inner[rows] *= p.Window.Step
		if index {
			p.IndexStride = stridesOf(&c.Args[1], rowMajor)
		}
		return bySamples(y, c.symbol(symbol), func(n int, total int32) []byte {
			p.Total = total
			p.Y, p.X = y.sample(n), x.sample(n)
			if index {
				p.Index = c.Args[1].sample(n)
			}
			return cuda.Params(p)
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

// spreadOnCUDA launches a kernel over the elements of dx, with or without an index. rows is
// as in windowFormOf.
func spreadOnCUDA(symbol string, index bool, rows int) func(*DeviceCall) []cuda.Launch {
	return func(c *DeviceCall) []cuda.Launch {
		dx, dy := &c.Args[0], &c.Args[1]
		order := rowMajor // channels, rows, columns
		if rows == 1 {
			order = [3]int{3, 1, 2}
		}
		p := spreadParams{
			Window: windowFormOf(c, rows), Step: divideBy(int(c.Params[1])), Extents: extentsOf(dx),
			Rows: int32(dy.Shape[rows]), Columns: int32(dy.Shape[rows+1]),
		}
		p.DxStride, p.DyStride = stridesOf(dx, rowMajor), stridesOf(dy, order)
		if index {
			p.IndexStride = stridesOf(&c.Args[2], order)
		}
		return bySamples(dx, c.symbol(symbol), func(n int, total int32) []byte {
			p.Total = total
			p.Dx, p.Dy = dx.sample(n), dy.sample(n)
			if index {
				p.Index = c.Args[2].sample(n)
			}
			return cuda.Params(p)
		})
	}
}

// globalOnCUDA takes the average of a window that is the image. rows is as in windowFormOf.
func globalOnCUDA(rows int) []Variant {
	return onCUDA("an image per thread", func(c *DeviceCall) []cuda.Launch {
		window, x := *c, &c.Args[1]
		window.Params = []float64{1, 1, 0, 0, float64(x.Shape[rows]), float64(x.Shape[rows+1])}
		return poolOnCUDA("avgpool", false, rows)(&window)
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

func globalDxOnCUDA(rows int) []Variant {
	return onCUDA("an element of dx per thread", func(c *DeviceCall) []cuda.Launch {
		dx, dy := &c.Args[0], &c.Args[1]
		p := globalParams{DxStride: stridesOf(dx, rowMajor), DyStride: stridesOf(dy, rowMajor), Extents: extentsOf(dx), Pixels: c.Params[0]}
		p.DyStride.Inner[rows-1], p.DyStride.Inner[rows] = 0, 0
		return bySamples(dx, c.symbol("globalavgpool.dx"), func(n int, total int32) []byte {
			p.Total = total
			p.Dx, p.Dy = dx.sample(n), dy.sample(n)
			return cuda.Params(p)
		})
	})
}

func extentsOf(a *DeviceArg) extentsParams {
	return extentsParams{divideBy(a.Shape[1]), divideBy(a.Shape[2]), divideBy(a.Shape[3])}
}

// sample is the address of sample n: index n of the first dimension.
func (a *DeviceArg) sample(n int) uint64 {
	return a.Addr + uint64(int64(n*a.Stride[0])*a.Type.SizeBytes())
}

// bySamples launches one thread for each element of a map. A launch takes so many samples that
// they have no more than cudaMost elements. params are the parameters of the samples from n on.
func bySamples(a *DeviceArg, symbol string, params func(n int, total int32) []byte) []cuda.Launch {
	each := a.Shape[1] * a.Shape[2] * a.Shape[3]
	var all []cuda.Launch
	for n, step := 0, max(1, cudaMost/each); n < a.Shape[0]; n += step {
		samples := min(step, a.Shape[0]-n)
		total := int32(samples * each)
		all = append(all, cuda.Launch{
			Module: "pool", Symbol: symbol, Params: params(n, total),
			Block: [3]uint32{cudaThreads, 1, 1}, Grid: [3]uint32{blocksOf(int(total), cudaThreads), 1, 1},
		})
	}
	return all
}
