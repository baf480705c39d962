package kernels

import (
	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
	"dahl/kernels/offload"
)

// Weight gradients of channels-last convolutions. With Pool they come directly from the pooled gradient, see pooled. With SGD
// they are the step of gradient descent, without a gradient in memory. The weights are PyTorch's then, F×C×I×J:
//
//	w[f,c,i,j], vw ← as sgd does with g = dw[i,j,c,f]
//	b[f], vb       ← as sgd does with g = db[f]
//
// A variant gives the bits of its gradient, oihw and sgd one after the other. The variants at levels leave the gradient in the
// workspace, and turn a few filters of it to PyTorch's order at a time.

func convolutionDwWith(k Kernel) Kernel {
	l := linear{factors: []int{1, 2}}
	k.Doc = "dw, db = gradients of " + Written("conv2d.nhwc", k.With&calls.Pool) + " with respect to w and b"
	k.Operands = []Operand{
		sums("dw", "i j c g:f"),
		reads("dy", Real, "n oh ow g:f"),
		reads("x", Real, "n "+calls.WindowIndices+" g:c"),
	}
	k.Params, k.Options, k.Sizes, k.PerPoint = calls.SlidingParams, calls.SlidingOptions, calls.GroupSizes, 2
	if k.With.Has(calls.Pool) {
		k.pooled(1, reads("index", Mask, pooledMap).positions("size*size"))
		k.Flops = func(s *calls.Spec) float64 { return convPoolFlops(s, 1, 0) }
		l.factors, l.marks = []int{1, 3}, 2
	}
	if k.With.Has(calls.SGD) {
		l.descend(&k, "g:f c i j", "g:f")
	} else {
		l.totals(&k, "g:f")
	}
	k = l.kernelOf(k, gradientVariants(&k)...)
	if k.With.Has(calls.Norm) {
		k = normed{x: 2, filters: 0}.kernelOf(k)
	}
	return k
}

// gradientVariants are the variants that follow the reference. Winograd's have no pooling.
func gradientVariants(k *Kernel) (all [][]calls.Variant) {
	library := gpu.LibraryConvolution{Convolution: &gpu.ConvolutionLast, Kind: offload.WeightGradient, X: 2, Y: 1, With: k.With}
	family, doc, then, rows := gpu.ConvolutionLast.Weights, "a product with the transposed image per zone of pixels", "", 0
	if k.With.Has(calls.Pool) {
		family, doc = gpu.UnpooledWeights, "maxpool.nhwc.dx and conv2d.nhwc.dw on a few rows at a time"
	}
	if k.With.Has(calls.SGD) {
		then, rows = ", in the workspace, then sgd by some filters at a time", 2
	}
	all = append(all, atLevels(doc+then, cpu.ConvolutionDwAt[float32](k.With), cpu.ConvolutionDwAt[float64](k.With), cpu.ConvolutionDwWorkspace(k.With)))
	if !k.With.Has(calls.Pool) {
		all = append(all, cpu.WinogradVariants(cpu.WinogradDoc+then, cpu.ConvolutionDwWinograd(k.With), cpu.WinogradTaken(0, rows), cpu.ConvolutionDwWinogradWorkspace(k.With)))
	}
	params := calls.WithOptions(k.Params...)
	return append(all, family.Variants(gpu.ConvolutionLast.GradientProducts(k.With), params...), library.Variants(params...))
}
