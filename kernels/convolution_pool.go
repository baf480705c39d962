package kernels

import (
	"slices"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
	"dahl/kernels/offload"
)

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
