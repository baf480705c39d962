package gpu_test

import (
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
	"dahl/kernels/offload"
	"dahl/must"
)

// TestConvolutionLibraryShares checks by hand what cuDNN's part of a call is, and how many
// launches lay operands out before it and after it. The workspace is 8 MiB and, each rounded up to 256
// bytes, room for the operands, which copies have the beginning of and cuDNN the rest.
func TestConvolutionLibraryShares(t *testing.T) {
	const work, mib = uint64(1) << 40, int64(1) << 20
	geometry := kerneltest.ConvParams(1, 2)
	for _, c := range []struct {
		name, op      string
		shapes        [][]int
		params        dag.Params
		margin        int
		before, after int
		copies        []int64 // elements of copies in the workspace, in their order
		x, y          [4]int32
	}{
		{"filters are turned", "conv2d.nhwc", [][]int{{2, 6, 7, 7}, {2, 11, 13, 5}, {3, 3, 5, 7}, {7}}, kerneltest.ConvReLUParams(1, 2, 1), 0,
			1, 0, []int64{7 * 45}, [4]int32{715, 1, 65, 5}, [4]int32{294, 1, 49, 7}},
		// x and the filters are copied first, y last.
		{"regions", "conv2d.nhwc", [][]int{{2, 6, 7, 7}, {2, 11, 13, 5}, {3, 3, 5, 7}, {7}}, kerneltest.ConvReLUParams(1, 2, 1), 1,
			2, 1, []int64{2 * 715, 2 * 294, 7 * 45}, [4]int32{715, 1, 65, 5}, [4]int32{294, 1, 49, 7}},
		{"and the mask follows", "conv2d.nhwc.dx", [][]int{{2, 11, 13, 5}, {2, 6, 7, 7}, {3, 3, 7, 5}, {2, 11, 13, 5}}, geometry, 0,
			1, 1, []int64{7 * 45}, [4]int32{715, 1, 65, 5}, [4]int32{294, 1, 49, 7}},
		// The gradient, to which is added, comes and goes; the sums of the bias follow, not split.
		{"gradients are turned", "conv2d.nhwc.dw", [][]int{{3, 3, 5, 7}, {2, 6, 7, 7}, {2, 11, 13, 5}, {7}}, geometry, 0,
			1, 2, []int64{7 * 45}, [4]int32{715, 1, 65, 5}, [4]int32{294, 1, 49, 7}},
		// The gradient as cuDNN gives it comes second; then the turn, the step, the bias.
		{"filters descend", "conv2d.nhwc.dw.sgd", [][]int{{7, 5, 3, 3}, {2, 6, 7, 7}, {2, 11, 13, 5}, {2}, {7}},
			append(geometry[:3:3], kerneltest.SGDParams(0, 0, 0)...), 0,
			0, 3, []int64{7 * 45, 7 * 45}, [4]int32{715, 1, 65, 5}, [4]int32{294, 1, 49, 7}},
		{"filters without biases descend", "conv2d.nhwc.dw.sgd.nobias", [][]int{{7, 5, 3, 3}, {2, 6, 7, 7}, {2, 11, 13, 5}, {2}},
			append(geometry[:3:3], kerneltest.SGDParams(0, 0, 0)...), 0,
			0, 2, []int64{7 * 45, 7 * 45}, [4]int32{715, 1, 65, 5}, [4]int32{294, 1, 49, 7}},
		// Of 6×7 pixels 3×3 windows of 2×2 are pooled: the map of all pixels comes first, then as above.
		{"pooled", "conv2d.nhwc.pool", [][]int{{2, 3, 3, 7}, {2, 3, 3, 7}, {2, 11, 13, 5}, {3, 3, 5, 7}, {7}}, kerneltest.ConvPoolParams(1, 2, 2, 2), 0,
			1, 1, []int64{2 * 294, 7 * 45}, [4]int32{715, 1, 65, 5}, [4]int32{294, 1, 49, 7}},
		{"spread", "conv2d.nhwc.pool.dw", [][]int{{3, 3, 5, 7}, {2, 3, 3, 7}, {2, 3, 3, 7}, {2, 11, 13, 5}, {7}}, kerneltest.ConvPoolParams(1, 2, 2, 2), 0,
			2, 2, []int64{2 * 294, 7 * 45}, [4]int32{715, 1, 65, 5}, [4]int32{294, 1, 49, 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, _ := kernels.KernelByName(c.op)
			modes := kerneltest.FirstModes(k)[:len(c.shapes)]
			if strings.HasSuffix(c.op, ".dw") {
				modes[0] = dag.ReadWrite
			}
			s := kerneltest.New(k, dag.Float32, c.shapes, modes, c.params, c.margin)
			must.Do(t, kernels.Validate(&s.Spec))
			bases := make([]uint64, len(c.shapes))
			for i := range bases {
				bases[i] = uint64(i+1) << 32
			}
			v, _ := k.Variant("cudnn")
			call := s.DeviceCall(bases, work)
			before, part, after := v.Before(call), v.LibraryCall(call).(offload.Convolution), v.Launches(call)
			if len(before) != c.before || len(after) != c.after {
				t.Errorf("%d launches before and %d after, want %d and %d", len(before), len(after), c.before, c.after)
			}
			if part.X.Stride != c.x || part.Y.Stride != c.y {
				t.Errorf("strides %v and %v, want %v and %v", part.X.Stride, part.Y.Stride, c.x, c.y)
			}
			if x, y := [4]int32{2, 5, 11, 13}, [4]int32{2, 7, 6, 7}; part.X.Extent != x || part.Y.Extent != y || part.Window != 3 || part.Pad != 1 || part.Stride != 2 {
				t.Errorf("a convolution of %+v to %+v, window %d", part.X, part.Y, part.Window)
			}
			rounded := func(elements int64) int64 { return (elements*4 + 255) / 256 * 256 }
			at := work
			for i, n := range c.copies {
				if last := i == len(c.copies)-1; last && part.W != at {
					t.Errorf("filters at workspace + %d, want %d", part.W-work, at-work)
				}
				at += uint64(rounded(n))
			}
			room := 8*mib + rounded(2*715) + rounded(2*294) + rounded(7*45)
			if strings.Contains(c.op, ".sgd") {
				room += rounded(7 * 45)
			}
			if strings.Contains(c.op, ".pool") {
				room += rounded(2 * 294)
			}
			if part.Work != at || part.WorkBytes != room-int64(at-work) || v.WorkspaceBytes(&s.Spec) != room {
				t.Errorf("cuDNN has %d bytes from workspace + %d of %d, want %d from %d of %d", part.WorkBytes, part.Work-work,
					v.WorkspaceBytes(&s.Spec), room-int64(at-work), at-work, room)
			}
		})
	}
}
