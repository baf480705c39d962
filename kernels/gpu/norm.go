package gpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Batch normalisation and dropout on a CUDA device, see cuda/norm.cu.

// normImage mirrors Image of cuda/norm.cu.
type normImage struct {
	First  uint64
	Stride [4]int64
}

// normMatrix mirrors Matrix of cuda/norm.cu.
type normMatrix struct {
	First uint64
	Row   int64
}

// normParams mirrors NormParams of cuda/norm.cu.
type normParams struct {
	Image                     [4]normImage
	S, Q, K, Kd               normMatrix
	Extent1, Extent2, Extent3 cudaDivision
	Total                     int32
	Channels, Rows, Columns   int32
	ReLU, Add                 int32
}

// normImageOf is an operand from a sample on, whose dimensions are samples, rows, columns and channels.
func normImageOf(a *calls.DeviceArg, sample int) normImage {
	s := a.Stride
	return normImage{First: a.Sample(sample), Stride: [4]int64{int64(s[0]), int64(s[3]), int64(s[1]), int64(s[2])}}
}

// normMatrixOf is an operand of two dimensions from a row on.
func normMatrixOf(a *calls.DeviceArg, row int) normMatrix {
	return normMatrix{a.Sample(row), int64(a.Stride[0])}
}

// NormOperands has the indices of a call's operands by their meaning. -1 means none.
type NormOperands struct {
	Images      []int
	S, Q, K, Kd int
}

// NormOnCUDA is the variant of an operation over images, with a thread for each element, or for each channel of a
// sample. A launch has some of the samples.
func NormOnCUDA(symbol string, o NormOperands, relu bool) []calls.Variant {
	return OnCUDA("a thread per element, or per sum", func(c *calls.DeviceCall) []offload.Launch {
		shape := c.Args[o.Images[0]].Shape
		p := normParams{
			Channels: int32(shape[3]), Rows: int32(shape[1]), Columns: int32(shape[2]),
			Extent1: divideBy(shape[1]), Extent2: divideBy(shape[2]), Extent3: divideBy(shape[3]),
		}
		if relu {
			p.ReLU = c.Param(0)
		}
		each := shape[1] * shape[2] * shape[3]
		if o.S >= 0 {
			each = shape[3]
		}
		matrix := func(i, row int) (m normMatrix) {
			if i >= 0 {
				m = normMatrixOf(&c.Args[i], row)
			}
			return m
		}
		var all []offload.Launch
		for n, step := 0, max(1, cudaMost/each); n < shape[0]; n += step {
			for to, i := range o.Images {
				if i < len(c.Args) {
					p.Image[to] = normImageOf(&c.Args[i], n)
				}
			}
			if o.Images[len(o.Images)-1] < len(c.Args) && len(o.Images) > 2 {
				p.Add = 1
			}
			p.S, p.Q, p.K, p.Kd = matrix(o.S, n), matrix(o.Q, n), matrix(o.K, 0), matrix(o.Kd, 0)
			p.Total = int32(min(step, shape[0]-n) * each)
			all = append(all, normLaunch(c.Symbol(symbol), offload.Params(p), int(p.Total)))
		}
		return all
	})
}

func normLaunch(symbol string, params []byte, threads int) offload.Launch {
	return offload.Launch{
		Module: "norm", Symbol: symbol, Params: params,
		Block: [3]uint32{cudaThreads, 1, 1}, Grid: [3]uint32{blocksOf(threads, cudaThreads), 1, 1},
	}
}

// BatchNorm is the variant of batchnorm.nhwc, and Moments of moments.nhwc.
var (
	BatchNorm = NormOnCUDA("batchnorm", NormOperands{Images: []int{0, 1, 3}, S: -1, Q: -1, K: 2, Kd: -1}, true)
	Moments   = NormOnCUDA("moments", NormOperands{Images: []int{2}, S: 0, Q: 1, K: -1, Kd: -1}, false)
)

// statsParams mirrors StatsParams of cuda/norm.cu.
type statsParams struct {
	K, S, Q, Kd                                   normMatrix
	Mean, Variance, Tracked, Weight, Bias, Dw, Db uint64
	Pixels, Eps, Momentum                         float64
	Channels, Samples                             int32
	AddDw, AddDb                                  int32
}

// StatsOnCUDA is the variant of an operation with a thread per channel.
func StatsOnCUDA(symbol string, params func(c *calls.DeviceCall) statsParams) []calls.Variant {
	return OnCUDA("a channel per thread", func(c *calls.DeviceCall) []offload.Launch {
		p := params(c)
		return []offload.Launch{normLaunch(c.Symbol(symbol), offload.Params(p), int(p.Channels))}
	})
}

// BatchNormStatsParams is for batchnorm.stats. Operands are k of 4×c, the running mean and variance of c, tracked, the moments
// s and q of n×c, weight, bias.
func BatchNormStatsParams(c *calls.DeviceCall) statsParams {
	a := c.Args
	return statsParams{
		K: normMatrixOf(&a[0], 0), Mean: a[1].Addr, Variance: a[2].Addr, Tracked: a[3].Addr, S: normMatrixOf(&a[4], 0), Q: normMatrixOf(&a[5], 0),
		Weight: a[6].Addr, Bias: a[7].Addr, Pixels: c.Params[0], Eps: c.Params[1], Momentum: c.Params[2],
		Channels: int32(a[0].Shape[1]), Samples: int32(a[4].Shape[0]),
	}
}

// BatchNormRunningParams is for batchnorm.running. Operands are k of 4×c, and mean, variance, weight and bias of c.
func BatchNormRunningParams(c *calls.DeviceCall) statsParams {
	a := c.Args
	return statsParams{
		K: normMatrixOf(&a[0], 0), Mean: a[1].Addr, Variance: a[2].Addr, Weight: a[3].Addr, Bias: a[4].Addr, Eps: c.Params[0],
		Channels: int32(a[0].Shape[1]),
	}
}

// BatchNormDwParams is for batchnorm.dw. Operands are dw and db of c, kd of 3×c, the sums s and q of n×c, k of 4×c.
func BatchNormDwParams(c *calls.DeviceCall) statsParams {
	a := c.Args
	p := statsParams{
		Dw: a[0].Addr, Db: a[1].Addr, Kd: normMatrixOf(&a[2], 0), S: normMatrixOf(&a[3], 0), Q: normMatrixOf(&a[4], 0), K: normMatrixOf(&a[5], 0),
		Pixels: c.Params[0], Channels: int32(a[0].Shape[0]), Samples: int32(a[3].Shape[0]),
	}
	p.AddDw, p.AddDb = flag(a[0].Accumulates()), flag(a[1].Accumulates())
	return p
}

// MomentsTotalParams has the totals as K. Where a call adds, AddDw says so.
func MomentsTotalParams(c *calls.DeviceCall) statsParams {
	p := BatchNormTotalParams(c)
	p.Pixels = c.Params[0]
	return p
}

// MomentsMergeParams is for moments.merge. Operands are r and r2 of 3×c, and r2 is merged into r.
func MomentsMergeParams(c *calls.DeviceCall) statsParams {
	return statsParams{K: normMatrixOf(&c.Args[0], 0), Kd: normMatrixOf(&c.Args[1], 0), Channels: int32(c.Args[0].Shape[1])}
}

// BatchNormTotalParams is for batchnorm.total. Operands are r of 2×c, and the sums s and q of n×c.
func BatchNormTotalParams(c *calls.DeviceCall) statsParams {
	a := c.Args
	return statsParams{
		K: normMatrixOf(&a[0], 0), S: normMatrixOf(&a[1], 0), Q: normMatrixOf(&a[2], 0),
		Channels: int32(a[0].Shape[1]), Samples: int32(a[1].Shape[0]), AddDw: flag(a[0].Accumulates()),
	}
}

// foldParams mirrors FoldParams of cuda/norm.cu.
type foldParams struct {
	To, From                                   normImage
	Shift, Mean, Variance, Weight, Bias, Added uint64
	Eps                                        float64
	Filters, Channels, Rows, Columns           int32
}

// FoldOnCUDA launches batchnorm.fold with a thread for each tap of a filter. Operands are wk of i×j×c×f and bk of f, w of
// f×c×i×j, mean, variance, weight and bias of f, and optional biases b of the convolution.
func FoldOnCUDA(c *calls.DeviceCall) []offload.Launch {
	to, from := &c.Args[0], &c.Args[2]
	p := foldParams{
		To: normImage{First: to.Addr}, From: normImage{First: from.Addr},
		Shift: c.Args[1].Addr, Mean: c.Args[3].Addr, Variance: c.Args[4].Addr, Weight: c.Args[5].Addr, Bias: c.Args[6].Addr, Eps: c.Params[0],
		Filters: int32(from.Shape[0]), Channels: int32(from.Shape[1]), Rows: int32(from.Shape[2]), Columns: int32(from.Shape[3]),
	}
	for i, d := range []int{3, 2, 0, 1} { // filters, channels, rows, columns of i j c f
		p.To.Stride[i], p.From.Stride[i] = int64(to.Stride[d]), int64(from.Stride[i])
	}
	if len(c.Args) > 7 {
		p.Added = c.Args[7].Addr
	}
	return []offload.Launch{normLaunch(c.Symbol("batchnorm.fold"), offload.Params(p), from.Shape[0]*from.Shape[2]*from.Shape[3])}
}

// dropoutParams mirrors DropoutParams of cuda/norm.cu.
type dropoutParams struct {
	Y, X                           normImage
	Keys, Hyper, Least             uint64
	Scale                          float64
	Extent1, Extent2, Extent3      cudaDivision
	Total, Channels, Rows, Columns int32
	Layer                          int32
}

// imageArg is an operand of images, of sequences as images of one column, or of features as images of one pixel.
func imageArg(a *calls.DeviceArg) calls.DeviceArg {
	b := *a
	switch len(a.Shape) {
	case 3:
		b.Shape, b.Stride = []int{a.Shape[0], a.Shape[1], 1, a.Shape[2]}, []int{a.Stride[0], a.Stride[1], 1, a.Stride[2]}
	case 2:
		b.Shape, b.Stride = []int{a.Shape[0], 1, 1, a.Shape[1]}, []int{a.Stride[0], 1, 1, a.Stride[1]}
	}
	return b
}

// DropoutOnCUDA launches dropout with a thread for each element: y = x/(1-p) where the draw of the element is at least p, else
// 0. Operands are y and x of one shape, and keys of n.
func DropoutOnCUDA(c *calls.DeviceCall) []offload.Launch {
	y, x := imageArg(&c.Args[0]), imageArg(&c.Args[1])
	each := y.Shape[1] * y.Shape[2] * y.Shape[3]
	p := dropoutParams{
		Least: calls.DropLeast(c.Params[0]), Scale: 1 / (1 - c.Params[0]),
		Extent1: divideBy(y.Shape[1]), Extent2: divideBy(y.Shape[2]), Extent3: divideBy(y.Shape[3]),
		Channels: int32(y.Shape[3]), Rows: int32(y.Shape[1]), Columns: int32(y.Shape[2]),
	}
	var all []offload.Launch
	for n, step := 0, max(1, cudaMost/each); n < y.Shape[0]; n += step {
		p.Y, p.X, p.Keys = normImageOf(&y, n), normImageOf(&x, n), c.Args[2].Sample(n)
		p.Total = int32(min(step, y.Shape[0]-n) * each)
		all = append(all, normLaunch(c.Symbol("dropout"), offload.Params(p), int(p.Total)))
	}
	return all
}

// DropoutKeysOnCUDA launches dropout.keys with a thread for each sample. Operands are keys of n, the seed, hyper with the step.
func DropoutKeysOnCUDA(c *calls.DeviceCall) []offload.Launch {
	p := dropoutParams{Keys: c.Args[0].Addr, X: normImage{First: c.Args[1].Addr}, Hyper: c.Args[2].Addr, Layer: c.Param(0), Total: int32(c.Args[0].Shape[0])}
	return []offload.Launch{normLaunch(c.Symbol("dropout.keys"), offload.Params(p), int(p.Total))}
}

// DropoutRowsOnCUDA launches dropout.rows with a thread for each row. Operands are rows of n×h×t and keys of n.
func DropoutRowsOnCUDA(c *calls.DeviceCall) []offload.Launch {
	to := &c.Args[0]
	p := dropoutParams{Y: normImage{Stride: [4]int64{int64(to.Stride[0]), int64(to.Stride[1])}}, Rows: int32(to.Shape[1]), Columns: int32(to.Shape[2])}
	each := to.Shape[1] * to.Shape[2]
	var all []offload.Launch
	for n, step := 0, max(1, cudaMost/each); n < to.Shape[0]; n += step {
		p.Y.First, p.Keys, p.Total = to.Sample(n), c.Args[1].Sample(n), int32(min(step, to.Shape[0]-n)*each)
		all = append(all, normLaunch(c.Symbol("dropout.rows"), offload.Params(p), int(p.Total)))
	}
	return all
}
