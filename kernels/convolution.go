package kernels

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
	"dahl/kernels/offload"
)

// Convolution over channels-last images: the equations of conv2d with images N×H×W×C and filters
// I×J×C×F. The channels under a row of the window follow each other in memory, and so do the
// filters of one channel:
//
//	y[n,u,v,gf]   = b[gf] + Σ_{i,j,c} w[i,j,c,gf] · x[n,u·s+i·d-t,v·s+j·d-l,gc]
//	dx[n,a,b,gc]  = Σ_{i,j,f: u·s+i·d-t=a, v·s+j·d-l=b} wt[I-1-i,J-1-j,gf,c] · dy[n,u,v,gf]
//	dw[i,j,c,gf]  = Σ_{n,u,v} x[n,u·s+i·d-t,v·s+j·d-l,gc] · dy[n,u,v,gf]
//	db[gf]        = Σ_{n,u,v} dy[n,u,v,gf]
//
// The gradient of x takes the filters turned round and transposed,
// wt[i,j,gf,c] = w[I-1-i,J-1-j,c,gf], which makes it a convolution of dy.

func convolutionWith(k Kernel) Kernel {
	k.Operands = []Operand{
		sums("y", "n oh ow g:f"),
		reads("x", Real, "n "+calls.WindowIndices+" g:c"),
		reads("w", Real, "i j c g:f"),
		optional(reads("b", Real, "g:f")),
	}
	if k.With.Has(calls.Pool) {
		return pooledConvolution(k)
	}
	k.Doc = "y = x ⋆ w + b, with relu = 1 its positive part; channels last"
	k.Params, k.Options, k.Sizes = calls.ReLUParams, calls.SlidingOptions, calls.GroupSizes
	k.Check = checkReLU
	k.PerPoint = 2
	k.Flops = func(s *calls.Spec) float64 { return s.Param("relu")*s.Volume(0) + biasFlops(s, 3, 0) }
	k = linear{factors: []int{1, 2}, bias: 3, relu: calls.Rectifies}.kernelOf(k,
		atLevels("a product per zone of pixels, straight from the image", cpu.Conv2dNHWCAt[float32], cpu.Conv2dNHWCAt[float64], cpu.Conv2dNHWCWorkspace),
		cpu.WinogradVariants(cpu.WinogradDoc, cpu.Conv2dNHWCWinograd, cpu.WinogradTaken(2, 0), cpu.WinogradWorkspace(1, 0)),
		gpu.ConvolutionLast.Maps.Variants(gpu.ConvolutionLast.ForwardProducts, calls.WithOptions(calls.ReLUParams...)...),
		gpu.LibraryConvolution{Convolution: &gpu.ConvolutionLast, Kind: offload.Forward, X: 1, Y: 0, W: 2}.Variants(calls.WithOptions(calls.ReLUParams...)...))
	if k.With.Has(calls.Norm) {
		k = normed{x: 1, filters: 3}.kernelOf(k)
	}
	if k.With.Has(calls.Moments) {
		k = withMoments(k)
	}
	return k
}

func convolutionDxWith(k Kernel) Kernel {
	k.Doc = "dx = gradient of conv2d.nhwc with respect to x, with x given 0 where x ≤ 0 (x is the output of a ReLU)"
	k.Operands = []Operand{
		sums("dx", "n "+calls.WindowIndices+" g:c"),
		reads("dy", Real, "n oh ow g:f"),
		reads("wt", Real, "-i -j g:f c"),
		optional(reads("x", Real, "n "+calls.WindowIndices+" g:c")),
	}
	k.Params, k.Options, k.Sizes = calls.SlidingParams, calls.SlidingOptions, calls.GroupSizes
	k.Check = func(s *calls.Spec) error {
		if len(s.Operands) > 3 && s.Operands[0].Mode != dag.Write {
			return fmt.Errorf("dx is added to, so that x, by which the sum is cut off, must come later")
		}
		return nil
	}
	k.PerPoint = 2
	return linear{factors: []int{1, 2}, gate: 3}.kernelOf(k,
		atLevels("as conv2d.nhwc, one convolution of dy per phase of the stride", cpu.Conv2dNHWCDxAt[float32], cpu.Conv2dNHWCDxAt[float64], cpu.Conv2dNHWCDxWorkspace),
		cpu.WinogradVariants(cpu.WinogradDoc, cpu.Conv2dNHWCDxWinograd, cpu.WinogradTaken(2, 0), cpu.WinogradWorkspace(1, 0)),
		gpu.ConvolutionLast.Maps.Variants(gpu.ConvolutionLast.InputProducts, calls.WithOptions(calls.SlidingParams...)...),
		gpu.LibraryConvolution{Convolution: &gpu.ConvolutionLast, Kind: offload.InputGradient, X: 0, Y: 1, W: 2}.Variants(calls.WithOptions(calls.SlidingParams...)...))
}

// checkReLU refuses the positive part of a sum that is not complete.
func checkReLU(s *calls.Spec) error {
	relu, err := intParam(s, "relu", 0, 1)
	if err == nil && relu == 1 && s.Operands[0].Mode != dag.Write {
		return fmt.Errorf("y is added to, so that relu must be 0")
	}
	return err
}

// window is the product of filter f with window u, v of sample n.
func window[T calls.Float](g *calls.Windowing, x, w *calls.Map4[T], n, u, v, f int) T {
	var sum T
	before := f / (w.Extent[3] / g.Groups) * w.Extent[2] // channels of the groups before the group of f
	for i := range w.Extent[0] {
		for j := range w.Extent[1] {
			a, b := g.Rows.Image(u, i), g.Columns.Image(v, j)
			if a < 0 || a >= x.Extent[1] || b < 0 || b >= x.Extent[2] {
				continue
			}
			for c := range w.Extent[2] {
				sum += w.Elems[w.At(i, j, c, f)] * x.Elems[x.At(n, a, b, before+c)]
			}
		}
	}
	return sum
}
