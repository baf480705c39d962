package kernels

import (
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// Kernel defines an operation: its operands, work and variants.
type Kernel struct {
	Op  string
	Doc string // one line: the equation, in terms of the operand names

	// Base and With are the operation and the attributes of which Op is the name, see [Written]. Most operations have
	// none, and Base is Op.
	Base string
	With calls.Attributes

	Operands []Operand
	Params   []string // names of the parameters, in the order of Call.Params; see [Param]

	// Options names parameters that a call may leave out, each with its substitute: a number, as in
	// "dilation=1", or another parameter. They come before Params in Call.Params.
	Options string

	// Sizes gives loops that no operand has by itself the extent of a parameter, as in "i=size".
	Sizes string
	// Whole names loops that tiles must not cut, although the statement would allow it. "..." stands for
	// the loops of further dimensions.
	Whole string
	// Sums names loops, and indices of operands that are read. Results may be sums along them, although windows connect them with the written operand. A tile has a
	// range of each, and windows that end there.
	Sums string
	// Begins names a parameter that says where a tile's range of a loop begins, as in "first=f".
	Begins string
	// Merge is the operation for results of tiles that differ along Sums. Empty means that they are added.
	Merge string

	// Check reports further mistakes in shapes and parameters. Counts, types, modes, extents and
	// windows have been checked before. May be nil.
	Check func(s *calls.Spec) error

	// PerPoint is the floating-point operations at a point of the iteration space, and Flops further
	// ones. Nil means none. Moved is the bytes moved. Nil means each operand once.
	PerPoint float64
	Flops    func(s *calls.Spec) float64
	Moved    func(s *calls.Spec) int64

	// Variants are first those for CPUs, beginning with "ref", then those for other kinds of
	// devices. A Host operation has none.
	Variants []calls.Variant

	// Host marks an operation that the caller of execute performs through a callback: handing
	// over a batch's indices, or fetching its loss.
	Host bool

	statement statement // of a line of the table
}

// Operand describes one argument of a kernel.
type Operand struct {
	Name  string
	Kind  ElemKind
	Modes []dag.Mode // allowed modes

	// Dims has the index of each dimension, outermost first, as in "n f oh ow", see [Subscript].
	// Extents of equal index are equal in a call. A last "..." stands for any further dimensions,
	// the same for all operands that have it.
	Dims string

	// Optional operands come last; a call has them all or none.
	Optional bool

	// Input marks the input of a layer. It has both signs in training, and a kernel may branch on
	// them.
	Input bool
	// Values describe the contents in valid calls.
	Values Values
}

// Values says what an operand holds, to whoever makes contents up.
type Values struct {
	// Below bounds integers: a product of extents of loops, parameters and numbers, as in
	// "height*width". Empty means that any number of the type will do.
	Below string
	// OrNone allows 255 too, for no position in a window of poolings, or -1 for no label.
	OrNone bool
	// Real numbers lie from Least to Most. Zeros mean from -1 to 1.
	Least, Most float64
	// Often are numbers for which a kernel may do something else, such as ties of a maximum.
	Often []float64
}

// ElemKind says which element types an operand may have.
type ElemKind uint8

// Real is the task's own type: float32, float64 or bfloat16. A task in bfloat16 may have float32 there, too.
const (
	Real   ElemKind = iota
	Mask            // uint8
	Index           // int32
	Wide            // int64
	Pixel           // uint8 image data
	Stored          // of a data set: uint8, int32 or the task's own type
	Scalar          // float64 whatever the task's type: learning rate, step number
)

// Variant finds a variant of the kernel.
func (k *Kernel) Variant(name string) (*calls.Variant, bool) {
	for i := range k.Variants {
		if k.Variants[i].Name == name {
			return &k.Variants[i], true
		}
	}
	return nil, false
}

// Default returns the variant that runs on a CPU if no variant is known to be the fastest. It is the last
// one for CPUs in the table to take all calls and to run on this machine. A Host operation has none.
func (k *Kernel) Default() *calls.Variant {
	for i := len(k.Variants) - 1; i >= 0; i-- {
		if v := &k.Variants[i]; v.RunsHere() && v.TakesAll() {
			return v
		}
	}
	return nil
}

// atLevels returns the variants of a driver over package simd, one per level, widest
// last. The driver is generic in the element type and takes its level.
func atLevels(doc string, run32, run64 func(simd.Level, *calls.Call), workspace func(*calls.Spec) int64) []calls.Variant {
	var all []calls.Variant
	for _, l := range simd.Levels() {
		all = append(all, calls.Variant{
			Name: l.String(), Doc: doc, Level: l,
			Run32: func(c *calls.Call) { run32(l, c) }, Run64: func(c *calls.Call) { run64(l, c) },
			WorkspaceBytes: workspace,
		})
	}
	return all
}

// atLevelsInBlocks is atLevels for drivers whose workspace depends on the level.
func atLevelsInBlocks(doc string, run32, run64 func(simd.Level, *calls.Call), workspace func(simd.Level, *calls.Spec) int64) []calls.Variant {
	all := atLevels(doc, run32, run64, nil)
	for i := range all {
		l := all[i].Level
		all[i].WorkspaceBytes = func(s *calls.Spec) int64 { return workspace(l, s) }
	}
	return all
}

// withRef puts the reference before the variants at levels, and the variants for other kinds of
// devices after them.
func withRef(doc string, run32, run64 func(*calls.Call), others ...[]calls.Variant) []calls.Variant {
	ref := calls.Variant{Name: "ref", Doc: doc, Run32: run32, Run64: run64}
	return append([]calls.Variant{ref}, slices.Concat(others...)...)
}

// Validate checks a spec completely: known operation, operand count, element
// types, modes, parameters and shapes.
func Validate(s *calls.Spec) error { return (*Table)(nil).Validate(s) }

// Validate is [Validate] of a call of the operation.
func (k *Kernel) Validate(s *calls.Spec) error {
	_, err := k.validSpace(s)
	return err
}

// validSpace returns the iteration space of a valid call.
func (k *Kernel) validSpace(s *calls.Spec) (*Space, error) {
	if err := k.checkOperands(s); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Op, err)
	}
	p, err := k.space(s)
	if err == nil && k.Check != nil {
		err = k.Check(s)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w (%s)", s.Op, err, s.Key())
	}
	return p, nil
}

// checkOperands checks all but shapes and the values of parameters.
func (k *Kernel) checkOperands(s *calls.Spec) error {
	if s.Type.Arithmetic() != dag.Float32 && s.Type != dag.Float64 {
		return fmt.Errorf("type %v; float32, float64 and bfloat16 are supported", s.Type)
	}
	if n := len(s.Operands); n != len(k.Operands) && n != k.required() {
		return fmt.Errorf("%d operands, want %s", n, k.signature())
	}
	for i, o := range s.Operands {
		want := k.Operands[i]
		t, numbers := want.Kind.DType(s.Type), s.Type.Arithmetic() // which a call in bfloat16 may have among its operands
		if o.Type != t && !(want.Kind == Real && o.Type == numbers) && !(want.Kind == Stored && (o.Type == dag.Int32 || o.Type == numbers)) {
			return fmt.Errorf("operand %s is %v, want %v", want.Name, o.Type, t)
		}
		if !want.allows(o.Mode) {
			return fmt.Errorf("operand %s has mode %v, want one of %v", want.Name, o.Mode, want.Modes)
		}
	}
	for _, name := range k.Params {
		if _, ok := s.Params.Get(name); !ok {
			return fmt.Errorf("parameter %s is missing", name)
		}
	}
	return nil
}

func (o *Operand) allows(m dag.Mode) bool {
	// Reduce becomes Write or ReadWrite when the graph is expanded.
	return slices.Contains(o.Modes, m) || m == dag.Reduce && slices.Contains(o.Modes, dag.ReadWrite)
}

// DType is the element type of the kind in a task of type real.
func (k ElemKind) DType(real dag.DType) dag.DType {
	switch k {
	case Mask, Pixel, Stored:
		return dag.Uint8
	case Index:
		return dag.Int32
	case Wide:
		return dag.Int64
	case Scalar:
		return dag.Float64
	}
	return real
}

// Parameters names the parameters of a call, in the order of Call.Params.
func (k *Kernel) Parameters() []string {
	var all []string
	for _, o := range k.statement.Options {
		all = append(all, o.Name)
	}
	return append(all, k.Params...)
}

// Values are the parameters of a valid call, in the order of Call.Params.
func (k *Kernel) Values(s *calls.Spec) []float64 {
	var all []float64
	for _, o := range k.statement.Options {
		all = append(all, k.statement.Value(s, o.Name))
	}
	for _, name := range k.Params {
		all = append(all, s.Param(name))
	}
	return all
}

func (k *Kernel) required() int {
	if n := slices.IndexFunc(k.Operands, func(o Operand) bool { return o.Optional }); n >= 0 {
		return n
	}
	return len(k.Operands)
}

// signature prints the operands as in "y, x, w, [b]".
func (k *Kernel) signature() string {
	names := make([]string, len(k.Operands))
	for i, o := range k.Operands {
		names[i] = o.Name
		if o.Optional {
			names[i] = "[" + o.Name + "]"
		}
	}
	return strings.Join(names, ", ")
}

// Work returns floating-point operations and bytes moved of a valid call.
func (k *Kernel) Work(s *calls.Spec) (flops float64, bytes int64) {
	p, err := k.space(s)
	if err != nil {
		panic("kernels: work of an invalid call: " + err.Error())
	}
	return p.work()
}

func (p *Space) work() (flops float64, bytes int64) {
	k, s := p.kernel, p.spec
	bytes = s.Bytes()
	if k.Moved != nil {
		bytes = k.Moved(s)
	}
	if k.Flops != nil {
		flops = k.Flops(s)
	}
	return flops + float64(k.PerPoint*p.Points()), bytes
}

// Add validates a task, fills in its shape key and work, and appends it to a builder. The caller
// sets all other fields.
func Add(b *dag.Builder, t dag.Task) dag.TaskID { return (*Table)(nil).Add(b, t) }
