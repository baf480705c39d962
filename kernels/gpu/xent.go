package gpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// A dense layer with the loss behind it on a CUDA device, see cuda/xent.cu.

// xentParams mirrors XentParams of cuda/xent.cu. Operands that an operation lacks are 0.
type xentParams struct {
	X, W, R, To                         normMatrix
	Y, Loss, Correct, Weight            uint64
	Batch                               float64
	Rows, Classes, Columns, First, Adds int32
	_                                   int32
}

// The variants of the operations of a dense layer with its loss.
var (
	XentSums = OnCUDA("a warp per row", func(c *calls.DeviceCall) []offload.Launch {
		p := logitParams(c, c.Param(0))
		return xentLaunch(c, "xent.sums", p, 32*int(p.Rows))
	})
	XentMerge = OnCUDA("a thread per row", func(c *calls.DeviceCall) []offload.Launch {
		p := xentParams{To: normMatrixOf(&c.Args[0], 0), R: normMatrixOf(&c.Args[1], 0), Rows: int32(c.Args[0].Shape[0])}
		return xentLaunch(c, "xent.merge", p, int(p.Rows))
	})
	Xent = OnCUDA("a thread per row", func(c *calls.DeviceCall) []offload.Launch {
		a := c.Args
		p := xentParams{Loss: a[0].Addr, Correct: a[1].Addr, R: normMatrixOf(&a[2], 0), Y: a[3].Addr, Weight: c.Bias(4), Rows: int32(a[2].Shape[0])}
		return xentLaunch(c, "xent", p, int(p.Rows))
	})
	XentDx = OnCUDA("a warp per row", func(c *calls.DeviceCall) []offload.Launch {
		p := logitGradientParams(c)
		return xentLaunch(c, "xent.dx", p, 32*int(p.Rows))
	})
	XentDw = OnCUDA("a warp per class", func(c *calls.DeviceCall) []offload.Launch {
		p := logitGradientParams(c)
		return xentLaunch(c, "xent.dw", p, 32*int(p.Classes))
	})
)

// logitParams are the parameters of an operation with a result, x, w and labels.
func logitParams(c *calls.DeviceCall, first int32) xentParams {
	a := c.Args
	return xentParams{
		To: normMatrixOf(&a[0], 0), X: normMatrixOf(&a[1], 0), W: normMatrixOf(&a[2], 0), Y: a[3].Addr,
		Rows: int32(a[1].Shape[0]), Classes: int32(a[2].Shape[0]), Columns: int32(a[1].Shape[1]), First: first, Adds: flag(a[0].Accumulates()),
	}
}

func logitGradientParams(c *calls.DeviceCall) xentParams {
	p := logitParams(c, c.Param(1))
	p.R, p.Weight, p.Batch = normMatrixOf(&c.Args[4], 0), c.Bias(5), c.Params[0]
	return p
}

func xentLaunch(c *calls.DeviceCall, symbol string, p xentParams, threads int) []offload.Launch {
	l := normLaunch(c.Symbol(symbol), offload.Params(p), threads)
	l.Module = "xent"
	return []offload.Launch{l}
}
