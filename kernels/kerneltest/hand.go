package kerneltest

import (
	"fmt"
	"math"
	"slices"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
)

// HandCase is a call small enough to compute by hand.
type HandCase struct {
	Name   string // what the case is about
	Op     string
	Params dag.Params
	Shapes [][]int
	In     [][]float64 // values of all operands before the call, nil for those it writes
	Want   [][]float64 // those after it, nil for those that are only read
}

// Case builds the call, as New does.
func (h *HandCase) Case(real dag.DType, margin int) (*Case, error) {
	k, err := kernels.KernelByName(h.Op)
	if err != nil {
		return nil, err
	}
	c := New(k, real, h.Shapes, FirstModes(k), h.Params, margin)
	for i, values := range h.In {
		if values != nil {
			c.Set(i, func(j int) float64 { return values[j] })
		}
	}
	return c, kernels.Validate(&c.Spec)
}

// Compare compares results with those computed by hand. NaN equals NaN.
func (h *HandCase) Compare(got *Case, v *calls.Variant) error {
	for i, want := range h.Want {
		if g := got.Values(i); want != nil && !slices.EqualFunc(g, want, same) {
			return fmt.Errorf("%s %s %v, %s: %s is %v, want %v", h.Op, v.Name, got.Spec.Type, h.Name, got.Kernel.Operands[i].Name, g, want)
		}
	}
	return nil
}

func same(a, b float64) bool { return a == b || a != a && b != b }

var nan, inf = math.NaN(), math.Inf(1)

// HandCases has one at least for every operation that computes, and for each of its attributes. All numbers are exact in
// float32.
func HandCases() []HandCase {
	return slices.Concat(handCases, normCases(), dropCases(), rowCases(), attentionCases(), xentCases())
}

var depthwise = dag.Params{{Name: "dilation", Value: 2}, {Name: "groups", Value: 2}}

var handCases = []HandCase{
	{
		// x = 1 2 3   w = 1  2   y = 1·1+2·2+3·4+4·5 = 37, 1·2+2·3+3·5+4·6 = 47, each + 10
		//     4 5 6       3  4   A true convolution would turn w round: 4·1+3·2+2·4+1·5 = 23.
		Name: "cross-correlation, not convolution", Op: "conv2d.nhwc", Params: ConvReLUParams(0, 1, 0),
		Shapes: [][]int{{1, 1, 2, 1}, {1, 2, 3, 1}, {2, 2, 1, 1}, {1}},
		In:     [][]float64{nil, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4}, {10}},
		Want:   [][]float64{{47, 57}, nil, nil, nil},
	},
	{
		// Padding 1, stride 2, so windows begin at -1 and 1 in both directions.
		// x = 1 2 3   w = 1 1 1   window (-1,-1): rows 0,1 columns 0,1: 1+2+4+5 = 12
		//     4 5 6       1 1 1   (-1,1): rows 0,1 columns 1,2: 2+3+5+6 = 16
		//     7 8 9       1 1 1   (1,-1): 4+5+7+8 = 24, (1,1): 5+6+8+9 = 28
		Name: "padding and stride", Op: "conv2d.nhwc",
		Params: ConvReLUParams(1, 2, 0),
		Shapes: [][]int{{1, 2, 2, 1}, {1, 3, 3, 1}, {3, 3, 1, 1}},
		In:     [][]float64{nil, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
		Want:   [][]float64{{12, 16, 24, 28}, nil, nil},
	},
	{
		// Two groups of one channel and two filters, whose two taps are two columns apart: filter 0
		// gives 1·1+10·3 = 31, filter 1 2·1+20·3 = 62 on channel 0; 1·4+10·6 = 64 and 3·4+0·6 = 12 on channel 1.
		Name: "groups and dilation", Op: "conv2d.nhwc", Params: append(ConvReLUParams(0, 1, 0), depthwise...),
		Shapes: [][]int{{1, 1, 1, 4}, {1, 1, 3, 2}, {1, 2, 1, 4}},
		In:     [][]float64{nil, {1, 4, 2, 5, 3, 6}, {1, 2, 1, 3, 10, 20, 10, 0}},
		Want:   [][]float64{{31, 62, 64, 12}, nil, nil},
	},
	{
		// Each dy times columns 0 and 2 of the channel of its group, 1 3 or 4 6: 1 3, 2 6, 12 18 and 16 24.
		Name: "each filter sees its group", Op: "conv2d.nhwc.dw", Params: append(ConvParams(0, 1), depthwise...),
		Shapes: [][]int{{1, 2, 1, 4}, {1, 1, 1, 4}, {1, 1, 3, 2}, {4}},
		In:     [][]float64{nil, {1, 2, 3, 4}, {1, 4, 2, 5, 3, 6}, nil},
		Want:   [][]float64{{1, 2, 12, 16, 3, 6, 18, 24}, nil, nil, {1, 2, 3, 4}},
	},
	{
		// dy = 1 2 3 4 of the same: channel 0 gets 1·1+2·2 and 1·10+2·20, channel 1 3·1+4·3 and 3·10+4·0. Filters turned
		// round have tap 1 first.
		Name: "each filter spreads to its group", Op: "conv2d.nhwc.dx", Params: append(ConvParams(0, 1), depthwise...),
		Shapes: [][]int{{1, 1, 3, 2}, {1, 1, 1, 4}, {1, 2, 4, 1}},
		In:     [][]float64{nil, {1, 2, 3, 4}, {10, 20, 10, 0, 1, 2, 1, 3}},
		Want:   [][]float64{{5, 15, 0, 0, 50, 30}, nil, nil},
	},
	{
		// Windows two columns and one row apart.
		Name: "columns have a stride of their own", Op: "conv2d.nhwc", Params: append(ConvReLUParams(0, 1, 0), dag.Param{Name: "column_stride", Value: 2}),
		Shapes: [][]int{{1, 2, 3, 1}, {1, 2, 5, 1}, {1, 1, 1, 1}},
		In:     [][]float64{nil, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {1}},
		Want:   [][]float64{{1, 3, 5, 6, 8, 10}, nil, nil},
	},
	{
		// Windows of one row and two columns, three columns apart: 3 1 and 5 4.
		Name: "rectangles three columns apart", Op: "maxpool.nhwc", Params: append(PoolWindowParams(1, 0, 0, 1, 2), dag.Param{Name: "column_stride", Value: 3}),
		Shapes: [][]int{{1, 1, 2, 1}, {1, 1, 2, 1}, {1, 1, 5, 1}},
		In:     [][]float64{nil, nil, {3, 1, 2, 5, 4}},
		Want:   [][]float64{{3, 5}, {0, 0}, nil},
	},
	{
		// The first case with two filters, the second the
		// negative of the first: 37, 47, plus 10, and -37, -47, plus 40: 3 and, cut off, 0.
		Name: "cross-correlation, then the positive part", Op: "conv2d.nhwc", Params: ConvReLUParams(0, 1, 1),
		Shapes: [][]int{{1, 1, 2, 2}, {1, 2, 3, 1}, {2, 2, 1, 2}, {2}},
		In:     [][]float64{nil, {1, 2, 3, 4, 5, 6}, {1, -1, 2, -2, 3, -3, 4, -4}, {10, 40}},
		Want:   [][]float64{{47, 3, 57, 0}, nil, nil, nil},
	},
	{
		// Pixels of two channels: 1·5+2·6+3·7+4·8 = 70 from w[0,0] = 5 6 and w[0,1] = 7 8; w's
		// second row meets the padding below, its first row the one above: 9·1+10·2+11·3+12·4 = 110.
		Name: "rows of the window on the padding", Op: "conv2d.nhwc", Params: ConvReLUParams(1, 1, 0),
		Shapes: [][]int{{1, 2, 3, 1}, {1, 1, 2, 2}, {2, 2, 2, 1}},
		In:     [][]float64{nil, {1, 2, 3, 4}, {5, 6, 7, 8, 9, 10, 11, 12}},
		// columns -1, 0, 1: (x0·w[i,1]), (all), (x1·w[i,0]) for i = 1, then i = 0
		Want: [][]float64{{11*1 + 12*2, 110, 9*3 + 10*4, 7*1 + 8*2, 70, 5*3 + 6*4}, nil, nil},
	},
	{
		// y[u] = w0·x[u]+w1·x[u+1] over one row (the second row of w meets a second row
		// of x): dx = dy0·w, shifted by one dy1·w. With dy = 1, 10 and w = 1 2 / 3 4, turned round 4 3 / 2 1:
		// row 0: 1·1, 1·2+10·1, 10·2 = 1 12 20; row 1: 1·3, 1·4+10·3, 10·4 = 3 34 40.
		// x is not positive at the second and the last pixel.
		Name: "each dy spreads the filter, cut off where x is not positive", Op: "conv2d.nhwc.dx", Params: ConvParams(0, 1),
		Shapes: [][]int{{1, 2, 3, 1}, {1, 1, 2, 1}, {2, 2, 1, 1}, {1, 2, 3, 1}},
		In:     [][]float64{nil, {1, 10}, {4, 3, 2, 1}, {1, 0, 0x1p-149, 1, inf, nan}},
		Want:   [][]float64{{1, 0, 20, 3, 34, 0}, nil, nil, nil},
	},
	{
		// dw[i,j] = dy0·x[i,j] + dy1·x[i,j+1], dy = 1, 10, x = 1 2 3 / 4 5 6:
		// 1+20, 2+30, 4+50, 5+60; db = 11. The second filter has twice the dy.
		Name: "each dy spreads its window", Op: "conv2d.nhwc.dw", Params: ConvParams(0, 1),
		Shapes: [][]int{{2, 2, 1, 2}, {1, 1, 2, 2}, {1, 2, 3, 1}, {2}},
		In:     [][]float64{nil, {1, 2, 10, 20}, {1, 2, 3, 4, 5, 6}, nil},
		Want:   [][]float64{{21, 42, 32, 64, 54, 108, 65, 130}, nil, nil, {11, 22}},
	},
	{
		// x = 1 2 3 9   filters of one element, 1 and -1, bias -1 and -3: 4 5 6 - 1 = 5 at most in
		//     4 6 6 9   the window of columns 0-1 (position 3), 5 again in columns 1-2, first at 2;
		// the second filter gives at most -4 and -5. The window of columns 2-3 has 8 at 1.
		Name: "first maximum, 255 where it is cut off", Op: "conv2d.nhwc.pool", Params: ConvPoolParams(0, 1, 2, 1),
		Shapes: [][]int{{1, 1, 3, 2}, {1, 1, 3, 2}, {1, 2, 4, 1}, {1, 1, 1, 2}, {2}},
		In:     [][]float64{nil, nil, {1, 2, 3, 9, 4, 6, 6, 9}, {1, -1}, {-1, -3}},
		Want:   [][]float64{{5, 0, 5, 0, 8, 0}, {3, 255, 2, 255, 1, 255}, nil, nil, nil},
	},
	{
		// One window, NaN at position 2 of the convolution, and infinity before it.
		Name: "NaN wins", Op: "conv2d.nhwc.pool", Params: ConvPoolParams(0, 1, 2, 2),
		Shapes: [][]int{{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 2, 2, 1}, {1, 1, 1, 1}},
		In:     [][]float64{nil, nil, {1, inf, nan, 3}, {1}},
		Want:   [][]float64{{nan}, {2}, nil, nil},
	},
	{
		// x = 1 2 3   Filters of one element, windows of columns 0-1 and 1-2. Channel 0: position 1
		//     4 5 6   of the first is 2, position 3 of the second is 6: 10·2+20·6 = 140, 10+20 = 30.
		// Channel 1: position 0 of the first is 1, the second passes nothing: 3·1, 3.
		Name: "the maximum's pixel only", Op: "conv2d.nhwc.pool.dw", Params: ConvPoolParams(0, 1, 2, 1),
		Shapes: [][]int{{1, 1, 1, 2}, {1, 1, 2, 2}, {1, 1, 2, 2}, {1, 2, 3, 1}, {2}},
		In:     [][]float64{nil, {10, 3, 20, 5}, {1, 0, 3, 255}, {1, 2, 3, 4, 5, 6}, nil},
		Want:   [][]float64{{140, 3}, nil, nil, nil, {30, 3}},
	},
	{
		// x = 1 2 3, w = (1 0 1), (0 1 2): y = 1+3, 2+6, plus b = 10, 20.
		Name: "weights are (out, in)", Op: "dense",
		Shapes: [][]int{{1, 2}, {1, 3}, {2, 3}, {2}},
		In:     [][]float64{nil, {1, 2, 3}, {1, 0, 1, 0, 1, 2}, {10, 20}},
		Want:   [][]float64{{14, 28}, nil, nil, nil},
	},
	{
		// dx = 5·(1 0 1) + 7·(0 1 2)
		Name: "rows of w by dy", Op: "dense.dx",
		Shapes: [][]int{{1, 3}, {1, 2}, {2, 3}},
		In:     [][]float64{nil, {5, 7}, {1, 0, 1, 0, 1, 2}},
		Want:   [][]float64{{5, 7, 19}, nil, nil},
	},
	{
		// Two samples: dw = dyᵀ·x, dy = (5), (7), x = (1 2 3), (4 5 6): 5·x0 + 7·x1; db = 12.
		Name: "samples add up", Op: "dense.dw",
		Shapes: [][]int{{1, 3}, {2, 1}, {2, 3}, {1}},
		In:     [][]float64{nil, {5, 7}, {1, 2, 3, 4, 5, 6}, nil},
		Want:   [][]float64{{33, 45, 57}, nil, nil, {12}},
	},
	{
		// As above with b = -20, 20 and -8: 4-20 < 0, 8+20; the third output is 0+8-8.
		Name: "a negative sum becomes zero", Op: "dense.relu",
		Shapes: [][]int{{1, 3}, {1, 3}, {3, 3}, {3}},
		In:     [][]float64{nil, {1, 2, 3}, {1, 0, 1, 0, 1, 2, 0, 4, 0}, {-20, 20, -8}},
		Want:   [][]float64{{0, 28, 0}, nil, nil, nil},
	},
	{
		// dx = 5·(1 0 1 0) + 7·(0 1 2 1), kept where x > 0.
		Name: "no gradient at zero and at NaN", Op: "dense.dx.relu",
		Shapes: [][]int{{1, 4}, {1, 2}, {2, 4}, {1, 4}},
		In:     [][]float64{nil, {5, 7}, {1, 0, 1, 0, 0, 1, 2, 1}, {0x1p-149, 0, inf, nan}},
		Want:   [][]float64{{5, 0, 19, 0}, nil, nil, nil},
	},
	{
		Name: "NaN passes, infinity too, zero and NaN have no gradient", Op: "relu",
		Shapes: [][]int{{7}, {7}, {7}},
		In:     [][]float64{nil, nil, {-1, 0, 2, nan, inf, -inf, 0x1p-149}},
		Want:   [][]float64{{0, 0, 2, nan, inf, 0, 0x1p-149}, {0, 0, 1, 0, 1, 0, 1}, nil},
	},
	{
		Name: "a masked gradient is 0 even if infinite", Op: "relu.dx",
		Shapes: [][]int{{4}, {4}, {4}},
		In:     [][]float64{nil, {3, inf, nan, nan}, {1, 0, 0, 1}},
		Want:   [][]float64{{3, 0, 0, nan}, nil, nil},
	},
	{
		// Windows of columns 0-1, 2-3, 4-5, 6-7; the ninth column is in none. Ties: the
		// first of the equal 5s is at 1; of two NaNs the first, at 2, wins over 9.
		Name: "ties, and the last column dropped", Op: "maxpool.nhwc", Params: PoolParams(2, 2),
		Shapes: [][]int{{1, 1, 4, 1}, {1, 1, 4, 1}, {1, 2, 9, 1}},
		In: [][]float64{nil, nil, {
			1, 5, -3, -2, 9, 9, 1, 2, 99,
			5, 2, -1, -4, nan, nan, 3, 4, 99}},
		Want: [][]float64{{5, -1, nan, 4}, {1, 2, 2, 3}, nil},
	},
	{
		Name: "mean of each window", Op: "avgpool.nhwc", Params: PoolParams(2, 2), // (1+2+5+6)/4, (3+4+7+8)/4
		Shapes: [][]int{{1, 1, 2, 1}, {1, 2, 4, 1}},
		In:     [][]float64{nil, {1, 2, 3, 4, 5, 6, 7, 8}},
		Want:   [][]float64{{3.5, 5.5}, nil},
	},
	{
		Name: "a quarter to each, overlaps add", Op: "avgpool.nhwc.dx", Params: PoolParams(2, 1),
		Shapes: [][]int{{1, 2, 3, 1}, {1, 1, 2, 1}},
		In:     [][]float64{nil, {4, 8}},
		Want:   [][]float64{{1, 3, 2, 1, 3, 2}, nil},
	},
	{
		Name: "rows by index, repeats allowed", Op: "load", Params: dag.Params{{Name: "divisor", Value: 4}},
		Shapes: [][]int{{3, 2}, {2, 2}, {3}},
		In:     [][]float64{nil, {1, 2, 8, 255}, {1, 0, 1}},
		Want:   [][]float64{{2, 63.75, 0.25, 0.5, 2, 63.75}, nil, nil},
	},
	{
		// The second image has channels (1 2 3) and (10 20 30): pixels (1 10), (2 20), (3 30), divided by 4.
		Name: "rows by index, channels last", Op: "load.nhwc", Params: dag.Params{{Name: "divisor", Value: 4}},
		Shapes: [][]int{{1, 1, 3, 2}, {2, 2, 1, 3}, {1}},
		In:     [][]float64{nil, {9, 9, 9, 9, 9, 9, 1, 2, 3, 10, 20, 30}, {1}},
		Want:   [][]float64{{0.25, 2.5, 0.5, 5, 0.75, 7.5}, nil, nil},
	},
	{
		Name: "the channels of a pixel come together", Op: "nhwc",
		Shapes: [][]int{{1, 1, 3, 2}, {1, 2, 1, 3}},
		In:     [][]float64{nil, {1, 2, 3, 10, 20, 30}},
		Want:   [][]float64{{1, 10, 2, 20, 3, 30}, nil},
	},
	{
		Name: "the pixels of a channel come together", Op: "nchw",
		Shapes: [][]int{{1, 2, 1, 3}, {1, 1, 3, 2}},
		In:     [][]float64{nil, {1, 10, 2, 20, 3, 30}},
		Want:   [][]float64{{1, 2, 3, 10, 20, 30}, nil},
	},
	{
		// One input channel, filters 1 2 / 3 4 and 5 6 / 7 8: each position of the window has both, the second time turned round.
		Name: "filters last, and turned round", Op: "hwio",
		Shapes: [][]int{{2, 2, 1, 2}, {2, 1, 2, 2}, {2, 2, 2, 1}},
		In:     [][]float64{nil, {1, 2, 3, 4, 5, 6, 7, 8}, nil},
		Want:   [][]float64{{1, 5, 2, 6, 3, 7, 4, 8}, nil, {4, 8, 3, 7, 2, 6, 1, 5}},
	},
	{
		// The same filters turned round: the window is read from its last position.
		Name: "turned round", Op: "hwoi",
		Shapes: [][]int{{2, 2, 2, 1}, {2, 1, 2, 2}},
		In:     [][]float64{nil, {1, 2, 3, 4, 5, 6, 7, 8}},
		Want:   [][]float64{{4, 8, 3, 7, 2, 6, 1, 5}, nil},
	},
	{
		Name: "back to PyTorch's order", Op: "oihw",
		Shapes: [][]int{{2, 1, 2, 2}, {2, 2, 1, 2}},
		In:     [][]float64{nil, {1, 5, 2, 6, 3, 7, 4, 8}},
		Want:   [][]float64{{1, 2, 3, 4, 5, 6, 7, 8}, nil},
	},
	{
		// Windows of 2 at stride 1 over 2×3 share column 1: channel 0 adds 3+4 there, of
		// channel 1 only the second window passes anything.
		Name: "overlapping windows add, 255 passes nothing", Op: "maxpool.nhwc.dx", Params: PoolParams(2, 1),
		Shapes: [][]int{{1, 2, 3, 2}, {1, 1, 2, 2}, {1, 1, 2, 2}},
		In:     [][]float64{nil, {3, 10, 4, 20}, {1, 255, 0, 3}},
		Want:   [][]float64{{0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 20}, nil, nil},
	},
	{
		// Windows of 1 at stride 2 leave the pixel between them at 0.
		Name: "pixels between windows get nothing", Op: "maxpool.nhwc.dx", Params: PoolParams(1, 2),
		Shapes: [][]int{{1, 1, 4, 1}, {1, 1, 2, 1}, {1, 1, 2, 1}},
		In:     [][]float64{nil, {3, 4}, {0, 0}},
		Want:   [][]float64{{3, 0, 4, 0}, nil, nil},
	},
	{
		Name: "labels by index", Op: "load.labels",
		Shapes: [][]int{{3}, {2}, {3}},
		In:     [][]float64{nil, {7, 9}, {1, 0, 1}},
		Want:   [][]float64{{9, 7, 9}, nil, nil},
	},
	{
		Name: "labels of two positions by index", Op: "load.labels",
		Shapes: [][]int{{1, 2}, {2, 2}, {1}},
		In:     [][]float64{nil, {1, 2, 3, 4}, {1}},
		Want:   [][]float64{{3, 4}, nil, nil},
	},
	{
		Name: "rows of numbers by index", Op: "load.rows",
		Shapes: [][]int{{3, 2}, {2, 2}, {3}},
		In:     [][]float64{nil, {0.5, -1, 0.25, 8}, {1, 0, 1}},
		Want:   [][]float64{{0.25, 8, 0.5, -1, 0.25, 8}, nil, nil},
	},
	{
		// Two of four labels are there.
		Name: "labels that count", Op: "counted",
		Shapes: [][]int{{1}, {4}},
		In:     [][]float64{nil, {0, -1, 7, -1}},
		Want:   [][]float64{{2}, nil},
	},
	{
		// The first row has no label. The second one has logits of infinite distance: no loss, and no gradient but -0·3/2 and 0·3/2.
		Name: "no label, no loss", Op: "softmax_xent", Params: dag.Params{{Name: "batch", Value: 2}, {Name: "smoothing", Value: 0}},
		Shapes: [][]int{{2, 2}, {2}, {2}, {2, 2}, {2}, {1}},
		In:     [][]float64{nil, nil, nil, {1, 2, 0, -inf}, {-1, 0}, {1.5}},
		Want:   [][]float64{{0, 0, 0, 0}, {0, 0}, {0, 1}, nil, nil, nil},
	},
	{
		Name: "rows of tokens", Op: "embedding",
		Shapes: [][]int{{3, 2}, {2, 2}, {3}},
		In:     [][]float64{nil, {0.5, -1, 0.25, 8}, {1, 0, 1}},
		Want:   [][]float64{{0.25, 8, 0.5, -1, 0.25, 8}, nil, nil},
	},
	{
		// Token 2 has the rows 0 and 2: 1+4 and 2+8. Token 0 has none.
		Name: "sums by token", Op: "embedding.dw",
		Shapes: [][]int{{3, 2}, {3, 2}, {3}},
		In:     [][]float64{nil, {1, 2, 16, 32, 4, 8}, {2, 1, 2}},
		Want:   [][]float64{{0, 0, 16, 32, 5, 10}, nil, nil},
	},
	{
		Name: "other tokens", Op: "marks", Params: dag.Params{{Name: "token", Value: 3}, {Name: "behind", Value: 0}},
		Shapes: [][]int{{2, 3}, {2, 3}}, In: [][]float64{nil, {1, 3, 3, 3, 2, 0}}, Want: [][]float64{{1, 0, 0, 0, 1, 1}, nil},
	},
	{
		Name: "behind the first and before the second token", Op: "marks", Params: dag.Params{{Name: "token", Value: 3}, {Name: "behind", Value: 1}},
		Shapes: [][]int{{1, 7}, {1, 7}}, In: [][]float64{nil, {1, 3, 2, 2, 3, 4, 3}}, Want: [][]float64{{0, 0, 1, 1, 1, 0, 0}, nil},
	},
	{
		Name: "a vector for each position", Op: "positions",
		Shapes: [][]int{{2, 2, 1}, {2, 2, 1}, {2, 1}},
		In:     [][]float64{nil, {1, 2, 3, 4}, {10, 20}},
		Want:   [][]float64{{11, 22, 13, 24}, nil, nil},
	},
	{
		Name: "sums by position", Op: "positions.dw",
		Shapes: [][]int{{2, 1}, {2, 2, 1}},
		In:     [][]float64{nil, {1, 2, 3, 4}},
		Want:   [][]float64{{4, 6}, nil},
	},
	{
		// The token 9 stands before and behind the two rows of each sequence.
		Name: "rows of sequences moved, and a token", Op: "shift", Params: dag.Params{{Name: "before", Value: 1}},
		Shapes: [][]int{{2, 4, 1}, {2, 2, 1}, {1, 1}},
		In:     [][]float64{nil, {1, 2, 3, 4}, {9}},
		Want:   [][]float64{{9, 1, 2, 9, 9, 3, 4, 9}, nil, nil},
	},
	{
		Name: "zeros around a row", Op: "shift", Params: dag.Params{{Name: "before", Value: 2}},
		Shapes: [][]int{{1, 4, 2}, {1, 1, 2}},
		In:     [][]float64{nil, {5, 6}},
		Want:   [][]float64{{0, 0, 0, 0, 5, 6, 0, 0}, nil},
	},
	{
		// The first of equal maxima is the prediction, and a maximum below 0 is one.
		Name: "predictions", Op: "softmax_xent.eval", Params: SmoothingParams(0),
		Shapes: [][]int{{3}, {3}, {3, 2}, {3}},
		In:     [][]float64{nil, nil, {5, 5, 5, 5, -7, -1}, {0, 1, 1}},
		Want:   [][]float64{nil, {1, 0, 1}, nil, nil},
	},
	{
		// Two infinitely unequal logits: e = 0, 1, s = 1, loss of the winner 0, gradient 0;
		// for the loser the loss is 2000 and the gradient ∓1/B. 1000 alone would overflow exp.
		Name: "no overflow at large logits", Op: "softmax_xent", Params: LossParams(2, 0),
		Shapes: [][]int{{2, 2}, {2}, {2}, {2, 2}, {2}},
		In:     [][]float64{nil, nil, nil, {-1000, 1000, -1000, 1000}, {1, 0}},
		Want:   [][]float64{{0, 0, -0.5, 0.5}, {0, 2000}, {1, 0}, nil, nil},
	},
	{
		// p = (0 1) of both samples, targets (¼ ¾) and (¾ ¼), B = 2. The losses are the half of the
		// class's, 0 and 2000, and a quarter of 2000 more.
		Name: "smoothed at large logits", Op: "softmax_xent", Params: LossParams(2, 0.5),
		Shapes: [][]int{{2, 2}, {2}, {2}, {2, 2}, {2}},
		In:     [][]float64{nil, nil, nil, {-1000, 1000, -1000, 1000}, {1, 0}},
		Want:   [][]float64{{-0.125, 0.125, -0.375, 0.375}, {500, 1500}, {1, 0}, nil, nil},
	},
	{
		Name: "smoothed evaluation", Op: "softmax_xent.eval", Params: SmoothingParams(0.5),
		Shapes: [][]int{{2}, {2}, {2, 2}, {2}},
		In:     [][]float64{nil, nil, {-1000, 1000, -1000, 1000}, {1, 0}},
		Want:   [][]float64{{500, 1500}, {1, 0}, nil, nil},
	},
	{
		// Off by (2 1), then by (1 0); losses (4+1)/2 and (1+0)/2; dz = 2·off/(4·2). The first of two
		// equal maxima is the prediction.
		Name: "squared error", Op: "mse", Params: dag.Params{{Name: "batch", Value: 4}},
		Shapes: [][]int{{2, 2}, {2}, {2}, {2, 2}, {2}},
		In:     [][]float64{nil, nil, nil, {3, 1, 1, 1}, {0, 1}},
		Want:   [][]float64{{0.5, 0.25, 0.25, 0}, {2.5, 0.5}, {1, 0}, nil, nil},
	},
	{
		Name: "evaluation by the squared error", Op: "mse.eval",
		Shapes: [][]int{{2}, {2}, {2, 2}, {2}},
		In:     [][]float64{nil, nil, {3, 1, 1, 1}, {0, 1}},
		Want:   [][]float64{{2.5, 0.5}, {1, 0}, nil, nil},
	},
	{
		Name: "mean", Op: "mean", Shapes: [][]int{{1}, {4}},
		In: [][]float64{nil, {1, 2, 3, 8}}, Want: [][]float64{{3.5}, nil},
	},
	{
		Name: "count", Op: "count", Shapes: [][]int{{1}, {5}},
		In: [][]float64{nil, {1, 0, 1, 1, 0}}, Want: [][]float64{{3}, nil},
	},
	{
		Name: "add", Op: "add", Shapes: [][]int{{2}, {2}},
		In: [][]float64{{1, 2}, {10, 20}}, Want: [][]float64{{11, 22}, nil},
	},
	{
		Name: "sum", Op: "sum", Shapes: [][]int{{2}, {2}, {2}},
		In: [][]float64{nil, {1, 2}, {10, -2}}, Want: [][]float64{{11, 0}, nil, nil},
	},
	{
		Name: "copy", Op: "copy", Shapes: [][]int{{2, 1}, {2, 1}},
		In: [][]float64{nil, {1, nan}}, Want: [][]float64{{1, nan}, nil},
	},
	{
		// Two channels of one row: (1+2+6)/3 and (10+20+0)/3.
		Name: "mean of all pixels", Op: "globalavgpool.nhwc",
		Shapes: [][]int{{1, 1, 1, 2}, {1, 3, 1, 2}},
		In:     [][]float64{nil, {1, 10, 2, 20, 6, 0}},
		Want:   [][]float64{{3, 10}, nil},
	},
	{
		Name: "a quarter to each pixel", Op: "globalavgpool.nhwc.dx", Params: dag.Params{{Name: "pixels", Value: 4}},
		Shapes: [][]int{{1, 2, 2, 2}, {1, 1, 1, 2}},
		In:     [][]float64{nil, {4, 8}},
		Want:   [][]float64{{1, 2, 1, 2, 1, 2, 1, 2}, nil},
	},
	{
		Name: "odd, and 1 at infinity", Op: "tanh", Shapes: [][]int{{3}, {3}},
		In: [][]float64{nil, {0, inf, -inf}}, Want: [][]float64{{0, 1, -1}, nil},
	},
	{
		Name: "1 - y²", Op: "tanh.dx", Shapes: [][]int{{3}, {3}, {3}},
		In: [][]float64{nil, {3, 3, 8}, {0, 1, -0.5}}, Want: [][]float64{{3, 0, 6}, nil, nil},
	},
	{
		Name: "from 0 to 1", Op: "sigmoid", Shapes: [][]int{{3}, {3}},
		In: [][]float64{nil, {0, inf, -inf}}, Want: [][]float64{{0.5, 1, 0}, nil},
	},
	{
		Name: "y(1 - y)", Op: "sigmoid.dx", Shapes: [][]int{{3}, {3}, {3}},
		In: [][]float64{nil, {4, 3, 16}, {0.5, 1, 0.25}}, Want: [][]float64{{1, 0, 3}, nil, nil},
	},
	{
		// 64 standard deviations from the mean all or nothing of the normal distribution lies below.
		Name: "x above, 0 below", Op: "gelu", Shapes: [][]int{{3}, {3}},
		In: [][]float64{nil, {0, 64, -64}}, Want: [][]float64{{0, 64, 0}, nil},
	},
	{
		Name: "from 0 to 1, a half at 0", Op: "gelu.dx", Shapes: [][]int{{3}, {3}, {3}},
		In: [][]float64{nil, {2, 3, 4}, {0, 64, -64}}, Want: [][]float64{{1, 3, 0}, nil, nil},
	},
	{
		Name: "x above, 0 below", Op: "gelu_tanh", Shapes: [][]int{{3}, {3}},
		In: [][]float64{nil, {0, 64, -64}}, Want: [][]float64{{0, 64, 0}, nil},
	},
	{
		Name: "from 0 to 1, a half at 0", Op: "gelu_tanh.dx", Shapes: [][]int{{3}, {3}, {3}},
		In: [][]float64{nil, {2, 3, 4}, {0, 64, -64}}, Want: [][]float64{{1, 3, 0}, nil, nil},
	},
	{
		// e^-1024 is below all numbers of both types.
		Name: "x above, 0 at 0", Op: "silu", Shapes: [][]int{{3}, {3}},
		In: [][]float64{nil, {0, 128, -1024}}, Want: [][]float64{{0, 128, 0}, nil},
	},
	{
		Name: "from 0 to 1, a half at 0", Op: "silu.dx", Shapes: [][]int{{3}, {3}, {3}},
		In: [][]float64{nil, {2, 3, 4}, {0, 128, -1024}}, Want: [][]float64{{1, 3, 0}, nil, nil},
	},
	{
		Name: "a quarter below 0", Op: "leaky_relu", Params: dag.Params{{Name: "slope", Value: 0.25}}, Shapes: [][]int{{3}, {3}},
		In: [][]float64{nil, {0, 3, -8}}, Want: [][]float64{{0, 3, -2}, nil},
	},
	{
		Name: "a quarter below 0 and at it", Op: "leaky_relu.dx", Params: dag.Params{{Name: "slope", Value: 0.25}}, Shapes: [][]int{{3}, {3}, {3}},
		In: [][]float64{nil, {4, 3, 8}, {0, 3, -8}}, Want: [][]float64{{1, 3, 2}, nil, nil},
	},
	{
		Name: "by each other", Op: "multiply", Shapes: [][]int{{3}, {3}, {3}},
		In: [][]float64{nil, {2, -3, 0.5}, {5, 7, -4}}, Want: [][]float64{{10, -21, -2}, nil, nil},
	},
	{
		Name: "sum of squares", Op: "squares", Shapes: [][]int{{1}, {2, 2}},
		In: [][]float64{nil, {1, -2, 3, 0.5}}, Want: [][]float64{{14.25}, nil},
	},
	{
		// The sums are 9 and the norm is 3: max_norm is the half of 3 + 10⁻⁶.
		Name: "clipped to the half", Op: "clip", Params: ClipParams(1.5 + 5e-7), Shapes: [][]int{{3}, {2}, {2}},
		In: [][]float64{nil, {0.5, 7}, {5, 4}}, Want: [][]float64{{0.5, 7, 0.5}, nil, nil},
	},
	{
		Name: "below the norm", Op: "clip", Params: ClipParams(4), Shapes: [][]int{{3}, {2}, {2}},
		In: [][]float64{nil, {0.5, 7}, {5, 4}}, Want: [][]float64{{0.5, 7, 1}, nil, nil},
	},
	{
		// g = ¼·4 + 2·2 = 5; w = 2 - 0.5·5
		Name: "clipped before the decay", Op: "sgd", Params: SGDParams(0, 0, 2),
		Shapes: [][]int{{1}, {1}, {3}},
		In:     [][]float64{{2}, {4}, {0.5, 1, 0.25}},
		Want:   [][]float64{{-0.5}, nil, nil},
	},
	{
		// As the last one, of twice the gradient and half of the factor.
		Name: "clipped moments", Op: "adam",
		Params: dag.Params{{Name: "beta1", Value: 0}, {Name: "beta2", Value: 0}, {Name: "eps", Value: 4}, {Name: "weight_decay", Value: 0.25}, {Name: "decoupled", Value: 1}},
		Shapes: [][]int{{1}, {1}, {3}, {1}, {1}},
		In:     [][]float64{{8}, {8}, {0.5, 5, 0.5}, {9}, {9}},
		Want:   [][]float64{{6.75}, nil, nil, {4}, {16}},
	},
	{
		Name: "plain", Op: "sgd", Params: SGDParams(0, 0, 0), // 2 - 0.5·4
		Shapes: [][]int{{1}, {1}, {2}},
		In:     [][]float64{{2}, {4}, {0.5, 1}},
		Want:   [][]float64{{0}, nil, nil},
	},
	{
		// g = 4 + 0.25·8 = 6; v = 0.5·2 + 6 = 7; w = 8 - 0.5·7 = 4.5
		Name: "momentum and weight decay", Op: "sgd", Params: SGDParams(0.5, 0, 0.25),
		Shapes: [][]int{{1}, {1}, {2}, {1}},
		In:     [][]float64{{8}, {4}, {0.5, 1}, {2}},
		Want:   [][]float64{{4.5}, nil, nil, {7}},
	},
	{
		// The same, but the step is g + 0.5·v = 6 + 3.5: w = 8 - 0.5·9.5 = 3.25
		Name: "nesterov", Op: "sgd", Params: SGDParams(0.5, 1, 0.25),
		Shapes: [][]int{{1}, {1}, {2}, {1}},
		In:     [][]float64{{8}, {4}, {0.5, 1}, {2}},
		Want:   [][]float64{{3.25}, nil, nil, {7}},
	},
	{
		// dw = 2·(1 3) + 4·(5 -1) = (22 2), db = 6. With decay ¼ of w = (8 4), b = 16:
		// g = (24 3), 10; v = ½·(2 4), ½·6 + g = (25 5), 13; rate ½: w = (-4.5 1.5), b = 9.5.
		Name: "gradient and step", Op: "dense.dw.sgd", Params: SGDParams(0.5, 0, 0.25),
		Shapes: [][]int{{1, 2}, {2, 1}, {2, 2}, {2}, {1}, {1, 2}, {1}},
		In:     [][]float64{{8, 4}, {2, 4}, {1, 3, 5, -1}, {0.5, 1}, {16}, {2, 4}, {6}},
		Want:   [][]float64{{-4.5, 1.5}, nil, nil, nil, {9.5}, {25, 5}, {13}},
	},
	{
		Name: "the same without a bias", Op: "dense.dw.sgd.nobias", Params: SGDParams(0.5, 0, 0.25),
		Shapes: [][]int{{1, 2}, {2, 1}, {2, 2}, {2}, {1, 2}},
		In:     [][]float64{{8, 4}, {2, 4}, {1, 3, 5, -1}, {0.5, 1}, {2, 4}},
		Want:   [][]float64{{-4.5, 1.5}, nil, nil, nil, {25, 5}},
	},
	{
		// x has pixels (1 10) (3 30) and (5 -10) (-1 20) of two channels: with dy = 2, 4 channel 0
		// gets 2·1+4·5 = 22 and 2·3-4 = 2, channel 1 gets 20-40 = -20 and 60+80 = 140; db = 6. Rate
		// ½, and w and b are 100.
		Name: "inputs as PyTorch has them", Op: "dense.nhwc.dw.sgd", Params: SGDParams(0, 0, 0),
		Shapes: [][]int{{1, 2, 1, 2}, {2, 1}, {2, 1, 2, 2}, {2}, {1}},
		In:     [][]float64{{100, 100, 100, 100}, {2, 4}, {1, 10, 3, 30, 5, -10, -1, 20}, {0.5, 1}, {100}},
		Want:   [][]float64{{89, 99, 110, 30}, nil, nil, nil, {97}},
	},
	{
		// Windows of 2×2 at columns 0 and 1, where dy is (1 2) and (3 4) of the two filters, over
		// x = (1 10) (2 20) (3 30) of two channels, and below it zeros but for a 1 of channel 0 in
		// the middle. The first filter: 1·1+3·2 = 7 and 1·2+3·3 = 11 above, 3·1 and 1·1 below; of
		// channel 1 it is 70 110 / 0 0. The second: 2·1+4·2 = 10 and 2·2+4·3 = 16, 4·1 and 2·1; 100
		// 160 / 0 0. db = 4 6. Decay ¼ of w = 4 adds 1 to each g, v = ½·2 + g, rate ½: w = 4 - v/2;
		// b = 0 - v/2 of v = ½·2 + db. The order is filter, channel, position.
		Name: "weights as PyTorch has them", Op: "conv2d.nhwc.dw.sgd", Params: append(ConvParams(0, 1), SGDParams(0.5, 0, 0.25)...),
		Shapes: [][]int{{2, 2, 2, 2}, {1, 1, 2, 2}, {1, 2, 3, 2}, {2}, {2}, {2, 2, 2, 2}, {2}},
		In: [][]float64{
			{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}, {1, 2, 3, 4},
			{1, 10, 2, 20, 3, 30, 0, 0, 1, 0, 0, 0}, {0.5, 1}, {0, 0}, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, {2, 2}},
		Want: [][]float64{
			{4 - 9./2, 4 - 13./2, 4 - 5./2, 4 - 3./2, 4 - 72./2, 4 - 112./2, 4 - 2./2, 4 - 2./2,
				4 - 12./2, 4 - 18./2, 4 - 6./2, 4 - 4./2, 4 - 102./2, 4 - 162./2, 4 - 2./2, 4 - 2./2},
			nil, nil, nil, {-5. / 2, -7. / 2},
			{9, 13, 5, 3, 72, 112, 2, 2, 12, 18, 6, 4, 102, 162, 2, 2}, {5, 7}},
	},
	{
		// The first filter alone, of channel 0: with decay ¼ of 4, g = 8 12 4 2, and ½·2 more are 9 13 5 3.
		Name: "weights without a bias", Op: "conv2d.nhwc.dw.sgd.nobias", Params: append(ConvParams(0, 1), SGDParams(0.5, 0, 0.25)...),
		Shapes: [][]int{{1, 1, 2, 2}, {1, 1, 2, 1}, {1, 2, 3, 1}, {2}, {1, 1, 2, 2}},
		In:     [][]float64{{4, 4, 4, 4}, {1, 3}, {1, 2, 3, 0, 1, 0}, {0.5, 1}, {2, 2, 2, 2}},
		Want:   [][]float64{{4 - 9./2, 4 - 13./2, 4 - 5./2, 4 - 3./2}, nil, nil, nil, {9, 13, 5, 3}},
	},
	{
		// beta1 = 1/2, beta2 = 3/4, t = 1, so the corrections are 1/2 and 1/4. g = 4:
		// m = ½·0+½·4 = 2, v = ¾·0+¼·16 = 4; √v/√¼ = 4, + eps 4 = 8; rate = 1/½ = 2;
		// w = 8 - 2·2/8 = 7.5.
		Name: "first step", Op: "adam",
		Params: dag.Params{{Name: "beta1", Value: 0.5}, {Name: "beta2", Value: 0.75}, {Name: "eps", Value: 4}, {Name: "weight_decay", Value: 0}, {Name: "decoupled", Value: 0}},
		Shapes: [][]int{{1}, {1}, {2}, {1}, {1}},
		In:     [][]float64{{8}, {4}, {1, 1}, {0}, {0}},
		Want:   [][]float64{{7.5}, nil, nil, {2}, {4}},
	},
	{
		// beta1 = beta2 = 0: no memory and no correction, at any t. g = 2 + ¼·8 = 4: m = 4,
		// v = 16, w = 8 - 1·4/(4+4) = 7.5.
		Name: "weight decay enters the gradient", Op: "adam",
		Params: dag.Params{{Name: "beta1", Value: 0}, {Name: "beta2", Value: 0}, {Name: "eps", Value: 4}, {Name: "weight_decay", Value: 0.25}, {Name: "decoupled", Value: 0}},
		Shapes: [][]int{{1}, {1}, {2}, {1}, {1}},
		In:     [][]float64{{8}, {2}, {1, 5}, {9}, {9}},
		Want:   [][]float64{{7.5}, nil, nil, {4}, {16}},
	},
	{
		// The same without memory, rate ½ and decay ¼ apart from the gradient: m = 4, v = 16,
		// w = (1 - ½·¼)·8 - ½·4/(4+4) = 7 - 0.25.
		Name: "decoupled weight decay shrinks the weight", Op: "adam",
		Params: dag.Params{{Name: "beta1", Value: 0}, {Name: "beta2", Value: 0}, {Name: "eps", Value: 4}, {Name: "weight_decay", Value: 0.25}, {Name: "decoupled", Value: 1}},
		Shapes: [][]int{{1}, {1}, {2}, {1}, {1}},
		In:     [][]float64{{8}, {4}, {0.5, 5}, {9}, {9}},
		Want:   [][]float64{{6.75}, nil, nil, {4}, {16}},
	},
}
