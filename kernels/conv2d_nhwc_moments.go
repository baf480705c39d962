package kernels

import (
	"slices"

	"dahl/dag"
	"dahl/kernels/cuda"
	"dahl/kernels/simd"
)

// A convolution before a batch normalisation takes the moments of its output while that is in a cache. Its variants are
// those of conv2d.nhwc with a pass of moments.nhwc behind them, so that their bits are those of the two operations
// one after the other.

// withMoments is the convolution with the moments of its output before its operands.
func withMoments(convolution Kernel) Kernel {
	k := convolution
	k.Doc = convolution.Doc + ", s and q = moments of y"
	k.Operands = slices.Concat([]Operand{writes("s", Real, "n g:f"), writes("q", Real, "n g:f")}, convolution.Operands)
	k.Operands[2].Modes = []dag.Mode{dag.Write}
	k.Whole = "oh ow"
	k.Check = func(s *Spec) error { return convolution.Check(withoutMoments(s)) }
	k.Flops = func(s *Spec) float64 { return 4*s.volume(2) + convolution.Flops(withoutMoments(s)) }
	k.Variants = nil
	for _, v := range convolution.Variants {
		if v.Library == "" {
			k.Variants = append(k.Variants, v.thenMoments())
		}
	}
	return k
}

// thenMoments is the variant of a convolution with moments.
func (v Variant) thenMoments() Variant {
	both := v
	both.Doc = v.Doc + "; then moments"
	both.WorkspaceBytes = func(s *Spec) int64 {
		bytes := channelWorkspace(2)(s)
		if v.WorkspaceBytes != nil {
			bytes = max(bytes, v.WorkspaceBytes(withoutMoments(s)))
		}
		return bytes
	}
	if v.Takes != nil {
		both.Takes = func(s *Spec) error { return v.Takes(withoutMoments(s)) }
	}
	if v.Kind == CUDA {
		both.Launches = func(c *DeviceCall) []cuda.Launch { return append(v.Launches(withoutMomentsOn(c)), momentsOnCUDA(c)...) }
	} else {
		both.Run32, both.Run64 = thenMoments[float32](v.Level, v.Run32, v.Name == "ref"), thenMoments[float64](v.Level, v.Run64, v.Name == "ref")
	}
	return both
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

// withoutMoments is the call of the convolution.
func withoutMoments(s *Spec) *Spec {
	c := *s
	c.Operands = s.Operands[2:]
	return &c
}

func withoutMomentsOn(call *DeviceCall) *DeviceCall {
	c := *call
	c.Args = call.Args[2:]
	return &c
}
