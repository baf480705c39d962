package gpu

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Convolutions by a library, cuDNN, are variants like our own kernels: "cudnn" in the
// arithmetic of the type, "cudnn-tf32" on tensor cores. With channels last cuDNN takes filters as f×k×k×c, and only whole operands. So filters of other layouts, and regions of
// larger buffers, are copied to the workspace before it, and results from there after it. cuDNN
// adds bias and results and takes the positive part itself. The mask of a ReLU and the gradient
// of the bias are kernels of ours. cuDNN has no float64 there.

// convolutionWorkBytes is the least of cuDNN's own workspace. It also gets the room of operands
// that need no copy, since it turns operands round where it does not compute in their layout.
// The call alone decides which algorithms fit, and with it the bits.
const convolutionWorkBytes = 8 << 20

// LibraryConvolution is an operation that cuDNN does: its kind, and which operands are the image,
// the convolved image and the filters. With SGD PyTorch's filters descend on the gradient, which
// stays in the workspace. With Pool there are a pooled map and its marks in place of the convolved image, and X, Y and W
// count the operands of the operation without pooling.
type LibraryConvolution struct {
	*Convolution
	Kind    offload.ConvolutionKind
	X, Y, W int
	With    calls.Attributes
}

// Variants are "cudnn" and "cudnn-tf32" of an operation with named parameters.
func (l LibraryConvolution) Variants(params ...string) []calls.Variant {
	of, workBytes := l.callOf, l.workBytes
	if l.With.Has(calls.Pool) {
		of, workBytes = l.ofPooled, l.pooledWorkBytes
	}
	workspace := func(s *calls.Spec) int64 { return workBytes(unplaced(s, params)) }
	return []calls.Variant{
		l.variant("cudnn", "cuDNN, in the type's own arithmetic", false, of, workspace),
		l.variant("cudnn-tf32", "cuDNN on tensor cores: factors rounded to 11 bits, sums in float32", true, of, workspace),
	}
}

func (l *LibraryConvolution) variant(name, doc string, tf32 bool, of shareOut, workspace func(*calls.Spec) int64) calls.Variant {
	v := calls.Variant{
		Name: name, Code: calls.CUDACode, Types: []dag.DType{dag.Float32}, Doc: doc, Library: offload.CuDNN, MostElements: mostCounted, WorkspaceBytes: workspace, Takes: l.takes,
		Before:      func(c *calls.DeviceCall) []offload.Launch { return of(c, tf32).before },
		LibraryCall: func(c *calls.DeviceCall) offload.LibraryCall { return of(c, tf32).part },
		Launches:    func(c *calls.DeviceCall) []offload.Launch { return of(c, tf32).after },
	}
	if tf32 {
		v.Capability, v.FactorBits = 80, calls.TF32Bits
	}
	return v
}

// window is where the filters have rows and columns of the window.
func (l *LibraryConvolution) window() filterLayout {
	if l.With.Has(calls.SGD) {
		return asPyTorch
	}
	return l.filters
}

// takes fails for windows with gaps or unequal sides, unequal padding,
// groups, and a convolution in mode ReadWrite.
func (l *LibraryConvolution) takes(s *calls.Spec) error {
	for i, o := range calls.Sliding {
		if plain := []float64{s.Param("stride"), 1, 1, 1}[i]; calls.Sliding.Value(s, o.Name) != plain {
			return fmt.Errorf("%s: %s is %g, and the call of cuDNN has %g", s.Op, o.Name, calls.Sliding.Value(s, o.Name), plain)
		}
	}
	shape := func(i int) []int {
		if l.With.Has(calls.Pool) && i > l.Y {
			i++ // after the marks
		}
		return s.Operands[i].Shape
	}
	x, y, w, at := shape(l.X), shape(l.Y), shape(l.W), l.window()
	pad, stride := int(s.Param("top")), int(s.Param("stride"))
	fits := pad >= 0 && s.Param("left") == s.Param("top") && w[at.i] == w[at.j] && (l.Kind != offload.Forward || s.Operands[0].Mode == dag.Write)
	for _, d := range []int{1, 2} {
		pixels := calls.Windows(x[d], w[at.i], pad, stride)
		if l.With.Has(calls.Pool) {
			pixels = calls.Windows(pixels, int(s.Param("size")), 0, int(s.Param("step")))
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
type shareOut func(c *calls.DeviceCall, tf32 bool) *convolutionCall

// callOf is a [shareOut].
func (l *LibraryConvolution) callOf(c *calls.DeviceCall, tf32 bool) *convolutionCall {
	to := &convolutionCall{work: c.Work, real: c.Type, part: offload.Convolution{
		Kind: l.Kind, TF32: tf32,
		Pad: c.Param(5), Stride: c.Param(4), Add: c.Args[0].Accumulates() && !l.With.Has(calls.SGD),
	}}
	x, y, w := &c.Args[l.X], &c.Args[l.Y], &c.Args[l.W]
	to.part.X, to.part.Y = l.image(to, x), l.image(to, y)
	to.part.Window = index32(w.Shape[l.window().i])
	if !l.With.Has(calls.SGD) {
		to.part.W = l.filtersOf(to, w)
	} else {
		to.part.W = l.descent(to, c)
	}
	switch l.Kind {
	case offload.Forward:
		to.part.Bias, to.part.ReLU = c.Bias(3), calls.Rectifies(c.Params)
	case offload.InputGradient:
		if len(c.Args) > 3 { // it stops where the input is not positive
			to.after = append(to.after, elements(c, "library", "library_mask", []*calls.DeviceArg{&c.Args[0], &c.Args[3]})...)
		}
	case offload.WeightGradient:
		if p, any := l.biasSums(c); any {
			to.after = append(to.after, l.Weights.launches(c.Type, mathSIMT, p, c.Work)...)
		}
	}
	to.part.Work, to.part.WorkBytes = to.work, int64(c.Work)+l.bytes(c)-int64(to.work)
	return to
}

// workBytes is the workspace of a call: copies and cuDNN's own, or the sums of the bias, which
// come later.
func (l *LibraryConvolution) workBytes(c *calls.DeviceCall) int64 {
	bytes := l.bytes(c)
	if l.Kind == offload.WeightGradient {
		if p, any := l.biasSums(c); any {
			bytes = max(bytes, l.Weights.partialBytes(c.Type, mathSIMT, &p))
		}
	}
	return bytes
}

// bytes is room for a copy of each operand, for the gradient twice where filters descend, and for
// cuDNN at least.
func (l *LibraryConvolution) bytes(c *calls.DeviceCall) int64 {
	bytes := int64(convolutionWorkBytes)
	for _, i := range []int{l.X, l.Y, l.W} {
		bytes += c.Args[i].PackedBytes()
	}
	if l.With.Has(calls.SGD) {
		bytes += c.Args[l.W].PackedBytes()
	}
	return bytes
}

// move is launches that copy the second argument of a call to the first.
type move func(c *calls.DeviceCall) []offload.Launch

// room takes room for an operand from the workspace.
func (to *convolutionCall) room(mode dag.Mode, shape []int) calls.DeviceArg {
	a := calls.BindDevice(to.work, &dag.Buffer{Type: to.real, Shape: shape}, nil, mode)
	to.work += uint64(a.PackedBytes())
	return a
}

// laidOut is an operand in the form that cuDNN takes: a copy in the workspace with the given
// extents. in fills the copy if its values are needed; out empties it if it is a result.
func (to *convolutionCall) laidOut(a *calls.DeviceArg, shape []int, in, out move) *calls.DeviceArg {
	own := to.room(a.Mode, shape)
	if a.Mode == dag.Read || a.Accumulates() {
		to.before = append(to.before, in(&calls.DeviceCall{Type: to.real, Args: []calls.DeviceArg{own, *a}})...)
	}
	if a.Mode != dag.Read {
		to.after = append(to.after, out(&calls.DeviceCall{Type: to.real, Args: []calls.DeviceArg{*a, own}})...)
	}
	return &own
}

// image is an image for cuDNN: the operand itself, or a copy.
func (l *LibraryConvolution) image(to *convolutionCall, a *calls.DeviceArg) offload.Image {
	if !a.Packed(0) {
		a = to.laidOut(a, a.Shape, CopyElements, CopyElements)
	}
	// The stride of an extent of 1 may be any number in an operand. In packed operands it follows from
	// the extents.
	strides := calls.BindDevice(0, &dag.Buffer{Shape: a.Shape}, nil, a.Mode).Stride
	image := offload.Image{Addr: a.Addr}
	for i, d := range [4]int{0, 3, 1, 2} {
		image.Extent[i], image.Stride[i] = index32(a.Shape[d]), index32(strides[d])
	}
	return image
}

// Filters k×k×c×f are turned to f×k×k×c and back, and these to f×c×k×k, as layouts are.
var (
	filtersToLibrary   = MoveOnCUDA(&calls.LayoutTiles{From: [4]int{3, 0, 1, 2}, Rows: []int{1, 2, 3}, Columns: []int{0}, Outer: -1})
	filtersFromLibrary = MoveOnCUDA(&calls.LayoutTiles{From: [4]int{1, 2, 3, 0}, Rows: []int{3}, Columns: []int{0, 1, 2}, Outer: -1})
	filtersToPyTorch   = MoveOnCUDA(&calls.LayoutTiles{From: [4]int{0, 3, 1, 2}, Rows: []int{2, 3}, Columns: []int{1}, Outer: 0})
)

// filtersOf is the address of packed filters.
func (l *LibraryConvolution) filtersOf(to *convolutionCall, w *calls.DeviceArg) uint64 {
	if l.Kind == offload.InputGradient {
		return to.laidOut(turnedBack(w), []int{w.Shape[2], w.Shape[0], w.Shape[1], w.Shape[3]}, CopyElements, nil).Addr
	}
	return to.laidOut(w, []int{w.Shape[3], w.Shape[0], w.Shape[1], w.Shape[2]}, filtersToLibrary, filtersFromLibrary).Addr
}

// descent is the address of the gradient of filters that descend on it. after is its layout.
func (l *LibraryConvolution) descent(to *convolutionCall, c *calls.DeviceCall) uint64 {
	w, hyper, momentum := &c.Args[l.W], l.X+1, len(c.Params)-len(calls.SgdParamNames)
	g := to.room(dag.Write, w.Shape)
	last := to.laidOut(&g, []int{w.Shape[0], w.Shape[2], w.Shape[3], w.Shape[1]}, nil, filtersToPyTorch)
	step := &calls.DeviceCall{Type: c.Type, Params: c.Params[momentum:], Args: []calls.DeviceArg{*w, g, c.Args[hyper]}}
	if c.Params[momentum] != 0 {
		_, vw := calls.AfterHyper(hyper, l.With)
		step.Args = append(step.Args, c.Args[vw])
	}
	to.after = append(to.after, SgdOnCUDA(step)...)
	return last.Addr
}

// turnedBack is filters wt[k-1-i,k-1-j,f,c], which the gradient of the input takes, as f×k×k×c.
// Their rows and columns run backwards.
func turnedBack(wt *calls.DeviceArg) *calls.DeviceArg {
	last := int64((wt.Shape[0]-1)*wt.Stride[0]+(wt.Shape[1]-1)*wt.Stride[1]) * wt.Type.SizeBytes()
	return &calls.DeviceArg{
		Mode: wt.Mode, Type: wt.Type, Addr: wt.Addr + uint64(last),
		Shape:  []int{wt.Shape[2], wt.Shape[0], wt.Shape[1], wt.Shape[3]},
		Stride: []int{wt.Stride[2], -wt.Stride[0], -wt.Stride[1], wt.Stride[3]},
	}
}

// CopyElements is a move between operands of equal extents.
func CopyElements(c *calls.DeviceCall) []offload.Launch {
	return elements(c, "library", "library_copy", c.All())
}

// biasSums is the gradient of the bias: the row or column of ones of the weights' product, alone.
// any is false without a bias.
func (l *LibraryConvolution) biasSums(c *calls.DeviceCall) (p productParams, any bool) {
	p = l.GradientProducts(l.With &^ calls.Pool)(c)[0]
	if p.ones == noOnes {
		return p, false
	}
	return p.onesAlone(), true
}
