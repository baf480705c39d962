package gpu

import (
	"slices"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// convertParams mirrors ConvertParams of cuda/bfloat16.cu.
type convertParams struct {
	Rows rowsParams
	Y, X stridedParams
}

// InFloat32 is a call in bfloat16 by the launches of float32, see cuda/bfloat16.cu: operands are widened to the workspace before, and results are rounded
// behind.
func InFloat32(c *calls.DeviceCall, launches func(*calls.DeviceCall) []offload.Launch) []offload.Launch {
	var before, after []offload.Launch
	wide := c.Widened()
	for i := range c.Args {
		narrow := &c.Args[i]
		if narrow.Type != dag.BFloat16 {
			continue
		}
		if narrow.Mode != dag.Write {
			before = append(before, convert("bfloat16_widen", &wide.Args[i], narrow)...)
		}
		if narrow.Mode != dag.Read {
			after = append(after, convert("bfloat16_narrow", narrow, &wide.Args[i])...)
		}
	}
	return slices.Concat(before, launches(wide), after)
}

// convert copies an operand to one of another type.
func convert(symbol string, y, x *calls.DeviceArg) []offload.Launch {
	return elementwise([]*calls.DeviceArg{y, x}, 0, func(r rowsParams, o []stridedParams) offload.Launch {
		return offload.Launch{Module: "bfloat16", Symbol: symbol, Params: offload.Params(convertParams{Rows: r, Y: o[0], X: o[1]})}
	})
}
