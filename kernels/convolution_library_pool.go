package kernels

import (
	"slices"

	"dahl/dag"
	"dahl/kernels/offload"
)

// Convolutions with pooling by cuDNN are convolutions without pooling that leave the whole map in
// the workspace. Our kernels pool the map, or spread its gradient over it.

// whole is the call without pooling, of a map at the beginning of the workspace.
func (l *libraryConvolution) whole(c *DeviceCall) *DeviceCall {
	plain := &DeviceCall{Type: c.Type, Args: slices.Delete(slices.Clone(c.Args), l.y, l.y+1)}
	plain.Params = append(plain.Params, c.Params[:ownParam]...)
	if l.kind == offload.Forward {
		plain.Params = append(plain.Params, 0) // the scan takes positive parts
	}
	plain.Params = append(plain.Params, c.Params[ownParam+2:]...)
	x, filters := &plain.Args[l.x], &plain.Args[l.w]
	k, g, pooled := filters.Shape[l.window().i], windowingOf(c.Params), &c.Args[l.y]
	shape := []int{x.Shape[0], windows(x.Shape[1], k, g.rows.before, g.rows.stride), windows(x.Shape[2], k, g.columns.before, g.columns.stride), pooled.Shape[3]}
	mode := dag.Read
	if l.kind == offload.Forward {
		mode = dag.Write
	}
	z := BindDevice(c.Work, &dag.Buffer{Type: c.Type, Shape: shape}, nil, mode)
	plain.Args[l.y], plain.Work = z, c.Work+uint64(z.packedBytes())
	return plain
}

// ofPooled is a [shareOut].
func (l *libraryConvolution) ofPooled(c *DeviceCall, tf32 bool) *convolutionCall {
	plain := l.whole(c)
	to := l.of(plain, tf32)
	z := &plain.Args[l.y]
	if l.kind == offload.Forward {
		to.after = append(to.after, scanLaunch(c, z.pixels()))
		return to
	}
	size, step := c.Params[ownParam], c.Params[ownParam+1]
	spread := &DeviceCall{Type: c.Type, Params: []float64{step, step, 0, 0, size, size}, Args: []DeviceArg{*z, c.Args[l.y], c.Args[l.y+1]}}
	to.before = append(spreadMaxima(spread), to.before...)
	return to
}

// spreadMaxima is maxpool.nhwc.dx.
var spreadMaxima = spreadOnCUDA("maxpool.dx", true)

func (l *libraryConvolution) pooledWorkBytes(c *DeviceCall) int64 {
	plain := l.whole(c)
	return plain.Args[l.y].packedBytes() + l.workBytes(plain)
}
