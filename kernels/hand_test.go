package kernels_test

import (
	"math"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/kerneltest"
)

var nan, inf = math.NaN(), math.Inf(1)

// handCases are calls small enough to compute by hand. in are the values of all
// operands before the call, nil for those it writes; want those after it, nil for
// those that are only read. All numbers are exact in float32.
var handCases = []struct {
	name   string // operation, then what the case is about
	op     string
	params dag.Params
	shapes [][]int
	in     [][]float64
	want   [][]float64
}{
	{
		// x = 1 2 3   w = 1  2   y = 1·1+2·2+3·4+4·5 = 37, 1·2+2·3+3·5+4·6 = 47, each + 10
		//     4 5 6       3  4   A true convolution would turn w round: 4·1+3·2+2·4+1·5 = 23.
		name: "cross-correlation, not convolution", op: "conv2d", params: kerneltest.ConvParams(0, 1),
		shapes: [][]int{{1, 1, 1, 2}, {1, 1, 2, 3}, {1, 1, 2, 2}, {1}},
		in:     [][]float64{nil, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4}, {10}},
		want:   [][]float64{{47, 57}, nil, nil, nil},
	},
	{
		// Padding 1, stride 2, so windows begin at -1 and 1 in both directions.
		// x = 1 2 3   w = 1 1 1   window (-1,-1): rows 0,1 columns 0,1: 1+2+4+5 = 12
		//     4 5 6       1 1 1   (-1,1): rows 0,1 columns 1,2: 2+3+5+6 = 16
		//     7 8 9       1 1 1   (1,-1): 4+5+7+8 = 24, (1,1): 5+6+8+9 = 28
		name: "padding and stride", op: "conv2d",
		params: dag.Params{{Name: "pad", Value: 1}, {Name: "stride", Value: 2}},
		shapes: [][]int{{1, 1, 2, 2}, {1, 1, 3, 3}, {1, 1, 3, 3}},
		in:     [][]float64{nil, {1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 1, 1, 1, 1, 1, 1, 1}},
		want:   [][]float64{{12, 16, 24, 28}, nil, nil},
	},
	{
		// y[u] = w0·x[u]+w1·x[u+1] over one row (the second row of w meets a second row
		// of x): dx = dy0·w, shifted by one dy1·w. With dy = 1, 10 and w = 1 2 / 3 4:
		// row 0: 1·1, 1·2+10·1, 10·2 = 1 12 20; row 1: 1·3, 1·4+10·3, 10·4 = 3 34 40.
		name: "each dy spreads the filter", op: "conv2d.dx", params: kerneltest.ConvParams(0, 1),
		shapes: [][]int{{1, 1, 2, 3}, {1, 1, 1, 2}, {1, 1, 2, 2}},
		in:     [][]float64{nil, {1, 10}, {1, 2, 3, 4}},
		want:   [][]float64{{1, 12, 20, 3, 34, 40}, nil, nil},
	},
	{
		// dw[i,j] = dy0·x[i,j] + dy1·x[i,j+1], dy = 1, 10, x = 1 2 3 / 4 5 6:
		// 1+20, 2+30, 4+50, 5+60; db = 11.
		name: "each dy spreads its window", op: "conv2d.dw", params: kerneltest.ConvParams(0, 1),
		shapes: [][]int{{1, 1, 2, 2}, {1, 1, 1, 2}, {1, 1, 2, 3}, {1}},
		in:     [][]float64{nil, {1, 10}, {1, 2, 3, 4, 5, 6}, nil},
		want:   [][]float64{{21, 32, 54, 65}, nil, nil, {11}},
	},
	{
		// The first case of conv2d in a second layout and with two filters, the second the
		// negative of the first: 37, 47, plus 10, and -37, -47, plus 40: 3 and, cut off, 0.
		name: "cross-correlation, then the positive part", op: "conv2d.nhwc", params: kerneltest.ConvReLUParams(0, 1, 1),
		shapes: [][]int{{1, 1, 2, 2}, {1, 2, 3, 1}, {2, 2, 1, 2}, {2}},
		in:     [][]float64{nil, {1, 2, 3, 4, 5, 6}, {1, -1, 2, -2, 3, -3, 4, -4}, {10, 40}},
		want:   [][]float64{{47, 3, 57, 0}, nil, nil, nil},
	},
	{
		// Pixels of two channels: 1·5+2·6+3·7+4·8 = 70 from w[0,0] = 5 6 and w[0,1] = 7 8; w's
		// second row meets the padding below, its first row the one above: 9·1+10·2+11·3+12·4 = 110.
		name: "rows of the window on the padding", op: "conv2d.nhwc", params: kerneltest.ConvReLUParams(1, 1, 0),
		shapes: [][]int{{1, 2, 3, 1}, {1, 1, 2, 2}, {2, 2, 2, 1}},
		in:     [][]float64{nil, {1, 2, 3, 4}, {5, 6, 7, 8, 9, 10, 11, 12}},
		// columns -1, 0, 1: (x0·w[i,1]), (all), (x1·w[i,0]) for i = 1, then i = 0
		want: [][]float64{{11*1 + 12*2, 110, 9*3 + 10*4, 7*1 + 8*2, 70, 5*3 + 6*4}, nil, nil},
	},
	{
		// As for conv2d.dx: 1 12 20 / 3 34 40, with w = 1 2 / 3 4 turned round to 4 3 / 2 1.
		// x is not positive at the second and the last pixel.
		name: "each dy spreads the filter, cut off where x is not positive", op: "conv2d.nhwc.dx", params: kerneltest.ConvParams(0, 1),
		shapes: [][]int{{1, 2, 3, 1}, {1, 1, 2, 1}, {2, 2, 1, 1}, {1, 2, 3, 1}},
		in:     [][]float64{nil, {1, 10}, {4, 3, 2, 1}, {1, 0, 0x1p-149, 1, inf, nan}},
		want:   [][]float64{{1, 0, 20, 3, 34, 0}, nil, nil, nil},
	},
	{
		// As for conv2d.dw: 21 32 / 54 65 and 11, the second filter with twice the dy.
		name: "each dy spreads its window, channels last", op: "conv2d.nhwc.dw", params: kerneltest.ConvParams(0, 1),
		shapes: [][]int{{2, 2, 1, 2}, {1, 1, 2, 2}, {1, 2, 3, 1}, {2}},
		in:     [][]float64{nil, {1, 2, 10, 20}, {1, 2, 3, 4, 5, 6}, nil},
		want:   [][]float64{{21, 42, 32, 64, 54, 108, 65, 130}, nil, nil, {11, 22}},
	},
	{
		// x = 1 2 3 9   filters of one element, 1 and -1, bias -1 and -3: 4 5 6 - 1 = 5 at most in
		//     4 6 6 9   the window of columns 0-1 (position 3), 5 again in that of 1-2, first at 2;
		// the second filter gives at most -4 and -5. The window of columns 2-3 has 8 at 1.
		name: "first maximum, 255 where it is cut off", op: "conv2d.nhwc.pool", params: kerneltest.ConvPoolParams(0, 1, 2, 1),
		shapes: [][]int{{1, 1, 3, 2}, {1, 1, 3, 2}, {1, 2, 4, 1}, {1, 1, 1, 2}, {2}},
		in:     [][]float64{nil, nil, {1, 2, 3, 9, 4, 6, 6, 9}, {1, -1}, {-1, -3}},
		want:   [][]float64{{5, 0, 5, 0, 8, 0}, {3, 255, 2, 255, 1, 255}, nil, nil, nil},
	},
	{
		// One window, NaN at position 2 of the convolution, and infinity before it.
		name: "NaN wins", op: "conv2d.nhwc.pool", params: kerneltest.ConvPoolParams(0, 1, 2, 2),
		shapes: [][]int{{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 2, 2, 1}, {1, 1, 1, 1}},
		in:     [][]float64{nil, nil, {1, inf, nan, 3}, {1}},
		want:   [][]float64{{nan}, {2}, nil, nil},
	},
	{
		// x = 1 2 3   Filters of one element, windows of columns 0-1 and 1-2. Channel 0: position 1
		//     4 5 6   of the first is 2, position 3 of the second is 6: 10·2+20·6 = 140, 10+20 = 30.
		// Channel 1: position 0 of the first is 1, the second passes nothing: 3·1, 3.
		name: "the maximum's pixel only", op: "conv2d.nhwc.pool.dw", params: kerneltest.ConvPoolParams(0, 1, 2, 1),
		shapes: [][]int{{1, 1, 1, 2}, {1, 1, 2, 2}, {1, 1, 2, 2}, {1, 2, 3, 1}, {2}},
		in:     [][]float64{nil, {10, 3, 20, 5}, {1, 0, 3, 255}, {1, 2, 3, 4, 5, 6}, nil},
		want:   [][]float64{{140, 3}, nil, nil, nil, {30, 3}},
	},
	{
		// x = 1 2 3, w = (1 0 1), (0 1 2): y = 1+3, 2+6, plus b = 10, 20.
		name: "weights are (out, in)", op: "dense",
		shapes: [][]int{{1, 2}, {1, 3}, {2, 3}, {2}},
		in:     [][]float64{nil, {1, 2, 3}, {1, 0, 1, 0, 1, 2}, {10, 20}},
		want:   [][]float64{{14, 28}, nil, nil, nil},
	},
	{
		// dx = 5·(1 0 1) + 7·(0 1 2)
		name: "rows of w by dy", op: "dense.dx",
		shapes: [][]int{{1, 3}, {1, 2}, {2, 3}},
		in:     [][]float64{nil, {5, 7}, {1, 0, 1, 0, 1, 2}},
		want:   [][]float64{{5, 7, 19}, nil, nil},
	},
	{
		// Two samples: dw = dyᵀ·x, dy = (5), (7), x = (1 2 3), (4 5 6): 5·x0 + 7·x1; db = 12.
		name: "samples add up", op: "dense.dw",
		shapes: [][]int{{1, 3}, {2, 1}, {2, 3}, {1}},
		in:     [][]float64{nil, {5, 7}, {1, 2, 3, 4, 5, 6}, nil},
		want:   [][]float64{{33, 45, 57}, nil, nil, {12}},
	},
	{
		// As above with b = -20, 20 and -8: 4-20 < 0, 8+20; the third output is 0+8-8.
		name: "a negative sum becomes zero", op: "dense.relu",
		shapes: [][]int{{1, 3}, {1, 3}, {3, 3}, {3}},
		in:     [][]float64{nil, {1, 2, 3}, {1, 0, 1, 0, 1, 2, 0, 4, 0}, {-20, 20, -8}},
		want:   [][]float64{{0, 28, 0}, nil, nil, nil},
	},
	{
		// dx = 5·(1 0 1 0) + 7·(0 1 2 1), kept where x > 0.
		name: "no gradient at zero and at NaN", op: "dense.dx.relu",
		shapes: [][]int{{1, 4}, {1, 2}, {2, 4}, {1, 4}},
		in:     [][]float64{nil, {5, 7}, {1, 0, 1, 0, 0, 1, 2, 1}, {0x1p-149, 0, inf, nan}},
		want:   [][]float64{{5, 0, 19, 0}, nil, nil, nil},
	},
	{
		name: "NaN passes, infinity too, zero and NaN have no gradient", op: "relu",
		shapes: [][]int{{7}, {7}, {7}},
		in:     [][]float64{nil, nil, {-1, 0, 2, nan, inf, -inf, 0x1p-149}},
		want:   [][]float64{{0, 0, 2, nan, inf, 0, 0x1p-149}, {0, 0, 1, 0, 1, 0, 1}, nil},
	},
	{
		name: "a masked gradient is 0 even if infinite", op: "relu.dx",
		shapes: [][]int{{4}, {4}, {4}},
		in:     [][]float64{nil, {3, inf, nan, nan}, {1, 0, 0, 1}},
		want:   [][]float64{{3, 0, 0, nan}, nil, nil},
	},
	{
		// Windows of columns 0-1, 2-3, 4-5, 6-7; the ninth column is in none. Ties: the
		// first of the equal 5s is at 1; of two NaNs the first, at 2, wins over 9.
		name: "first maximum, NaN wins, odd column dropped", op: "maxpool", params: kerneltest.PoolParams(2, 2),
		shapes: [][]int{{1, 1, 1, 4}, {1, 1, 1, 4}, {1, 1, 2, 9}},
		in: [][]float64{nil, nil, {
			1, 5, -3, -2, 9, 9, 1, 2, 99,
			5, 2, -1, -4, nan, nan, 3, 4, 99}},
		want: [][]float64{{5, -1, nan, 4}, {1, 2, 2, 3}, nil},
	},
	{
		// 3×3 at stride 2, two windows in 3×5: maxima 9 at row 2, column 0, and 8 at row 0, column 2.
		name: "window of 3", op: "maxpool", params: kerneltest.PoolParams(3, 2),
		shapes: [][]int{{1, 1, 1, 2}, {1, 1, 1, 2}, {1, 1, 3, 5}},
		in:     [][]float64{nil, nil, {0, 1, 8, 3, 4, 5, 6, 7, 0, 1, 9, 2, 3, 4, 5}},
		want:   [][]float64{{9, 8}, {6, 0}, nil},
	},
	{
		// Windows of 2 at stride 1 over 2×3 share column 1: position 1 of the first and
		// position 0 of the second are the same element, 3+4.
		name: "overlapping windows add", op: "maxpool.dx", params: kerneltest.PoolParams(2, 1),
		shapes: [][]int{{1, 1, 2, 3}, {1, 1, 1, 2}, {1, 1, 1, 2}},
		in:     [][]float64{nil, {3, 4}, {1, 0}},
		want:   [][]float64{{0, 7, 0, 0, 0, 0}, nil, nil},
	},
	{
		name: "mean of each window", op: "avgpool", params: kerneltest.PoolParams(2, 2), // (1+2+5+6)/4, (3+4+7+8)/4
		shapes: [][]int{{1, 1, 1, 2}, {1, 1, 2, 4}},
		in:     [][]float64{nil, {1, 2, 3, 4, 5, 6, 7, 8}},
		want:   [][]float64{{3.5, 5.5}, nil},
	},
	{
		name: "a quarter to each, overlaps add", op: "avgpool.dx", params: kerneltest.PoolParams(2, 1),
		shapes: [][]int{{1, 1, 2, 3}, {1, 1, 1, 2}},
		in:     [][]float64{nil, {4, 8}},
		want:   [][]float64{{1, 3, 2, 1, 3, 2}, nil},
	},
	{
		name: "rows by index, repeats allowed", op: "load", params: dag.Params{{Name: "divisor", Value: 4}},
		shapes: [][]int{{3, 2}, {2, 2}, {3}},
		in:     [][]float64{nil, {1, 2, 8, 255}, {1, 0, 1}},
		want:   [][]float64{{2, 63.75, 0.25, 0.5, 2, 63.75}, nil, nil},
	},
	{
		// The second image has channels (1 2 3) and (10 20 30): pixels (1 10), (2 20), (3 30), divided by 4.
		name: "rows by index, channels last", op: "load.nhwc", params: dag.Params{{Name: "divisor", Value: 4}},
		shapes: [][]int{{1, 1, 3, 2}, {2, 2, 1, 3}, {1}},
		in:     [][]float64{nil, {9, 9, 9, 9, 9, 9, 1, 2, 3, 10, 20, 30}, {1}},
		want:   [][]float64{{0.25, 2.5, 0.5, 5, 0.75, 7.5}, nil, nil},
	},
	{
		name: "the channels of a pixel come together", op: "nhwc",
		shapes: [][]int{{1, 1, 3, 2}, {1, 2, 1, 3}},
		in:     [][]float64{nil, {1, 2, 3, 10, 20, 30}},
		want:   [][]float64{{1, 10, 2, 20, 3, 30}, nil},
	},
	{
		name: "the pixels of a channel come together", op: "nchw",
		shapes: [][]int{{1, 2, 1, 3}, {1, 1, 3, 2}},
		in:     [][]float64{nil, {1, 10, 2, 20, 3, 30}},
		want:   [][]float64{{1, 2, 3, 10, 20, 30}, nil},
	},
	{
		// One input channel, filters 1 2 / 3 4 and 5 6 / 7 8: each position of the window has both.
		name: "filters come last", op: "hwio",
		shapes: [][]int{{2, 2, 1, 2}, {2, 1, 2, 2}},
		in:     [][]float64{nil, {1, 2, 3, 4, 5, 6, 7, 8}},
		want:   [][]float64{{1, 5, 2, 6, 3, 7, 4, 8}, nil},
	},
	{
		// The same filters turned round: the window is read from its last position.
		name: "turned round", op: "hwoi",
		shapes: [][]int{{2, 2, 2, 1}, {2, 1, 2, 2}},
		in:     [][]float64{nil, {1, 2, 3, 4, 5, 6, 7, 8}},
		want:   [][]float64{{4, 8, 3, 7, 2, 6, 1, 5}, nil},
	},
	{
		name: "back to PyTorch's order", op: "oihw",
		shapes: [][]int{{2, 1, 2, 2}, {2, 2, 1, 2}},
		in:     [][]float64{nil, {1, 5, 2, 6, 3, 7, 4, 8}},
		want:   [][]float64{{1, 2, 3, 4, 5, 6, 7, 8}, nil},
	},
	{
		// Two channels, one window of columns 0-1; the third column is in none. Channel 0:
		// 1 5 / 5 2, the first 5 at 1. Channel 1: NaN at 2 and 3, the first wins over 9.
		name: "first maximum, NaN wins, odd column dropped", op: "maxpool.nhwc", params: kerneltest.PoolParams(2, 2),
		shapes: [][]int{{1, 1, 1, 2}, {1, 1, 1, 2}, {1, 2, 3, 2}},
		in:     [][]float64{nil, nil, {1, 9, 5, 1, 99, 99, 5, nan, 2, nan, 99, 99}},
		want:   [][]float64{{5, nan}, {1, 2}, nil},
	},
	{
		// Windows of 2 at stride 1 over 2×3 share column 1: channel 0 adds 3+4 there, of
		// channel 1 only the second window passes anything.
		name: "overlapping windows add, 255 passes nothing", op: "maxpool.nhwc.dx", params: kerneltest.PoolParams(2, 1),
		shapes: [][]int{{1, 2, 3, 2}, {1, 1, 2, 2}, {1, 1, 2, 2}},
		in:     [][]float64{nil, {3, 10, 4, 20}, {1, 255, 0, 3}},
		want:   [][]float64{{0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 20}, nil, nil},
	},
	{
		// Windows of 1 at stride 2 leave the pixel between them at 0.
		name: "pixels between windows get nothing", op: "maxpool.nhwc.dx", params: kerneltest.PoolParams(1, 2),
		shapes: [][]int{{1, 1, 4, 1}, {1, 1, 2, 1}, {1, 1, 2, 1}},
		in:     [][]float64{nil, {3, 4}, {0, 0}},
		want:   [][]float64{{3, 0, 4, 0}, nil, nil},
	},
	{
		name: "labels by index", op: "load.labels",
		shapes: [][]int{{3}, {2}, {3}},
		in:     [][]float64{nil, {7, 9}, {1, 0, 1}},
		want:   [][]float64{{9, 7, 9}, nil, nil},
	},
	{
		// All logits are below 0: a maximum that started at 0 would give 0.
		name: "the true maximum", op: "rowmax",
		shapes: [][]int{{2}, {2, 3}},
		in:     [][]float64{nil, {-5, -3, -4, 1, nan, 2}},
		want:   [][]float64{{-3, nan}, nil},
	},
	{
		name: "exp of differences", op: "exp_sub", // exp(0) = 1, exp(-∞) = 0
		shapes: [][]int{{1, 2}, {1, 2}, {1}},
		in:     [][]float64{nil, {-1000, -inf}, {-1000}},
		want:   [][]float64{{1, 0}, nil, nil},
	},
	{
		name: "row sums", op: "rowsum",
		shapes: [][]int{{2}, {2, 3}},
		in:     [][]float64{nil, {1, 2, 3, 4, 5, 6}},
		want:   [][]float64{{6, 15}, nil},
	},
	{
		// s = 1: log s = 0 and loss = m - z_y. The first of two equal maxima is the prediction.
		name: "loss and prediction", op: "xent",
		shapes: [][]int{{3}, {3}, {3, 2}, {3}, {3}, {3}},
		in:     [][]float64{nil, nil, {5, 5, 5, 5, 1, 7}, {5, 5, 7}, {1, 1, 1}, {0, 1, 0}},
		want:   [][]float64{{0, 0, 6}, {1, 0, 0}, nil, nil, nil, nil},
	},
	{
		// p = 1/4, 3/4, class 1, B = 8: (1/4)/8, (3/4-1)/8. Only two samples are in this call.
		name: "divided by the whole batch once", op: "softmax_xent.dx", params: dag.Params{{Name: "batch", Value: 8}},
		shapes: [][]int{{2, 2}, {2, 2}, {2}, {2}},
		in:     [][]float64{nil, {1, 3, 1, 1}, {4, 2}, {1, 0}},
		want:   [][]float64{{0.03125, -0.03125, -0.0625, 0.0625}, nil, nil, nil},
	},
	{
		// Two infinitely unequal logits: e = 0, 1, s = 1, loss of the winner 0, gradient 0;
		// for the loser the loss is 2000 and the gradient ∓1/B. 1000 alone would overflow exp.
		name: "no overflow at large logits", op: "softmax_xent", params: dag.Params{{Name: "batch", Value: 2}},
		shapes: [][]int{{2, 2}, {2}, {2}, {2, 2}, {2}},
		in:     [][]float64{nil, nil, nil, {-1000, 1000, -1000, 1000}, {1, 0}},
		want:   [][]float64{{0, 0, -0.5, 0.5}, {0, 2000}, {1, 0}, nil, nil},
	},
	{
		name: "evaluation", op: "softmax_xent.eval",
		shapes: [][]int{{2}, {2}, {2, 2}, {2}},
		in:     [][]float64{nil, nil, {-1000, 1000, -1000, 1000}, {1, 0}},
		want:   [][]float64{{0, 2000}, {1, 0}, nil, nil},
	},
	{
		name: "mean", op: "mean", shapes: [][]int{{1}, {4}},
		in: [][]float64{nil, {1, 2, 3, 8}}, want: [][]float64{{3.5}, nil},
	},
	{
		name: "count", op: "count", shapes: [][]int{{1}, {5}},
		in: [][]float64{nil, {1, 0, 1, 1, 0}}, want: [][]float64{{3}, nil},
	},
	{
		name: "add", op: "add", shapes: [][]int{{2}, {2}},
		in: [][]float64{{1, 2}, {10, 20}}, want: [][]float64{{11, 22}, nil},
	},
	{
		name: "plain", op: "sgd", params: kerneltest.SGDParams(0, 0, 0), // 2 - 0.5·4
		shapes: [][]int{{1}, {1}, {2}},
		in:     [][]float64{{2}, {4}, {0.5, 1}},
		want:   [][]float64{{0}, nil, nil},
	},
	{
		// g = 4 + 0.25·8 = 6; v = 0.5·2 + 6 = 7; w = 8 - 0.5·7 = 4.5
		name: "momentum and weight decay", op: "sgd", params: kerneltest.SGDParams(0.5, 0, 0.25),
		shapes: [][]int{{1}, {1}, {2}, {1}},
		in:     [][]float64{{8}, {4}, {0.5, 1}, {2}},
		want:   [][]float64{{4.5}, nil, nil, {7}},
	},
	{
		// The same, but the step is g + 0.5·v = 6 + 3.5: w = 8 - 0.5·9.5 = 3.25
		name: "nesterov", op: "sgd", params: kerneltest.SGDParams(0.5, 1, 0.25),
		shapes: [][]int{{1}, {1}, {2}, {1}},
		in:     [][]float64{{8}, {4}, {0.5, 1}, {2}},
		want:   [][]float64{{3.25}, nil, nil, {7}},
	},
	{
		// dw = 2·(1 3) + 4·(5 -1) = (22 2), db = 6. With decay ¼ of w = (8 4), b = 16:
		// g = (24 3), 10; v = ½·(2 4), ½·6 + g = (25 5), 13; rate ½: w = (-4.5 1.5), b = 9.5.
		name: "gradient and step", op: "dense.dw.sgd", params: kerneltest.SGDParams(0.5, 0, 0.25),
		shapes: [][]int{{1, 2}, {1}, {2, 1}, {2, 2}, {2}, {1, 2}, {1}},
		in:     [][]float64{{8, 4}, {16}, {2, 4}, {1, 3, 5, -1}, {0.5, 1}, {2, 4}, {6}},
		want:   [][]float64{{-4.5, 1.5}, {9.5}, nil, nil, nil, {25, 5}, {13}},
	},
	{
		// beta1 = 1/2, beta2 = 3/4, t = 1, so the corrections are 1/2 and 1/4. g = 4:
		// m = ½·0+½·4 = 2, v = ¾·0+¼·16 = 4; √v/√¼ = 4, + eps 4 = 8; rate = 1/½ = 2;
		// w = 8 - 2·2/8 = 7.5.
		name: "first step", op: "adam",
		params: dag.Params{{Name: "beta1", Value: 0.5}, {Name: "beta2", Value: 0.75}, {Name: "eps", Value: 4}, {Name: "weight_decay", Value: 0}},
		shapes: [][]int{{1}, {1}, {2}, {1}, {1}},
		in:     [][]float64{{8}, {4}, {1, 1}, {0}, {0}},
		want:   [][]float64{{7.5}, nil, nil, {2}, {4}},
	},
	{
		// beta1 = beta2 = 0: no memory and no correction, at any t. g = 2 + ¼·8 = 4: m = 4,
		// v = 16, w = 8 - 1·4/(4+4) = 7.5.
		name: "weight decay enters the gradient", op: "adam",
		params: dag.Params{{Name: "beta1", Value: 0}, {Name: "beta2", Value: 0}, {Name: "eps", Value: 4}, {Name: "weight_decay", Value: 0.25}},
		shapes: [][]int{{1}, {1}, {2}, {1}, {1}},
		in:     [][]float64{{8}, {2}, {1, 5}, {9}, {9}},
		want:   [][]float64{{7.5}, nil, nil, {4}, {16}},
	},
}

// TestHandComputed runs every variant in both types on whole buffers and on regions
// of larger ones.
func TestHandComputed(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range handCases {
		tested[c.op] = true
		k, ok := kernels.Lookup(c.op)
		if !ok {
			t.Fatalf("no operation %s", c.op)
		}
		for v := range k.Variants {
			if !k.Variants[v].RunsHere() {
				continue
			}
			for _, real := range []dag.DType{dag.Float32, dag.Float64} {
				for margin := range 2 {
					s := kerneltest.New(k, real, c.shapes, kerneltest.FirstModes(k), c.params, margin)
					if err := kernels.Validate(&s.Spec); err != nil {
						t.Fatalf("%s, %s: %v", c.op, c.name, err)
					}
					for i, values := range c.in {
						if values != nil {
							s.Set(i, func(j int) float64 { return values[j] })
						}
					}
					s.Run(&k.Variants[v])
					for i, want := range c.want {
						if got := s.Values(i); want != nil && !slices.EqualFunc(got, want, same) {
							t.Errorf("%s %s %v, %s: %s is %v, want %v", c.op, k.Variants[v].Name, real, c.name, k.Operands[i].Name, got, want)
						}
					}
				}
			}
		}
	}
	for i := range kernels.All {
		if !kernels.All[i].Host && !tested[kernels.All[i].Op] {
			t.Errorf("no case computed by hand for %s", kernels.All[i].Op)
		}
	}
}

func same(a, b float64) bool { return a == b || a != a && b != b }
