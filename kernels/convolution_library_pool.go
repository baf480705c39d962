package kernels

import (
	"slices"

	"dahl/dag"
	"dahl/kernels/cuda"
)

// Convolutions with pooling by cuDNN are convolutions without pooling that leave the whole map in
// the workspace. Our kernels pool the map, or spread its gradient over it.

// pooledLibrary is such an operation: the one without pooling, and which operand of either is the
// map. In the pooled operation the marks follow the map.
type pooledLibrary struct {
	libraryConvolution
	pooled int
}

// libraryPooled are the variants of conv2d.nhwc.pool and of the gradient of its filters.
func (c *convolution) libraryPooled(kind cuda.ConvolutionKind, params ...string) []Variant {
	l := &pooledLibrary{libraryConvolution{c, kind, 1, 0, 2, 0, params}, 0}
	if kind == cuda.WeightGradient {
		l = &pooledLibrary{libraryConvolution{c, kind, 2, 1, 0, 0, params}, 1}
	}
	return l.variantsOf(l.of, l.workBytes, params)
}

// libraryPooledDescent are those of the filters' descent.
func (c *convolution) libraryPooledDescent(params ...string) []Variant {
	l := &pooledLibrary{libraryConvolution{c, cuda.WeightGradient, 3, 2, 0, 4, params}, 2}
	return l.variantsOf(l.of, l.workBytes, params)
}

// whole is the call without pooling, of a map at the beginning of the workspace.
func (l *pooledLibrary) whole(c *DeviceCall) *DeviceCall {
	plain := &DeviceCall{Type: c.Type, Args: slices.Delete(slices.Clone(c.Args), l.pooled, l.pooled+1)}
	plain.Params = append(plain.Params, c.Params[:2]...)
	if l.kind == cuda.Forward {
		plain.Params = append(plain.Params, 0) // the scan takes positive parts
	}
	plain.Params = append(plain.Params, c.Params[4:]...)
	x, filters := &plain.Args[l.x], &plain.Args[l.w]
	k, pad, stride := filters.Shape[l.filters.i], int(c.Params[0]), int(c.Params[1])
	if l.hyper != 0 {
		k = filters.Shape[asPyTorch.i]
	}
	pooled := &c.Args[l.pooled]
	shape := []int{x.Shape[0], windows(x.Shape[1], k, pad, stride), windows(x.Shape[2], k, pad, stride), pooled.Shape[3]}
	mode := dag.Read
	if l.kind == cuda.Forward {
		mode = dag.Write
	}
	z := BindDevice(c.Work, &dag.Buffer{Type: c.Type, Shape: shape}, nil, mode)
	plain.Args[l.pooled], plain.Work = z, c.Work+uint64(z.packedBytes())
	return plain
}

// of is a [shareOut].
func (l *pooledLibrary) of(c *DeviceCall, tf32 bool) *convolutionCall {
	plain := l.whole(c)
	to := l.libraryConvolution.of(plain, tf32)
	z := &plain.Args[l.pooled]
	if l.kind == cuda.Forward {
		to.after = append(to.after, scanLaunch(c, channelsLast.pixels(z)))
		return to
	}
	spread := &DeviceCall{Type: c.Type, Params: c.Params[2:4], Args: []DeviceArg{*z, c.Args[l.pooled], c.Args[l.pooled+1]}}
	to.before = append(spreadMaxima(spread), to.before...)
	return to
}

// spreadMaxima is maxpool.nhwc.dx.
var spreadMaxima = spreadOnCUDA("maxpool.dx", true, 1)

func (l *pooledLibrary) workBytes(c *DeviceCall) int64 {
	plain := l.whole(c)
	return plain.Args[l.pooled].packedBytes() + l.libraryConvolution.workBytes(plain)
}
