package kerneltest

import "dahl/dag"

// trainingCases are the cases of losses, sums, clipping, and steps of optimisers.
var trainingCases = []HandCase{
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
