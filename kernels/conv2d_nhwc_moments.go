package kernels

import (
	"dahl/kernels/offload"
	"dahl/kernels/simd"
)

// A convolution before a batch normalisation takes the moments of its output while that is in a cache. Its variants are
// those of conv2d.nhwc with a pass of moments.nhwc behind them, so that their bits are those of the two operations
// one after the other.

var conv2dNHWCMoments = Kernel{
	Op: "conv2d.nhwc.moments", Doc: "y = x ⋆ w + b, with relu = 1 its positive part, s and q = moments of y; channels last",
	Operands: []Operand{
		writes("s", Real, "n g:f"), writes("q", Real, "n g:f"),
		writes("y", Real, "n oh ow g:f"),
		reads("x", Real, "n "+windowIndices+" g:c"),
		reads("w", Real, "i j c g:f"),
		optional(reads("b", Real, "g:f")),
	},
	Params: reluParams, Options: slidingOptions, Sizes: groupSizes, Whole: "oh ow", Exact: true,
	Check:    checkFlag("relu"),
	PerPoint: 2,
	Flops:    func(s *Spec) float64 { return (4+s.Param("relu"))*s.volume(2) + biasFlops(s, 5, 2) },
	Variants: withMoments(&conv2dNHWC),
}

// withMoments are the variants of a convolution with the moments of its output.
func withMoments(convolution *Kernel) (all []Variant) {
	for _, v := range convolution.Variants {
		if v.Library != "" {
			continue
		}
		both, takes, workspace := v, v.Takes, v.WorkspaceBytes
		both.Doc = v.Doc + "; then moments"
		both.WorkspaceBytes = func(s *Spec) int64 {
			bytes := channelWorkspace(2)(s)
			if workspace != nil {
				bytes = max(bytes, workspace(convolutionOf(s, convolution.Op)))
			}
			return bytes
		}
		if takes != nil {
			both.Takes = func(s *Spec) error { return takes(convolutionOf(s, convolution.Op)) }
		}
		if v.Code == CUDACode {
			both.Launches = func(c *DeviceCall) []offload.Launch { return append(v.Launches(convolutionOn(c)), momentsOnCUDA(c)...) }
		} else {
			both.Run32, both.Run64 = thenMoments[float32](v.Level, v.Run32, v.Name == "ref"), thenMoments[float64](v.Level, v.Run64, v.Name == "ref")
		}
		all = append(all, both)
	}
	return all
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

// convolutionOf is the call of the convolution.
func convolutionOf(s *Spec, op string) *Spec {
	c := *s
	c.Op, c.Operands = op, s.Operands[2:]
	return &c
}

func convolutionOn(call *DeviceCall) *DeviceCall {
	c := *call
	c.Args = call.Args[2:]
	return &c
}
