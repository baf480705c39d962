package gpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Operations on single elements on a CUDA device, see cuda/elementwise.cu.

// elements launches a kernel of a module whose parameters are the rows, some operands of equal
// extents, and numbers.
func elements(c *calls.DeviceCall, module, symbol string, args []*calls.DeviceArg, numbers ...float64) []offload.Launch {
	return elementwise(args, 0, func(r rowsParams, operands []stridedParams) offload.Launch {
		l := offload.Launch{Module: module, Symbol: c.Symbol(symbol), Params: offload.Params(r)}
		for _, o := range operands {
			l.Params = append(l.Params, offload.Params(o)...)
		}
		for _, v := range numbers {
			l.Params = append(l.Params, offload.Params(v)...)
		}
		return l
	})
}

// ElementsOnCUDA is the variant of an operation on operands of one shape.
func ElementsOnCUDA(symbol string) []calls.Variant {
	return OnCUDA("four elements per thread", func(c *calls.DeviceCall) []offload.Launch {
		return elements(c, "elementwise", symbol, c.All())
	})
}

// FunctionOnCUDA is the variant of a function, or of its gradient.
func FunctionOnCUDA(symbol string) []calls.Variant {
	return OnCUDA("four elements per thread, in the type itself", func(c *calls.DeviceCall) []offload.Launch {
		return elements(c, "function", symbol, c.All(), calls.SettingOf(c.Params))
	})
}

// sgdParams mirrors SGDParams of cuda/elementwise.cu.
type sgdParams struct {
	Rows            rowsParams
	W, G, V         stridedParams
	Hyper           uint64
	Momentum, Decay float64
	Nesterov        int32
	Clipped         int32
}

// SgdOnCUDA launches sgd with four elements for each thread. Operands are w, g, hyper, and with momentum also v; w, g and v
// have one shape.
func SgdOnCUDA(c *calls.DeviceCall) []offload.Launch {
	args := []*calls.DeviceArg{&c.Args[0], &c.Args[1], &c.Args[0]}
	if c.Params[0] != 0 {
		args[2] = &c.Args[3]
	}
	return elementwise(args, 0, func(r rowsParams, o []stridedParams) offload.Launch {
		return offload.Launch{Module: "elementwise", Symbol: c.Symbol("sgd"), Params: offload.Params(sgdParams{
			Rows: r, W: o[0], G: o[1], V: o[2], Hyper: c.Args[2].Addr,
			Momentum: c.Params[0], Nesterov: c.Param(1), Decay: c.Params[2], Clipped: hasFactor(&c.Args[2]),
		})}
	})
}

// hasFactor is 1 where hyper has the factor of a clipped gradient.
func hasFactor(hyper *calls.DeviceArg) int32 { return int32(hyper.Shape[0] - 2) }

// adamParams mirrors AdamParams of cuda/elementwise.cu.
type adamParams struct {
	Rows                     rowsParams
	W, G, M, V               stridedParams
	Hyper                    uint64
	Beta1, Beta2, Eps, Decay float64
	Decoupled, Clipped       int32
}

// AdamOnCUDA launches adam with four elements for each thread. Operands are w, g, hyper, m, v; all but hyper have one shape.
func AdamOnCUDA(c *calls.DeviceCall) []offload.Launch {
	args := []*calls.DeviceArg{&c.Args[0], &c.Args[1], &c.Args[3], &c.Args[4]}
	return elementwise(args, 0, func(r rowsParams, o []stridedParams) offload.Launch {
		return offload.Launch{Module: "elementwise", Symbol: c.Symbol("adam"), Params: offload.Params(adamParams{
			Rows: r, W: o[0], G: o[1], M: o[2], V: o[3], Hyper: c.Args[2].Addr,
			Beta1: c.Params[0], Beta2: c.Params[1], Eps: c.Params[2], Decay: c.Params[3], Decoupled: c.Param(4), Clipped: hasFactor(&c.Args[2]),
		})}
	})
}

// OnCUDA is the variant "cuda" of an operation without a workspace.
func OnCUDA(doc string, launches func(*calls.DeviceCall) []offload.Launch) []calls.Variant {
	return []calls.Variant{{Name: "cuda", Code: calls.CUDACode, Doc: doc, Launches: launches}}
}
