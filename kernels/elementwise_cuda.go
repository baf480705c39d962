package kernels

import "dahl/kernels/offload"

// Operations on single elements on a CUDA device, see cuda/elementwise.cu.

// elements launches a kernel of a module whose parameters are the rows, some operands of equal
// extents, and numbers.
func elements(c *DeviceCall, module, symbol string, args []*DeviceArg, numbers ...float64) []offload.Launch {
	return elementwise(args, 0, func(r rowsParams, operands []stridedParams) offload.Launch {
		l := offload.Launch{Module: module, Symbol: c.symbol(symbol), Params: offload.Params(r)}
		for _, o := range operands {
			l.Params = append(l.Params, offload.Params(o)...)
		}
		for _, v := range numbers {
			l.Params = append(l.Params, offload.Params(v)...)
		}
		return l
	})
}

// elementsOnCUDA is the variant of an operation on operands of one shape.
func elementsOnCUDA(symbol string) []Variant {
	return onCUDA("four elements per thread", func(c *DeviceCall) []offload.Launch {
		return elements(c, "elementwise", symbol, c.all())
	})
}

// functionOnCUDA is the variant of a function, or of its gradient.
func functionOnCUDA(symbol string) []Variant {
	return onCUDA("four elements per thread, in the type itself", func(c *DeviceCall) []offload.Launch {
		return elements(c, "function", symbol, c.all(), settingOf(c.Params))
	})
}

// all is the operands of a call.
func (c *DeviceCall) all() (args []*DeviceArg) {
	for i := range c.Args {
		args = append(args, &c.Args[i])
	}
	return args
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

func sgdOnCUDA(c *DeviceCall) []offload.Launch {
	args := []*DeviceArg{&c.Args[0], &c.Args[1], &c.Args[0]}
	if c.Params[0] != 0 {
		args[2] = &c.Args[3]
	}
	return elementwise(args, 0, func(r rowsParams, o []stridedParams) offload.Launch {
		return offload.Launch{Module: "elementwise", Symbol: c.symbol("sgd"), Params: offload.Params(sgdParams{
			Rows: r, W: o[0], G: o[1], V: o[2], Hyper: c.Args[2].Addr,
			Momentum: c.Params[0], Nesterov: c.param(1), Decay: c.Params[2], Clipped: hasFactor(&c.Args[2]),
		})}
	})
}

// hasFactor is 1 where hyper has the factor of a clipped gradient.
func hasFactor(hyper *DeviceArg) int32 { return int32(hyper.Shape[0] - 2) }

// adamParams mirrors AdamParams of cuda/elementwise.cu.
type adamParams struct {
	Rows                     rowsParams
	W, G, M, V               stridedParams
	Hyper                    uint64
	Beta1, Beta2, Eps, Decay float64
	Decoupled, Clipped       int32
}

func adamOnCUDA(c *DeviceCall) []offload.Launch {
	args := []*DeviceArg{&c.Args[0], &c.Args[1], &c.Args[3], &c.Args[4]}
	return elementwise(args, 0, func(r rowsParams, o []stridedParams) offload.Launch {
		return offload.Launch{Module: "elementwise", Symbol: c.symbol("adam"), Params: offload.Params(adamParams{
			Rows: r, W: o[0], G: o[1], M: o[2], V: o[3], Hyper: c.Args[2].Addr,
			Beta1: c.Params[0], Beta2: c.Params[1], Eps: c.Params[2], Decay: c.Params[3], Decoupled: c.param(4), Clipped: hasFactor(&c.Args[2]),
		})}
	})
}
