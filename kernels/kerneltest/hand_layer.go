package kerneltest

import "dahl/dag"

// layerCases are the cases of layouts, of loads, and of layers that are no products.
var layerCases = []HandCase{
	{
		// Windows of one row and two columns, three columns apart: 3 1 and 5 4.
		Name: "rectangles three columns apart", Op: "maxpool.nhwc", Params: append(PoolWindowParams(1, 0, 0, 1, 2), dag.Param{Name: "column_stride", Value: 3}),
		Shapes: [][]int{{1, 1, 2, 1}, {1, 1, 2, 1}, {1, 1, 5, 1}},
		In:     [][]float64{nil, nil, {3, 1, 2, 5, 4}},
		Want:   [][]float64{{3, 5}, {0, 0}, nil},
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
}
