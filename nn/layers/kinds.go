package layers

import "dahl/nn"

// This file has the lines of the table of layers, by kind.

// products are the lines of layers whose work is a product with a weight.
func products() []Info {
	return []Info{
		{
			Kind: "conv2d", Doc: "convolution (cross-correlation, as PyTorch's)",
			Keys: []Key{
				{Name: "filters", Min: 1, Max: MaxExtent, Needed: true, Doc: "output channels"},
				{Name: "kernel", Min: 1, Max: MaxExtent, Needed: true, Sides: 2, Doc: "height and width of the kernel"},
				{Name: "pad", Min: 0, Max: MaxExtent, Default: 0, Sides: 4, Doc: "zeros on each side"},
				{Name: "stride", Min: 1, Max: MaxExtent, Default: 1, Sides: 2, Doc: "distance between neighbouring windows"},
				{Name: "dilation", Min: 1, Max: MaxExtent, Default: 1, Sides: 2, Doc: "distance between neighbouring taps of the kernel"},
				{Name: "groups", Min: 1, Max: MaxExtent, Default: 1, Doc: "into which channels and filters fall; as many as channels: depthwise"},
				{Name: "bias", Max: 1, Default: 1, Flag: true, Doc: "whether a bias per filter is added"},
			},
			New: conv2dOf,
		},
		{
			Kind: "dense", Doc: "fully connected: y = x·wᵀ + b",
			Keys: []Key{
				{Name: "outputs", Min: 1, Max: MaxExtent, Needed: true, Doc: "output features"},
				{Name: "bias", Max: 1, Default: 1, Flag: true, Doc: "whether a bias per output is added"},
				{Name: "deviation", Max: 1, Default: 0, Fraction: true, Doc: "of the normal distribution with which the weight begins; 0: as PyTorch's"},
			},
			New: func(s Settings) nn.Layer {
				return Dense{Outputs: s.count("outputs"), NoBias: s["bias"] == 0, Deviation: s["deviation"]}
			},
		},
	}
}

// tokens are the lines of layers that make sequences of tokens or of other samples, or choose among positions.
func tokens() []Info {
	return []Info{
		{
			Kind: "embedding", Doc: "a row of a table for each token",
			Keys: []Key{
				{Name: "tokens", Min: 1, Max: MaxExtent, Needed: true, Doc: "size of the vocabulary"},
				{Name: "width", Min: 1, Max: MaxExtent, Needed: true, Doc: "features of each position"},
				{Name: "deviation", Max: 1, Default: 1, Fraction: true, Doc: "of the normal distribution with which the table begins"},
			},
			New: func(s Settings) nn.Layer {
				return Embedding{Tokens: s.count("tokens"), Width: s.count("width"), Deviation: s["deviation"]}
			},
		},
		{
			Kind: "positions", Doc: "a learned vector added to each position",
			Keys: []Key{{Name: "deviation", Max: 1, Default: 1, Fraction: true, Doc: "of the normal distribution with which the vectors begin"}},
			New:  func(s Settings) nn.Layer { return Positions{Deviation: s["deviation"]} },
		},
		{
			Kind: "class_token", Doc: "a learned vector before the first position",
			Keys: []Key{{Name: "deviation", Max: 1, Default: 0, Fraction: true, Doc: "of the normal distribution with which the vector begins; 0: zeros"}},
			New:  func(s Settings) nn.Layer { return ClassToken{Deviation: s["deviation"]} },
		},
		{
			Kind: "select", Doc: "one position of a sequence, T×C as 1×C",
			Keys: []Key{{Name: "position", Min: 0, Max: MaxExtent, Default: 0, Doc: "which one, from 0 on"}},
			New:  func(s Settings) nn.Layer { return Select{Position: s.count("position")} },
		},
		{
			Kind: "mask", Doc: "0 where a token fills a short sample up, else 1; the second input of an attention",
			Keys: []Key{{Name: "token", Min: 0, Max: MaxExtent, Default: 0, Doc: "that fills samples up"}},
			New:  func(s Settings) nn.Layer { return Mask{s.count("token")} },
		},
		{
			Kind: "segments", Doc: "1 behind the first token of a kind and up to the second, else 0",
			Keys: []Key{{Name: "token", Min: 0, Max: MaxExtent, Needed: true, Doc: "behind the first and the second part of a sample"}},
			New:  func(s Settings) nn.Layer { return Segments{s.count("token")} },
		},
	}
}

// sequences are the lines of layers of positions.
func sequences() []Info {
	return []Info{
		{
			Kind: "layernorm", Doc: "features of each position less their mean, by their deviation, times a weight, plus a bias",
			Keys: []Key{
				{Name: "eps", Min: 1e-12, Max: 1, Default: defaultEps, Fraction: true, Doc: "added to the variance"},
				{Name: "bias", Max: 1, Default: 1, Flag: true, Doc: "whether a bias is added"},
			},
			New: func(s Settings) nn.Layer { return LayerNorm{Eps: s["eps"], NoBias: s["bias"] == 0} },
		},
		{
			Kind: "rmsnorm", Doc: "features of each position by their root mean square, times a weight",
			Keys: []Key{{Name: "eps", Min: 1e-12, Max: 1, Default: defaultEps, Fraction: true, Doc: "added to the mean square"}},
			New:  func(s Settings) nn.Layer { return RMSNorm{Eps: s["eps"]} },
		},
		{
			Kind: "attention", Doc: "softmax(q·kᵀ/√D)·v among positions; the input has all queries, then keys, then values",
			Keys: []Key{
				{Name: "heads", Min: 1, Max: MaxExtent, Needed: true, Doc: "of queries"},
				{Name: "key_heads", Min: 0, Max: MaxExtent, Default: 0, Doc: "of keys and values, a divisor of heads; 0: heads"},
				{Name: "causal", Max: 1, Default: 0, Flag: true, Doc: "whether a position sees itself and those before it, and not those behind"},
				{Name: "window", Min: 0, Max: MaxExtent, Default: 0, Doc: "how many positions a position sees to a side, itself among them; 0: all"},
				{Name: "attention_dropout", Min: 0, Max: 1, Default: 0, Fraction: true, Doc: "the probability that training drops the weight of a key"},
			},
			New: func(s Settings) nn.Layer {
				return Attention{Heads: s.count("heads"), KeyHeads: s.count("key_heads"), Causal: s["causal"] == 1, Window: s.count("window"), Dropout: s["attention_dropout"]}
			},
		},
		{
			Kind: "rotary", Doc: "the first heads turned by angles that grow with the position, the rest as it is",
			Keys: []Key{
				{Name: "heads", Min: 1, Max: MaxExtent, Needed: true, Doc: "that are turned: queries and keys"},
				{Name: "width", Min: 2, Max: MaxExtent, Needed: true, Doc: "features of a head, an even number"},
				{Name: "base", Min: 1, Max: MaxExtent, Default: defaultBase, Fraction: true, Doc: "of the powers that divide the angles"},
			},
			New: func(s Settings) nn.Layer {
				return Rotary{Heads: s.count("heads"), Width: s.count("width"), Base: s["base"]}
			},
		},
	}
}

// images are the lines of layers of images.
func images() []Info {
	return []Info{
		{
			Kind: "batchnorm", Doc: "each channel less its mean, by its deviation, times a weight, plus a bias",
			Keys: []Key{
				{Name: "eps", Min: 1e-12, Max: 1, Default: defaultEps, Fraction: true, Doc: "added to the variance"},
				{Name: "momentum", Min: 1e-12, Max: 1, Default: defaultMomentum, Fraction: true, Doc: "part of a batch in the running mean and variance"},
			},
			New: func(s Settings) nn.Layer { return BatchNorm{Eps: s["eps"], Momentum: s["momentum"]} },
		},
		{
			Kind: "maxpool", Doc: "maximum of windows",
			Keys: poolKeys(),
			New:  func(s Settings) nn.Layer { return poolOf(s) },
		},
		{
			Kind: "avgpool", Doc: "average of windows",
			Keys: poolKeys(),
			New:  func(s Settings) nn.Layer { return AvgPool(poolOf(s)) },
		},
		{
			Kind: "globalavgpool", Doc: "average of all pixels of each channel",
			New: func(Settings) nn.Layer { return GlobalAvgPool{} },
		},
		{
			Kind: "flatten", Doc: "C×H×W as one vector: another view, no task",
			New: func(Settings) nn.Layer { return Flatten{} },
		},
		{
			Kind: "pixels", Doc: "pixels as positions, C×H×W as (H·W)×C, or positions as pixels, T×C as C×T×1: another view, no task",
			New: func(Settings) nn.Layer { return Pixels{} },
		},
	}
}

// values are the lines of layers of values of any shape.
func values() []Info {
	return []Info{
		{
			Kind: "relu", Doc: "max(x, 0), gradient 0 at 0",
			New: func(Settings) nn.Layer { return ReLU{} },
		},
		{
			Kind: "dropout", Doc: "elements at random 0 in training steps, the others times 1/(1-p)",
			Keys: []Key{{Name: "p", Min: 0, Max: 1, Default: DefaultP, Fraction: true, Doc: "probability of 0"}},
			New:  func(s Settings) nn.Layer { return Dropout{P: s["p"]} },
		},
		{
			Kind: "add", Doc: "sum of two or more inputs of one shape",
			New: func(Settings) nn.Layer { return Add{} },
		},
		{
			Kind: "multiply", Doc: "product of two inputs of one shape, element by element",
			New: func(Settings) nn.Layer { return Multiply{} },
		},
		{
			Kind: "concat", Doc: "the channels or features of two or more inputs behind each other",
			New: func(Settings) nn.Layer { return Concat{} },
		},
	}
}

func poolKeys() []Key {
	return []Key{
		{Name: "size", Min: 1, Max: MaxExtent, Needed: true, Sides: 2, Doc: "height and width of the window"},
		{Name: "stride", Min: 0, Max: MaxExtent, Default: 0, Sides: 2, Doc: "distance between neighbouring windows; 0: size"},
		{Name: "pad", Min: 0, Max: MaxExtent, Default: 0, Sides: 4, Doc: "on each side, at most half of the window; of a maximum nothing, of an average zeros"},
	}
}
