package kerneltest

import "dahl/dag"

// NormParams are the parameters of the statistics of batch normalisation.
func NormParams(pixels, eps, momentum float64) dag.Params {
	return dag.Params{{Name: "pixels", Value: pixels}, {Name: "eps", Value: eps}, {Name: "momentum", Value: momentum}}
}

// dropCases are the cases of dropout. The words are known answers of Random123: with key 0 and counter 0 they are
// 6627e8d5 e169c58d bc57ac4c 9b00dbd8, so that with p = 1/2 the first of four elements is 0.
func dropCases() []HandCase {
	words := uint64(0xe169c58d_6627e8d5)
	return []HandCase{
		{
			Name: "seed, step and layer 0", Op: "dropout.keys", Params: dag.Params{{Name: "layer", Value: 0}},
			Shapes: [][]int{{1}, {1}, {2}}, In: [][]float64{nil, {0}, {0.5, 0}}, Want: [][]float64{{float64(int64(words))}, nil, nil},
		},
		{
			Name: "the first row of key 0", Op: "dropout.rows", Shapes: [][]int{{1, 1, 1}, {1}}, In: [][]float64{nil, {0}}, Want: [][]float64{{float64(int64(words))}, nil},
		},
		{
			Name: "key 0", Op: "dropout", Params: dag.Params{{Name: "p", Value: 0.5}, {Name: "channels_last", Value: 0}},
			Shapes: [][]int{{1, 4}, {1, 4}, {1}}, In: [][]float64{nil, {1, 2, 3, 4}, {0}}, Want: [][]float64{{0, 4, 6, 8}, nil, nil},
		},
		{
			// Channel 0 has elements 0 and 1, channel 1 elements 2 and 3, and its pixels alternate with the pixels of channel 0.
			Name: "key 0, channels last", Op: "dropout", Params: dag.Params{{Name: "p", Value: 0.75}, {Name: "channels_last", Value: 1}},
			Shapes: [][]int{{1, 1, 2, 2}, {1, 1, 2, 2}, {1}}, In: [][]float64{nil, {1, 2, 3, 4}, {0}}, Want: [][]float64{{0, 0, 12, 0}, nil, nil},
		},
	}
}

// FlagParams is a parameter that is 0 or 1.
func FlagParams(name string, value float64) dag.Params { return dag.Params{{Name: name, Value: value}} }

// normCases are the cases of batch normalisation. Images have one sample of two channels and two pixels: channel 0
// is 1 5, channel 1 is 2 6.
func normCases() []HandCase {
	first := dag.Params{{Name: "eps", Value: 1}}
	cases := []HandCase{
		{
			// Two samples of two pixels, 5 1 and 1 1: μ = 2, deviations 3 -1 -1 -1, squares 12. σ² = 3, and with eps = 1
			// the root is 2; N/(N-1)·σ² = 4. Sums 6 and 2; squares around the means 3 and 1 are 8 and 0. Half of
			// the running 4 and 2 stays.
			Name: "two samples", Op: "batchnorm.stats", Params: NormParams(2, 1, 0.5),
			Shapes: [][]int{{4, 1}, {1}, {1}, {1}, {2, 1}, {2, 1}, {1}, {1}},
			In:     [][]float64{nil, {4}, {2}, {41}, {6, 2}, {8, 0}, {8}, {7}},
			Want:   [][]float64{{2, 4, 7, 0.5}, {3}, {3}, {42}, nil, nil, nil, nil},
		},
		{
			// √(15 + 1) = 4
			Name: "a running variance of 15", Op: "batchnorm.running", Params: first,
			Shapes: [][]int{{4, 1}, {1}, {1}, {1}, {1}},
			In:     [][]float64{nil, {3}, {15}, {8}, {-1}},
			Want:   [][]float64{{3, 2, -1, 0.25}, nil, nil, nil, nil},
		},
		{
			// 2·(3u + 5v + 1 - 3) - 1 = 6u + 10v - 5
			Name: "a filter of two channels with a bias", Op: "batchnorm.fold", Params: first,
			Shapes: [][]int{{1, 1, 2, 1}, {1}, {1, 2, 1, 1}, {1}, {1}, {1}, {1}, {1}},
			In:     [][]float64{nil, nil, {3, 5}, {3}, {15}, {8}, {-1}, {1}},
			Want:   [][]float64{{6, 10}, {-5}, nil, nil, nil, nil, nil, nil},
		},
		{
			// Σ g = 8, Σ g·(x - μ) = 8, N = 4: b = -4·0.5²·8/4, e = -4·8/4.
			Name: "sums of two samples", Op: "batchnorm.dw", Params: dag.Params{{Name: "pixels", Value: 2}},
			Shapes: [][]int{{1}, {1}, {3, 1}, {2, 1}, {2, 1}, {4, 1}},
			In:     [][]float64{nil, nil, nil, {3, 5}, {1, 7}, {0, 4, 0, 0.5}},
			Want:   [][]float64{{4}, {8}, {4, -2, -8}, nil, nil, nil},
		},
	}
	cases = append(cases, totalCases()...)
	cases = append(cases, HandCase{
		// Pixels of one channel with mean 1: y is 2 and 0, so that 3 + 1 and nothing of 4 + 5 passes; 4·(5 - 1) = 16.
		Name: "what another reader adds", Op: "batchnorm.gate.nhwc",
		Shapes: [][]int{{1, 1}, {1, 1}, {1, 1, 2, 1}, {1, 1, 2, 1}, {1, 1, 2, 1}, {4, 1}, {1, 1, 2, 1}},
		In:     [][]float64{nil, nil, {3, 4}, {2, 0}, {5, 7}, {1, 0, 0, 0}, {1, 5}},
		Want:   [][]float64{{4}, {16}, {4, 0}, nil, nil, nil, nil},
	})
	cases = append(cases, HandCase{
		// As for conv2d.nhwc, without cutting off: filter 0 gives 47 57, filter 1 gives 3 -7; means 52 and -2, deviations 5.
		Name: "two filters", Op: "conv2d.nhwc.moments", Params: ConvReLUParams(0, 1, 0),
		Shapes: [][]int{{1, 2}, {1, 2}, {1, 1, 2, 2}, {1, 2, 3, 1}, {2, 2, 1, 2}, {2}},
		In:     [][]float64{nil, nil, nil, {1, 2, 3, 4, 5, 6}, {1, -1, 2, -2, 3, -3, 4, -4}, {10, 40}},
		Want:   [][]float64{{104, -4}, {50, 50}, {47, 3, 57, -7}, nil, nil, nil},
	})
	cases = append(cases, normedConvolutions()...)
	// k: (x - 1)·2 + 1 and (x - 2)/2 - 1, so that y is 1 9 and -1 1.
	k := []float64{1, 2, 2, 0.5, 1, -1, 7, 7}
	image, x := []int{1, 1, 2, 2}, bothChannels(1, 5, 2, 6)
	cases = append(cases,
		HandCase{ // means 3 and 4, both two away from each pixel
			Name: "two channels", Op: "moments.nhwc", Shapes: [][]int{{1, 2}, {1, 2}, image},
			In: [][]float64{nil, nil, x}, Want: [][]float64{{6, 8}, {8, 8}, nil},
		},
		HandCase{
			Name: "two channels", Op: "batchnorm.nhwc", Params: FlagParams("relu", 0), Shapes: [][]int{image, image, {4, 2}},
			In: [][]float64{nil, x, k}, Want: [][]float64{bothChannels(1, 9, -1, 1), nil, nil},
		},
		HandCase{ // 1+1, 9-10, -1+0.5, 1+1
			Name: "the positive part of a sum", Op: "batchnorm.nhwc", Params: FlagParams("relu", 1), Shapes: [][]int{image, image, {4, 2}, image},
			In: [][]float64{nil, x, k, bothChannels(1, -10, 0.5, 1)}, Want: [][]float64{bothChannels(2, 0, 0, 2), nil, nil, nil},
		},
		HandCase{ // 3·0 + 4·4 and, y being -1 at its first pixel, 6·4
			Name: "where y is positive", Op: "batchnorm.sums.nhwc", Params: FlagParams("relu", 1), Shapes: [][]int{{1, 2}, {1, 2}, image, image, {4, 2}},
			In: [][]float64{nil, nil, bothChannels(3, 4, 5, 6), x, k}, Want: [][]float64{{7, 6}, {16, 24}, nil, nil, nil},
		},
		HandCase{ // 2·3 + 1·0 + 10, 2·4 + 1·4 + 10; 0 - 0 + 20, 0.5·6 - 4 + 20
			Name: "where y is positive", Op: "batchnorm.dx.nhwc", Params: FlagParams("relu", 1), Shapes: [][]int{image, image, image, {4, 2}, {3, 2}},
			In: [][]float64{nil, bothChannels(3, 4, 5, 6), x, k, {2, 0.5, 1, -1, 10, 20}}, Want: [][]float64{bothChannels(16, 22, 20, 19), nil, nil, nil, nil},
		},
	)
	return cases
}

// totalCases are the cases of totals over samples, with 5 1 and 1 1 as in the case of batchnorm.stats: four values with the sum 8 and the squares 12 around 2.
func totalCases() []HandCase {
	return []HandCase{
		{
			Name: "two samples", Op: "moments.total", Params: dag.Params{{Name: "pixels", Value: 2}},
			Shapes: [][]int{{3, 1}, {2, 1}, {2, 1}}, In: [][]float64{nil, {6, 2}, {8, 0}}, Want: [][]float64{{4, 8, 12}, nil, nil},
		},
		{
			// Means 3 and 1 of two values each: one from the common mean each, so that 4 is added to the squares. Four values with mean 2 and one of 7 have mean 3: 4·1² and 1·4² are added.
			Name: "samples of two and four values", Op: "moments.merge",
			Shapes: [][]int{{3, 2}, {3, 2}}, In: [][]float64{{2, 4, 6, 8, 8, 12}, {2, 1, 2, 7, 0, 0}}, Want: [][]float64{{4, 5, 8, 15, 12, 32}, nil},
		},
		{
			Name: "two samples", Op: "batchnorm.total",
			Shapes: [][]int{{2, 1}, {2, 1}, {2, 1}}, In: [][]float64{nil, {3, 5}, {1, 7}}, Want: [][]float64{{8, 8}, nil, nil},
		},
	}
}

// bothChannels is an image of two pixels, a and b of channel 0 and c and d of channel 1.
func bothChannels(a, b, c, d float64) []float64 { return []float64{a, c, b, d} }

// normedConvolutions are convolutions of (x - 1)·2 + 1, or of 0 where that is less.
func normedConvolutions() []HandCase {
	k := []float64{1, 2, 1, 7}
	return []HandCase{
		{
			// The image is 0 2 3, 4 5 6. Filter 0: 0·1 + 2·2 + 4·3 + 5·4 + 10 and 2·1 + 3·2 + 5·3 + 6·4 + 10; filter 1 is its negative, and 40.
			Name: "a value below 0", Op: "conv2d.nhwc.norm", Params: ConvReLUParams(0, 1, 0),
			Shapes: [][]int{{1, 1, 2, 2}, {1, 2, 3, 1}, {4, 1}, {2, 2, 1, 2}, {2}},
			In:     [][]float64{nil, {0, 1.5, 2, 2.5, 3, 3.5}, k, {1, -1, 2, -2, 3, -3, 4, -4}, {10, 40}},
			Want:   [][]float64{{46, 4, 57, -7}, nil, nil, nil, nil},
		},
		{
			// Twice 2·5 - 1; the zeros around the pixel are not normalised.
			Name: "padding", Op: "conv2d.nhwc.norm", Params: ConvReLUParams(1, 1, 0),
			Shapes: [][]int{{1, 3, 3, 1}, {1, 1, 1, 1}, {4, 1}, {1, 1, 1, 1}},
			In:     [][]float64{nil, {5}, k, {2}},
			Want:   [][]float64{{0, 0, 0, 0, 18, 0, 0, 0, 0}, nil, nil, nil},
		},
		{
			// The image is 0 5: dw = 5·3 and 5·(-1).
			Name: "a value below 0", Op: "conv2d.nhwc.norm.dw", Params: ConvParams(0, 1),
			Shapes: [][]int{{1, 1, 1, 2}, {1, 1, 2, 2}, {1, 1, 2, 1}, {4, 1}, {2}},
			In:     [][]float64{nil, {1, 2, 3, -1}, {0, 3}, k, nil},
			Want:   [][]float64{{15, -5}, nil, nil, nil, {4, 1}},
		},
	}
}
