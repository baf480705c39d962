package kernels

import (
	"slices"
	"strings"

	"dahl/kernels/calls"
)

// attributeWords are the words of attributes in names, in the order of the constants. From ReLU on they stand behind ".dx" and
// ".dw", the others before.
var attributeWords = [...]string{"nhwc", "norm", "pool", "relu", "moments", "sgd", "nobias", "function", "kept", "sum"}

// Written is the name of an operation with attributes: "conv2d.nhwc.norm.dw.sgd" is conv2d.nhwc.dw with Norm and SGD.
// [Kernel.Base] and [Kernel.With] of the kernel of that name are the operation and its attributes again.
func Written(op string, with calls.Attributes) string {
	var before, after strings.Builder
	for i, word := range attributeWords {
		switch a := calls.Attributes(1) << i; {
		case !with.Has(a):
		case a < calls.ReLU:
			before.WriteString("." + word)
		default:
			after.WriteString("." + word)
		}
	}
	for _, direction := range []string{".dx", ".dw"} {
		if stem, ok := strings.CutSuffix(op, direction); ok {
			return stem + before.String() + direction + after.String()
		}
	}
	return op + before.String() + after.String()
}

// composition is an operation that is composed of its sums and of attributes.
type composition struct {
	op      string
	may     calls.Attributes                 // which it may have
	offers  func(with calls.Attributes) bool // whether it has a combination of these; nil means that it has each
	compose func(k Kernel) Kernel            // completes a kernel that has its names and attributes
}

// compositions are all operations with attributes.
func compositions() []composition {
	return []composition{
		{op: "conv2d.nhwc", may: calls.Norm | calls.Pool | calls.Moments, offers: func(with calls.Attributes) bool { return with == calls.Pool || !with.Has(calls.Pool) }, compose: convolutionWith},
		{op: "conv2d.nhwc.dx", compose: convolutionDxWith},
		{op: "conv2d.nhwc.dw", may: calls.Norm | calls.Pool | calls.SGD | calls.NoBias, offers: func(with calls.Attributes) bool {
			return !with.Has(calls.Norm|calls.Pool) && (with.Has(calls.SGD) || !with.Has(calls.NoBias))
		}, compose: convolutionDwWith},
		{op: "dense", may: calls.ReLU | calls.Function | calls.Kept, offers: func(with calls.Attributes) bool {
			return with.Has(calls.Function) && !with.Has(calls.ReLU) || !with.Has(calls.Function) && !with.Has(calls.Kept)
		}, compose: denseWith},
		{op: "dense.dx", may: calls.ReLU | calls.Function, offers: func(with calls.Attributes) bool { return !with.Has(calls.ReLU | calls.Function) }, compose: denseDxWith},
		{op: "dense.dw", may: calls.Mapped | calls.SGD | calls.NoBias, offers: func(with calls.Attributes) bool { return with.Has(calls.SGD) || with == 0 }, compose: denseDwWith},
		{op: "layernorm", may: calls.Sum, compose: layerNormWith},
		{op: "layernorm.dx", may: calls.Sum, compose: layerNormDxWith},
	}
}

// kernels are the kernels of all combinations of attributes that an operation has, fewer of them first.
func (c *composition) kernels() (all []Kernel) {
	for with := range c.may + 1 {
		if with&^c.may != 0 || c.offers != nil && !c.offers(with) {
			continue
		}
		all = append(all, c.compose(Kernel{Op: Written(c.op, with), Base: c.op, With: with}))
	}
	return all
}

// insertion is operands that an attribute inserts among the operands of a kernel.
type insertion struct {
	at    int
	added []Operand
}

// into returns the kernel with the inserted operands, without variants. Checks and work stay, and flops are added.
func (b insertion) into(plain Kernel, flops func(*calls.Spec) float64) Kernel {
	k := plain
	k.Operands = slices.Insert(slices.Clone(plain.Operands), b.at, b.added...)
	k.Variants = nil
	if plain.Check != nil {
		k.Check = func(s *calls.Spec) error { return plain.Check(b.without(s)) }
	}
	k.Flops = func(s *calls.Spec) float64 {
		if plain.Flops == nil {
			return flops(s)
		}
		return flops(s) + plain.Flops(b.without(s))
	}
	return k
}

// variant returns a variant of the kernel that does not yet run the longer calls. all gives the workspace bytes of a call; own are the
// bytes that the variant itself needs.
func (b insertion) variant(v calls.Variant, doc string, all func(s *calls.Spec, own int64) int64) calls.Variant {
	takes, workspace := v.Takes, v.WorkspaceBytes
	v.Doc += doc
	if takes != nil {
		v.Takes = func(s *calls.Spec) error { return takes(b.without(s)) }
	}
	v.WorkspaceBytes = func(s *calls.Spec) int64 {
		var own int64
		if workspace != nil {
			own = workspace(b.without(s))
		}
		return all(s, own)
	}
	return v
}

// without is the call of the kernel itself.
func (b insertion) without(s *calls.Spec) *calls.Spec {
	c := *s
	c.Operands = slices.Delete(slices.Clone(s.Operands), b.at, b.at+len(b.added))
	return &c
}

func (b insertion) withoutOn(call *calls.DeviceCall) *calls.DeviceCall {
	c := *call
	c.Args = slices.Delete(slices.Clone(call.Args), b.at, b.at+len(b.added))
	return &c
}
