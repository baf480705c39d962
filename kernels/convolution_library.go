package kernels

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels/offload"
)

// Convolutions by a library, cuDNN, are variants beside our own kernels: "cudnn" in the
// arithmetic of the type, "cudnn-tf32" on tensor cores. With channels last cuDNN takes filters as f×k×k×c, and only whole operands. So filters of other layouts, and regions of
// larger buffers, are copied to the workspace before it, and results from there after it. cuDNN
// adds bias and results and takes the positive part itself. The mask of a ReLU and the gradient
// of the bias are kernels of ours. cuDNN has no float64 there.

// CuDNN is the library's name in Variant.Library.
const CuDNN = "cudnn"

// convolutionWorkBytes is the least of cuDNN's own workspace. It also gets the room of operands
// that need no copy, since it turns operands round for what it does not compute in their layout.
// The call alone decides which algorithms fit, and with it the bits.
const convolutionWorkBytes = 8 << 20

// libraryConvolution is an operation that cuDNN does: its kind, and which operands are the image,
// the convolved image and the filters. With SGD PyTorch's filters descend on the gradient, which
// stays in the workspace. With Pool there are a pooled map and its marks in place of the convolved image, and the
// operands are those of the operation without pooling.
type libraryConvolution struct {
	*convolution
	kind    offload.ConvolutionKind
	x, y, w int
	with    Attributes
}

// variants are "cudnn" and "cudnn-tf32" of an operation with named parameters.
func (l libraryConvolution) variants(params ...string) []Variant {
	of, workBytes := l.of, l.workBytes
	if l.with.Has(Pool) {
		of, workBytes = l.ofPooled, l.pooledWorkBytes
	}
	workspace := func(s *Spec) int64 { return workBytes(unplaced(s, params)) }
	return []Variant{
		l.variant("cudnn", "cuDNN, in the type's own arithmetic", false, of, workspace),
		l.variant("cudnn-tf32", "cuDNN on tensor cores: factors rounded to 11 bits, sums in float32", true, of, workspace),
	}
}

func (l *libraryConvolution) variant(name, doc string, tf32 bool, of shareOut, workspace func(*Spec) int64) Variant {
	v := Variant{
		Name: name, Code: CUDACode, Types: []dag.DType{dag.Float32}, Doc: doc, Library: CuDNN, MostElements: mostCounted, WorkspaceBytes: workspace, Takes: l.takes,
		Before:      func(c *DeviceCall) []offload.Launch { return of(c, tf32).before },
		LibraryCall: func(c *DeviceCall) offload.LibraryCall { return of(c, tf32).part },
		Launches:    func(c *DeviceCall) []offload.Launch { return of(c, tf32).after },
	}
	if tf32 {
		v.Capability, v.FactorBits = 80, TF32Bits
	}
	return v
}

// window is where the filters have rows and columns of the window.
func (l *libraryConvolution) window() filterLayout {
	if l.with.Has(SGD) {
		return asPyTorch
	}
	return l.filters
}

// takes fails for windows that are no squares or have gaps, padding that differs from side to side,
// groups, and a convolution that is added to what is there.
func (l *libraryConvolution) takes(s *Spec) error {
	for i, o := range sliding {
		if plain := []float64{s.Param("stride"), 1, 1, 1}[i]; sliding.value(s, o.name) != plain {
			return fmt.Errorf("%s: %s is %g, and the call of cuDNN has %g", s.Op, o.name, sliding.value(s, o.name), plain)
		}
	}
	shape := func(i int) []int {
		if l.with.Has(Pool) && i > l.y {
			i++ // after the marks
		}
		return s.Operands[i].Shape
	}
	x, y, w, at := shape(l.x), shape(l.y), shape(l.w), l.window()
	pad, stride := int(s.Param("top")), int(s.Param("stride"))
	fits := pad >= 0 && s.Param("left") == s.Param("top") && w[at.i] == w[at.j] && (l.kind != offload.Forward || s.Operands[0].Mode == dag.Write)
	for _, d := range []int{1, 2} {
		pixels := windows(x[d], w[at.i], pad, stride)
		if l.with.Has(Pool) {
			pixels = windows(pixels, int(s.Param("size")), 0, int(s.Param("step")))
		}
		fits = fits && pixels == y[d]
	}
	if !fits {
		return fmt.Errorf("%s: cuDNN takes square windows, and the same padding on all sides", s.Op)
	}
	return nil
}

// convolutionCall is a call that was shared out: launches before cuDNN's part, its part, and
// launches after it.
type convolutionCall struct {
	before, after []offload.Launch
	part          offload.Convolution

	work uint64 // where the free part of the workspace begins
	real dag.DType
}

// shareOut shares a call out between cuDNN and our kernels.
type shareOut func(c *DeviceCall, tf32 bool) *convolutionCall

// of is a [shareOut].
func (l *libraryConvolution) of(c *DeviceCall, tf32 bool) *convolutionCall {
	to := &convolutionCall{work: c.Work, real: c.Type, part: offload.Convolution{
		Kind: l.kind, TF32: tf32,
		Pad: c.param(5), Stride: c.param(4), Add: c.Args[0].Accumulates() && !l.with.Has(SGD),
	}}
	x, y, w := &c.Args[l.x], &c.Args[l.y], &c.Args[l.w]
	to.part.X, to.part.Y = l.image(to, x), l.image(to, y)
	to.part.Window = index32(w.Shape[l.window().i])
	if !l.with.Has(SGD) {
		to.part.W = l.filtersOf(to, w)
	} else {
		to.part.W = l.descent(to, c)
	}
	switch l.kind {
	case offload.Forward:
		to.part.Bias, to.part.ReLU = c.bias(3), rectifies(c.Params)
	case offload.InputGradient:
		if len(c.Args) > 3 { // it stops where the input is not positive
			to.after = append(to.after, elements(c, "library", "library_mask", []*DeviceArg{&c.Args[0], &c.Args[3]})...)
		}
	case offload.WeightGradient:
		if p, any := l.biasSums(c); any {
			to.after = append(to.after, l.weights.launches(c.Type, mathSIMT, p, c.Work)...)
		}
	}
	to.part.Work, to.part.WorkBytes = to.work, int64(c.Work)+l.bytes(c)-int64(to.work)
	return to
}

// workBytes is the workspace of a call: copies and cuDNN's own, or the sums of the bias, which
// come later.
func (l *libraryConvolution) workBytes(c *DeviceCall) int64 {
	bytes := l.bytes(c)
	if l.kind == offload.WeightGradient {
		if p, any := l.biasSums(c); any {
			bytes = max(bytes, l.weights.partialBytes(c.Type, mathSIMT, &p))
		}
	}
	return bytes
}

// bytes is room for a copy of each operand, for the gradient twice where filters descend, and for
// cuDNN at least.
func (l *libraryConvolution) bytes(c *DeviceCall) int64 {
	bytes := int64(convolutionWorkBytes)
	for _, i := range []int{l.x, l.y, l.w} {
		bytes += c.Args[i].packedBytes()
	}
	if l.with.Has(SGD) {
		bytes += c.Args[l.w].packedBytes()
	}
	return bytes
}

// packedBytes is the room of a packed copy in a workspace.
func (a *DeviceArg) packedBytes() int64 {
	bytes := a.Type.SizeBytes()
	for _, e := range a.Shape {
		bytes *= int64(e)
	}
	return (bytes + workAlignment - 1) &^ (workAlignment - 1)
}

// packed reports whether the dimensions from one on have no gaps.
func (a *DeviceArg) packed(from int) bool {
	step := 1
	for d := len(a.Shape) - 1; d >= from; d-- {
		if a.Shape[d] != 1 && a.Stride[d] != step {
			return false
		}
		step *= a.Shape[d]
	}
	return true
}

// move is launches that copy the second argument of a call to the first.
type move func(c *DeviceCall) []offload.Launch

// room takes room for an operand from the workspace.
func (to *convolutionCall) room(mode dag.Mode, shape []int) DeviceArg {
	a := BindDevice(to.work, &dag.Buffer{Type: to.real, Shape: shape}, nil, mode)
	to.work += uint64(a.packedBytes())
	return a
}

// laidOut is an operand in the form that cuDNN takes: a copy in the workspace with the given
// extents. in fills the copy if its values are needed; out empties it if it is a result.
func (to *convolutionCall) laidOut(a *DeviceArg, shape []int, in, out move) *DeviceArg {
	own := to.room(a.Mode, shape)
	if a.Mode == dag.Read || a.Accumulates() {
		to.before = append(to.before, in(&DeviceCall{Type: to.real, Args: []DeviceArg{own, *a}})...)
	}
	if a.Mode != dag.Read {
		to.after = append(to.after, out(&DeviceCall{Type: to.real, Args: []DeviceArg{*a, own}})...)
	}
	return &own
}

// image is an image for cuDNN: the operand itself, or a copy.
func (l *libraryConvolution) image(to *convolutionCall, a *DeviceArg) offload.Image {
	if !a.packed(0) {
		a = to.laidOut(a, a.Shape, copyElements, copyElements)
	}
	// The stride of an extent of 1 may be any number in an operand; in packed ones it is that of
	// the extents.
	strides := BindDevice(0, &dag.Buffer{Shape: a.Shape}, nil, a.Mode).Stride
	image := offload.Image{Addr: a.Addr}
	for i, d := range [4]int{0, 3, 1, 2} {
		image.Extent[i], image.Stride[i] = index32(a.Shape[d]), index32(strides[d])
	}
	return image
}

// Filters k×k×c×f are turned to f×k×k×c and back, and these to f×c×k×k, as layouts are.
var (
	filtersToLibrary   = moveOnCUDA(&layoutTiles{[4]int{3, 0, 1, 2}, false, []int{1, 2, 3}, []int{0}, -1})
	filtersFromLibrary = moveOnCUDA(&layoutTiles{[4]int{1, 2, 3, 0}, false, []int{3}, []int{0, 1, 2}, -1})
	filtersToPyTorch   = moveOnCUDA(&layoutTiles{[4]int{0, 3, 1, 2}, false, []int{2, 3}, []int{1}, 0})
)

// filtersOf is the address of packed filters.
func (l *libraryConvolution) filtersOf(to *convolutionCall, w *DeviceArg) uint64 {
	if l.kind == offload.InputGradient {
		return to.laidOut(turnedBack(w), []int{w.Shape[2], w.Shape[0], w.Shape[1], w.Shape[3]}, copyElements, nil).Addr
	}
	return to.laidOut(w, []int{w.Shape[3], w.Shape[0], w.Shape[1], w.Shape[2]}, filtersToLibrary, filtersFromLibrary).Addr
}

// descent is the address of the gradient of filters that descend on it. after is its layout.
func (l *libraryConvolution) descent(to *convolutionCall, c *DeviceCall) uint64 {
	w, hyper, momentum := &c.Args[l.w], l.x+1, len(c.Params)-len(sgdParamNames)
	g := to.room(dag.Write, w.Shape)
	last := to.laidOut(&g, []int{w.Shape[0], w.Shape[2], w.Shape[3], w.Shape[1]}, nil, filtersToPyTorch)
	step := &DeviceCall{Type: c.Type, Params: c.Params[momentum:], Args: []DeviceArg{*w, g, c.Args[hyper]}}
	if c.Params[momentum] != 0 {
		_, vw := afterHyper(hyper, l.with)
		step.Args = append(step.Args, c.Args[vw])
	}
	to.after = append(to.after, sgdOnCUDA(step)...)
	return last.Addr
}

// turnedBack is filters wt[k-1-i,k-1-j,f,c], which the gradient of the input takes, as f×k×k×c.
// Their rows and columns run backwards.
func turnedBack(wt *DeviceArg) *DeviceArg {
	last := int64((wt.Shape[0]-1)*wt.Stride[0]+(wt.Shape[1]-1)*wt.Stride[1]) * wt.Type.SizeBytes()
	return &DeviceArg{
		Mode: wt.Mode, Type: wt.Type, Addr: wt.Addr + uint64(last),
		Shape:  []int{wt.Shape[2], wt.Shape[0], wt.Shape[1], wt.Shape[3]},
		Stride: []int{wt.Stride[2], -wt.Stride[0], -wt.Stride[1], wt.Stride[3]},
	}
}

// copyElements is a move between operands of equal extents.
func copyElements(c *DeviceCall) []offload.Launch {
	return elements(c, "library", "library_copy", c.all())
}

// biasSums is the gradient of the bias: the row or column of ones of the weights' product, alone.
// any is false without a bias.
func (l *libraryConvolution) biasSums(c *DeviceCall) (p productParams, any bool) {
	p = l.gradientProducts(l.with &^ Pool)(c)[0]
	if p.ones == noOnes {
		return p, false
	}
	return p.onesAlone(), true
}
