package kernels

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels/cuda"
)

// Convolution over channels-last images: the equations of conv2d with images N×H×W×C and filters
// I×J×C×F. The channels under a row of the window follow each other in memory, and so do the
// filters of one channel:
//
//	y[n,u,v,gf]   = b[gf] + Σ_{i,j,c} w[i,j,c,gf] · x[n,u·s+i·d-t,v·s+j·d-l,gc]
//	dx[n,a,b,gc]  = Σ_{i,j,f: u·s+i·d-t=a, v·s+j·d-l=b} wt[I-1-i,J-1-j,gf,c] · dy[n,u,v,gf]
//	dw[i,j,c,gf]  = Σ_{n,u,v} x[n,u·s+i·d-t,v·s+j·d-l,gc] · dy[n,u,v,gf]
//	db[gf]        = Σ_{n,u,v} dy[n,u,v,gf]
//
// The gradient of x takes the filters turned round and transposed,
// wt[i,j,gf,c] = w[I-1-i,J-1-j,c,gf], which makes it a convolution of dy.

var conv2dNHWC = Kernel{
	Op: "conv2d.nhwc", Doc: "y = x ⋆ w + b, with relu = 1 its positive part; channels last",
	Operands: []Operand{
		sums("y", "n oh ow g:f"),
		reads("x", Real, "n "+windowIndices+" g:c"),
		reads("w", Real, "i j c g:f"),
		optional(reads("b", Real, "g:f")),
	},
	Params: reluParams, Options: slidingOptions, Sizes: groupSizes,
	Check:    checkReLU,
	PerPoint: 2,
	Flops:    func(s *Spec) float64 { return s.Param("relu")*s.volume(0) + biasFlops(s, 3, 0) },
	Variants: withRef("the sum as written", conv2dNHWCRef[float32], conv2dNHWCRef[float64],
		atLevels("a product per zone of pixels, straight from the image", conv2dNHWCAt[float32], conv2dNHWCAt[float64], convWorkspace(0, 2)),
		convolutionLast.maps.variants(convolutionLast.forwardProducts, withOptions(reluParams...)...),
		libraryConvolution{convolution: &convolutionLast, kind: cuda.Forward, x: 1, y: 0, w: 2}.variants(withOptions(reluParams...)...)),
}

var conv2dNHWCDx = Kernel{
	Op: "conv2d.nhwc.dx", Doc: "dx = gradient of conv2d.nhwc with respect to x, with x given 0 where x ≤ 0 (x is the output of a ReLU)",
	Operands: []Operand{
		sums("dx", "n "+windowIndices+" g:c"),
		reads("dy", Real, "n oh ow g:f"),
		reads("wt", Real, "-i -j g:f c"),
		optional(reads("x", Real, "n "+windowIndices+" g:c")),
	},
	Params: slidingParams, Options: slidingOptions, Sizes: groupSizes,
	Check: func(s *Spec) error {
		if len(s.Operands) > 3 && s.Operands[0].Mode != dag.Write {
			return fmt.Errorf("dx is added to, so that x, by which the sum is cut off, must come later")
		}
		return nil
	},
	PerPoint: 2,
	Variants: withRef("the sum as written", conv2dNHWCDxRef[float32], conv2dNHWCDxRef[float64],
		atLevels("as conv2d.nhwc, one convolution of dy per phase of the stride", conv2dNHWCDxAt[float32], conv2dNHWCDxAt[float64], conv2dNHWCDxWorkspace),
		convolutionLast.maps.variants(convolutionLast.inputProducts, withOptions(slidingParams...)...),
		libraryConvolution{convolution: &convolutionLast, kind: cuda.InputGradient, x: 0, y: 1, w: 2}.variants(withOptions(slidingParams...)...)),
}

var conv2dNHWCDw = Kernel{
	Op: "conv2d.nhwc.dw", Doc: "dw, db = gradients of conv2d.nhwc with respect to w and b",
	Operands: []Operand{
		sums("dw", "i j c g:f"),
		reads("dy", Real, "n oh ow g:f"),
		reads("x", Real, "n "+windowIndices+" g:c"),
		optional(sums("db", "g:f")),
	},
	Params: slidingParams, Options: slidingOptions, Sizes: groupSizes,
	PerPoint: 2,
	Flops:    func(s *Spec) float64 { return biasFlops(s, 3, 1) },
	Variants: withRef("the sum as written", conv2dNHWCDwRef[float32], conv2dNHWCDwRef[float64],
		atLevels("a product with the transposed image per zone of pixels", conv2dNHWCDwAt[float32], conv2dNHWCDwAt[float64], convWorkspace(1, 0)),
		convolutionLast.weights.variants(convolutionLast.weightProducts, withOptions(slidingParams...)...),
		libraryConvolution{convolution: &convolutionLast, kind: cuda.WeightGradient, x: 2, y: 1, w: 0}.variants(withOptions(slidingParams...)...)),
}

// checkReLU refuses the positive part of a sum that is not complete.
func checkReLU(s *Spec) error {
	relu, err := intParam(s, "relu", 0, 1)
	if err == nil && relu == 1 && s.Operands[0].Mode != dag.Write {
		return fmt.Errorf("y is added to, so that relu must be 0")
	}
	return err
}

// conv2dNHWCRef computes the sum over i, j, c in this order and adds the bias last.
func conv2dNHWCRef[T Float](call *Call) {
	w := map4Of[T](&call.Args[2])
	convRef(call, map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), w, w.extent[2], rectifies(call.Params))
}

// convRef is the convolution of maps that are seen channels last. Its sums take some channels of
// the whole window, then the next.
func convRef[T Float](call *Call, y, x, w map4[T], some int, relu bool) {
	g, add := windowingOf(call.Params), call.Args[0].Accumulates()
	y.each(func(n, u, v, f int) {
		sum := window(&g, &x, &w, n, u, v, f, some)
		if len(call.Args) > 3 {
			sum += Data[T](&call.Args[3])[f]
		}
		if relu && sum < 0 {
			sum = 0
		}
		put(&y.elems[y.at(n, u, v, f)], sum, add)
	})
}

// window is the product of filter f with window u, v of sample n. It takes some channels at a time.
func window[T Float](g *windowing, x, w *map4[T], n, u, v, f, some int) T {
	var sum T
	before := f / (w.extent[3] / g.groups) * w.extent[2] // channels of the groups before that of f
	for first := 0; first < w.extent[2]; first += some {
		for i := range w.extent[0] {
			for j := range w.extent[1] {
				a, b := g.rows.image(u, i), g.columns.image(v, j)
				if a < 0 || a >= x.extent[1] || b < 0 || b >= x.extent[2] {
					continue
				}
				for c := first; c < first+some; c++ {
					sum += w.elems[w.at(i, j, c, f)] * x.elems[x.at(n, a, b, before+c)]
				}
			}
		}
	}
	return sum
}

// conv2dNHWCDxRef computes the sum over i, j, f in this order.
func conv2dNHWCDxRef[T Float](call *Call) {
	dx, dy, wt := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	g, add := windowingOf(call.Params), call.Args[0].Accumulates()
	dx.each(func(n, a, b, c int) {
		put(&dx.elems[dx.at(n, a, b, c)], spreadNHWC(&g, &dy, &wt, n, a, b, c), add)
	})
	if len(call.Args) < 4 {
		return
	}
	x := map4Of[T](&call.Args[3])
	dx.each(func(n, a, b, c int) {
		if !(x.elems[x.at(n, a, b, c)] > 0) {
			dx.elems[dx.at(n, a, b, c)] = 0
		}
	})
}

// spreadNHWC adds up, over all windows that hold pixel a, b, the gradient of its channel c.
func spreadNHWC[T Float](g *windowing, dy, wt *map4[T], n, a, b, c int) T {
	var sum T
	channels, filters := wt.extent[3], wt.extent[2]/g.groups
	first := c / channels * filters // of the channel's group
	for i := range wt.extent[0] {
		for j := range wt.extent[1] {
			u, above := g.rows.window(a, wt.extent[0]-1-i, dy.extent[1])
			v, beside := g.columns.window(b, wt.extent[1]-1-j, dy.extent[2])
			if !above || !beside {
				continue
			}
			for f := first; f < first+filters; f++ {
				sum += wt.elems[wt.at(i, j, f, c%channels)] * dy.elems[dy.at(n, u, v, f)]
			}
		}
	}
	return sum
}

func conv2dNHWCDwRef[T Float](call *Call) {
	convDwRef(call, map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2]))
}

// convDwRef computes the sums over n, u, v in this order, then stores or adds them. All maps are
// seen channels last.
func convDwRef[T Float](call *Call, dw, dy, x map4[T]) {
	g := windowingOf(call.Params)
	dw.each(func(i, j, c, f int) {
		put(&dw.elems[dw.at(i, j, c, f)], tapNHWC(&g, &dy, &x, i, j, c, f), call.Args[0].Accumulates())
	})
	if len(call.Args) > 3 {
		db := Data[T](&call.Args[3])
		for f := range db {
			put(&db[f], dy.channelSum(f), call.Args[3].Accumulates())
		}
	}
}

// tapNHWC is the gradient of the weight of filter f and channel c of its group at tap i, j of the
// window.
func tapNHWC[T Float](g *windowing, dy, x *map4[T], i, j, c, f int) T {
	var sum T
	c += f / (dy.extent[3] / g.groups) * (x.extent[3] / g.groups)
	for n := range dy.extent[0] {
		for u := range dy.extent[1] {
			for v := range dy.extent[2] {
				a, b := g.rows.image(u, i), g.columns.image(v, j)
				if a >= 0 && a < x.extent[1] && b >= 0 && b < x.extent[2] {
					sum += dy.elems[dy.at(n, u, v, f)] * x.elems[x.at(n, a, b, c)]
				}
			}
		}
	}
	return sum
}

// channelSum is the sum of channel f over all pixels.
func (m *map4[T]) channelSum(f int) T {
	var sum T
	for n := range m.extent[0] {
		for u := range m.extent[1] {
			for v := range m.extent[2] {
				sum += m.elems[m.at(n, u, v, f)]
			}
		}
	}
	return sum
}
