package kernels

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels/offload"
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

var conv2dNHWC = linear{factors: []int{1, 2}, bias: 3, relu: rectifies}.of(Kernel{
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
},
	atLevels("a product per zone of pixels, straight from the image", conv2dNHWCAt[float32], conv2dNHWCAt[float64], conv2dNHWCWorkspace),
	winogradVariants(winogradDoc, conv2dNHWCWinograd, winogradTaken(2, 0), winogradWorkspace(1, 0)),
	convolutionLast.maps.variants(convolutionLast.forwardProducts, withOptions(reluParams...)...),
	libraryConvolution{convolution: &convolutionLast, kind: offload.Forward, x: 1, y: 0, w: 2}.variants(withOptions(reluParams...)...))

var conv2dNHWCDx = linear{factors: []int{1, 2}, gate: 3}.of(Kernel{
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
},
	atLevels("as conv2d.nhwc, one convolution of dy per phase of the stride", conv2dNHWCDxAt[float32], conv2dNHWCDxAt[float64], conv2dNHWCDxWorkspace),
	winogradVariants(winogradDoc, conv2dNHWCDxWinograd, winogradTaken(2, 0), winogradWorkspace(1, 0)),
	convolutionLast.maps.variants(convolutionLast.inputProducts, withOptions(slidingParams...)...),
	libraryConvolution{convolution: &convolutionLast, kind: offload.InputGradient, x: 0, y: 1, w: 2}.variants(withOptions(slidingParams...)...))

var conv2dNHWCDw = linear{factors: []int{1, 2}, total: 3}.of(Kernel{
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
},
	atLevels("a product with the transposed image per zone of pixels", conv2dNHWCDwAt[float32], conv2dNHWCDwAt[float64], conv2dNHWCDwWorkspace),
	winogradVariants(winogradDoc, conv2dNHWCDwWinograd, winogradTaken(0, 0), conv2dNHWCDwWinogradWorkspace),
	convolutionLast.weights.variants(convolutionLast.weightProducts, withOptions(slidingParams...)...),
	libraryConvolution{convolution: &convolutionLast, kind: offload.WeightGradient, x: 2, y: 1, w: 0}.variants(withOptions(slidingParams...)...))

// checkReLU refuses the positive part of a sum that is not complete.
func checkReLU(s *Spec) error {
	relu, err := intParam(s, "relu", 0, 1)
	if err == nil && relu == 1 && s.Operands[0].Mode != dag.Write {
		return fmt.Errorf("y is added to, so that relu must be 0")
	}
	return err
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
