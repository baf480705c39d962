package gpu

import (
	"slices"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Convolutions with pooling by cuDNN are convolutions without pooling that leave the whole map in
// the workspace. Our kernels pool the map, or spread its gradient over it.

// whole is the call without pooling, of a map at the beginning of the workspace.
func (l *LibraryConvolution) whole(c *calls.DeviceCall) *calls.DeviceCall {
	plain := &calls.DeviceCall{Type: c.Type, Args: slices.Delete(slices.Clone(c.Args), l.Y, l.Y+1)}
	plain.Params = append(plain.Params, c.Params[:calls.OwnParam]...)
	if l.Kind == offload.Forward {
		plain.Params = append(plain.Params, 0) // the scan takes positive parts
	}
	plain.Params = append(plain.Params, c.Params[calls.OwnParam+2:]...)
	x, filters := &plain.Args[l.X], &plain.Args[l.W]
	k, g, pooled := filters.Shape[l.window().i], calls.WindowingOf(c.Params), &c.Args[l.Y]
	shape := []int{x.Shape[0], calls.Windows(x.Shape[1], k, g.Rows.Before, g.Rows.Stride), calls.Windows(x.Shape[2], k, g.Columns.Before, g.Columns.Stride), pooled.Shape[3]}
	mode := dag.Read
	if l.Kind == offload.Forward {
		mode = dag.Write
	}
	z := calls.BindDevice(c.Work, &dag.Buffer{Type: c.Type, Shape: shape}, nil, mode)
	plain.Args[l.Y], plain.Work = z, c.Work+uint64(z.PackedBytes())
	return plain
}

// ofPooled is a [shareOut].
func (l *LibraryConvolution) ofPooled(c *calls.DeviceCall, tf32 bool) *convolutionCall {
	plain := l.whole(c)
	to := l.callOf(plain, tf32)
	z := &plain.Args[l.Y]
	if l.Kind == offload.Forward {
		to.after = append(to.after, scanLaunch(c, z.Pixels()))
		return to
	}
	size, step := c.Params[calls.OwnParam], c.Params[calls.OwnParam+1]
	spread := &calls.DeviceCall{Type: c.Type, Params: []float64{step, step, 0, 0, size, size}, Args: []calls.DeviceArg{*z, c.Args[l.Y], c.Args[l.Y+1]}}
	to.before = append(spreadMaxima(spread), to.before...)
	return to
}

// spreadMaxima is maxpool.nhwc.dx.
var spreadMaxima = SpreadOnCUDA("maxpool.dx", true)

func (l *LibraryConvolution) pooledWorkBytes(c *calls.DeviceCall) int64 {
	plain := l.whole(c)
	return plain.Args[l.Y].PackedBytes() + l.workBytes(plain)
}
