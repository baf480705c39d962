package kernels

import (
	"fmt"
	"slices"

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

// A convolution with ReLU and max-pooling in one operation, and its weight gradient computed
// directly from the pooled gradient. The map between convolution and pooling is never in memory
// as a whole:
//
//	z[n,u,v,f]     = b[f] + (x ⋆ w)[n,u,v,f]
//	y[n,p,q,f]     = max(0, max_{i,j<size} z[n,p·step+i,q·step+j,f])
//	index[n,p,q,f] = i·size + j of the first maximum, or noMaximum where it is ≤ 0
//	dz[n,u,v,f]    = Σ dy[n,p,q,f] over the windows whose index is at u, v
//	dw, db         = gradients by conv2d.nhwc.dw for dz
//
// NaN wins as in maxpool.

// pooledConvolution completes the convolution whose operands k has.
func pooledConvolution(k Kernel) Kernel {
	k.Doc = "y = positive part of the maximum of each window of x ⋆ w + b, index = its position, 255 if it is ≤ 0; channels last"
	k.Operands[0].Modes = []dag.Mode{dag.Write}
	k.Options = calls.SlidingOptions
	k.pooled(0, writes("index", Mask, pooledMap))
	k.Flops = func(s *calls.Spec) float64 {
		size := s.Param("size")
		return convPoolFlops(s, 0, 3) + s.Volume(0)*size*size + biasFlops(s, 4, 0)
	}
	k.Variants = withRef("a scan of each window of sums", conv2dNHWCPoolRef[float32], conv2dNHWCPoolRef[float64],
		atLevels("conv2d.nhwc and maxpool.nhwc on a few rows at a time", cpu.Conv2dNHWCPoolAt[float32], cpu.Conv2dNHWCPoolAt[float64], cpu.Conv2dNHWCPoolWorkspace),
		cpu.WinogradVariants(cpu.WinogradDoc+", and maxpool.nhwc of some rows at a time", cpu.Conv2dNHWCPoolWinograd, cpu.WinogradTaken(3, 0), cpu.Conv2dNHWCPoolWinogradWorkspace),
		gpu.PoolVariants(),
		gpu.LibraryConvolution{Convolution: &gpu.ConvolutionLast, Kind: offload.Forward, X: 1, W: 2, With: calls.Pool}.Variants(calls.WithOptions(calls.PooledParams...)...))
	return k
}

// pooled puts a pooled map in the place of y, the convolution's or its gradient, and the positions of the maxima behind it. x
// is the operand behind these.
func (k *Kernel) pooled(y int, positions Operand) {
	k.Operands = slices.Insert(k.Operands, y+1, positions)
	k.Operands[y].Dims, k.Operands[y+2].Dims = pooledMap, "n "+pooledIndices+" g:c"
	k.Params, k.Sizes, k.PerPoint = calls.PooledParams, pooledSizes, 0
}

// Windows of i×j pixels of the image lie in windows of a×b windows.
const (
	pooledMap     = "n ph pw g:f"
	pooledIndices = "ph*step*stride+a*stride+i*dilation-top pw*step*column_stride+b*column_stride+j*column_dilation-left"
	pooledSizes   = "a=size b=size " + calls.GroupSizes
)

// convPoolFlops counts the taps of the convolution at all pixels from the first to the last that
// lie in a window.
func convPoolFlops(s *calls.Spec, y, w int) float64 {
	size, step, shape := int(s.Param("size")), int(s.Param("step")), s.Operands[y].Shape
	pixels := float64(shape[0]) * float64(calls.Covered(shape[1], size, step)) * float64(calls.Covered(shape[2], size, step))
	return 2 * pixels * s.Volume(w)
}

// conv2dNHWCPoolRef computes each sum as the reference of conv2d.nhwc does.
func conv2dNHWCPoolRef[T calls.Float](call *calls.Call) {
	y, index := calls.Map4Of[T](&call.Args[0]), calls.Map4Of[uint8](&call.Args[1])
	x, w := calls.Map4Of[T](&call.Args[2]), calls.Map4Of[T](&call.Args[3])
	g := calls.WindowingOf(call.Params)
	size, step := calls.FusedPooling(call.Params)
	y.Each(func(n, p, q, f int) {
		var bias, most T
		if len(call.Args) > 4 {
			bias = calls.Data[T](&call.Args[4])[f]
		}
		position := noMaximum
		for at := range size * size {
			u, v := p*step+at/size, q*step+at%size
			z := window(&g, &x, &w, n, u, v, f) + bias
			if z > most || z != z && most == most {
				most, position = z, at
			}
		}
		y.Elems[y.At(n, p, q, f)] = most
		index.Elems[index.At(n, p, q, f)] = uint8(position)
	})
}
