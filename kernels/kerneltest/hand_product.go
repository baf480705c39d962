package kerneltest

import "dahl/dag"

var depthwise = dag.Params{{Name: "dilation", Value: 2}, {Name: "groups", Value: 2}}

// productCases are the cases of convolutions and dense layers and of their gradients.
var productCases = []HandCase{
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
		// 1·3 + 2·4 + 1 = 12 and -1 - 7 = -8, of which a quarter is left.
		Name: "a quarter of a negative sum", Op: "dense.function", Params: FunctionParams("leaky_relu", 0.25),
		Shapes: [][]int{{1, 2}, {1, 2}, {2, 2}, {2}},
		In:     [][]float64{nil, {1, 2}, {3, 4, -1, 0}, {1, -7}},
		Want:   [][]float64{{12, -2}, nil, nil, nil},
	},
	{
		Name: "the sums, too", Op: "dense.function.kept", Params: FunctionParams("leaky_relu", 0.25),
		Shapes: [][]int{{1, 2}, {1, 2}, {1, 2}, {2, 2}, {2}},
		In:     [][]float64{nil, nil, {1, 2}, {3, 4, -1, 0}, {1, -7}},
		Want:   [][]float64{{12, -2}, {12, -8}, nil, nil, nil},
	},
	{
		// 1·3 + 2·5 = 13 and 1·4 + 2·6 = 16, of which the slope below 0 is a quarter.
		Name: "a quarter where the data are negative", Op: "dense.dx.function", Params: FunctionParams("leaky_relu", 0.25),
		Shapes: [][]int{{1, 2}, {1, 2}, {2, 2}, {1, 2}},
		In:     [][]float64{nil, {1, 2}, {3, 4, 5, 6}, {2, -1}},
		Want:   [][]float64{{13, 4}, nil, nil, nil},
	},
}
