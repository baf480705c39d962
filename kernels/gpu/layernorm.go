package gpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Layer normalisations on a CUDA device, see cuda/layernorm.cu.

// rowNormParams mirrors RowNormParams of cuda/layernorm.cu. Operands that an operation lacks are 0.
type rowNormParams struct {
	X, Y, G            normMatrix
	K                  normMatrix
	W, B               uint64
	Eps                float64
	Rows, Columns      int32
	Center, AddW, AddB int32
}

// The variants of layernorm and of its gradients.
var (
	LayerNorm = OnCUDA("a warp per row", func(c *calls.DeviceCall) []offload.Launch {
		a := c.Args
		return rowNorm(c, "layernorm", 32, rowNormParams{Y: normMatrixOf(&a[0], 0), K: normMatrixOf(&a[1], 0), X: normMatrixOf(&a[2], 0), W: a[3].Addr, B: c.Bias(4),
			Center: c.Param(0), Eps: c.Params[1]})
	})
	LayerNormDx = OnCUDA("a warp per row", func(c *calls.DeviceCall) []offload.Launch {
		a := c.Args
		return rowNorm(c, "layernorm.dx", 32, rowNormParams{Y: normMatrixOf(&a[0], 0), G: normMatrixOf(&a[1], 0), X: normMatrixOf(&a[2], 0), K: normMatrixOf(&a[3], 0), W: a[4].Addr,
			Center: c.Param(0)})
	})
	LayerNormDw = OnCUDA("a thread per column", func(c *calls.DeviceCall) []offload.Launch {
		a := c.Args
		p := rowNormParams{G: normMatrixOf(&a[1], 0), X: normMatrixOf(&a[2], 0), K: normMatrixOf(&a[3], 0), W: a[0].Addr, B: c.Bias(4)}
		if a[0].Accumulates() {
			p.AddW = 1
		}
		if len(a) > 4 && a[4].Accumulates() {
			p.AddB = 1
		}
		return rowNorm(c, "layernorm.dw", 0, p)
	})
)

// rowNorm is the launch with some threads for each row, or with one for each column.
func rowNorm(c *calls.DeviceCall, symbol string, perRow int, p rowNormParams) []offload.Launch {
	x := &c.Args[2]
	p.Rows, p.Columns = int32(x.Shape[0]), int32(x.Shape[1])
	threads := x.Shape[0] * perRow
	if perRow == 0 {
		threads = x.Shape[1]
	}
	l := normLaunch(c.Symbol(symbol), offload.Params(p), threads)
	l.Module = "layernorm"
	return []offload.Launch{l}
}
