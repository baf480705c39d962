package kernels

import (
	"dahl/dag"
	"dahl/kernels/offload"
	"dahl/kernels/simd"
)

// A convolution before a batch normalisation takes the moments of its output while that is in a cache. Its variants are
// those of conv2d.nhwc with a pass of moments.nhwc behind them, so that their bits are those of the two operations
// one after the other.

// withMoments is the convolution with the moments of its output before its operands.
func withMoments(convolution Kernel) Kernel {
	moments := beside{0, []Operand{writes("s", Real, "n g:f"), writes("q", Real, "n g:f")}}
	k := moments.to(convolution, perElement(4, 2))
	k.Doc += ", s and q = moments of y"
	k.Operands[2].Modes = []dag.Mode{dag.Write}
	k.Whole = "oh ow"
	for _, v := range convolution.Variants {
		if v.Library != "" {
			continue
		}
		both := moments.variant(v, "; then moments", func(s *Spec, own int64) int64 { return max(channelWorkspace(2)(s), own) })
		if v.Code == CUDACode {
			both.Launches = func(c *DeviceCall) []offload.Launch {
				return append(v.Launches(moments.withoutOn(c)), momentsOnCUDA(c)...)
			}
		} else {
			both.Run32, both.Run64 = thenMoments[float32](v.Level, v.Run32, v.Name == "ref"), thenMoments[float64](v.Level, v.Run64, v.Name == "ref")
		}
		k.Variants = append(k.Variants, both)
	}
	return k
}

// thenMoments is a convolution and the moments of its output. The operands of the one are the last of the call's, those of
// the other the first three.
func thenMoments[T Float](l simd.Level, convolve func(*Call), reference bool) func(*Call) {
	if convolve == nil { // of the other type alone
		return nil
	}
	moments := func(c *Call) { momentsAt[T](l, c) }
	if reference {
		moments = momentsRef[T]
	}
	return func(call *Call) {
		args := call.Args // a call of another slice would be on the heap
		call.Args = args[2:]
		convolve(call)
		call.Args = args[:3]
		moments(call)
		call.Args = args
	}
}
