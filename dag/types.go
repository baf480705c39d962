package dag

import (
	"fmt"
	"slices"
	"strings"

	"dahl/naming"
)

// TaskID, BufferID and AtomID are indices into the flat arrays of one Graph.
type (
	TaskID   int32
	BufferID int32
	AtomID   int32
)

// None is the BufferID that names no buffer.
const None BufferID = -1

// DType is the element type of a buffer or the arithmetic type of a task.
type DType uint8

// The element types. Masks are Uint8, labels and indices Int32. BFloat16 is the upper half of a Float32.
const (
	Uint8 DType = iota
	Int32
	Int64
	Float32
	Float64
	BFloat16
)

var dtypeNames = [...]string{"uint8", "int32", "int64", "float32", "float64", "bfloat16"}
var dtypeSizes = [...]int64{1, 4, 8, 4, 8, 2}

func (t DType) String() string { return nameOf(dtypeNames[:], int(t)) }

// SizeBytes is the size of one element.
func (t DType) SizeBytes() int64 { return dtypeSizes[t] }

// Arithmetic is the type in which numbers of a type are computed, summed and learned: Float32 for BFloat16.
func (t DType) Arithmetic() DType {
	if t == BFloat16 {
		return Float32
	}
	return t
}

// ParseDType is the inverse of String.
func ParseDType(s string) (DType, error) {
	i, err := parseName("element type", dtypeNames[:], s)
	return DType(i), err
}

// Mode says how a task uses a region.
type Mode uint8

// The access modes. A Write covers every element of its region. Reduce adds into
// the region; [Expand] rewrites it into Write and ReadWrite before planning.
const (
	Read Mode = iota
	Write
	ReadWrite
	Reduce
)

var modeNames = [...]string{"read", "write", "readwrite", "reduce"}

func (m Mode) String() string { return nameOf(modeNames[:], int(m)) }

// ParseMode is the inverse of String.
func ParseMode(s string) (Mode, error) {
	i, err := parseName("access mode", modeNames[:], s)
	return Mode(i), err
}

// Reads reports whether the mode needs the old contents of the region.
func (m Mode) Reads() bool { return m != Write }

// Writes reports whether the mode changes the region.
func (m Mode) Writes() bool { return m != Read }

// Role says what a buffer is for. Parameter and State are shared by the graphs
// of a Program and keep their contents from step to step.
type Role uint8

// The roles.
const (
	Activation Role = iota
	Input
	Parameter
	Gradient
	State
	Workspace
)

var roleNames = [...]string{"activation", "input", "parameter", "gradient", "state", "workspace"}

func (r Role) String() string { return nameOf(roleNames[:], int(r)) }

// ParseRole is the inverse of String.
func ParseRole(s string) (Role, error) {
	i, err := parseName("role", roleNames[:], s)
	return Role(i), err
}

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("invalid(%d)", i)
}

func parseName(what string, all []string, s string) (int, error) {
	if i := slices.Index(all, s); i >= 0 {
		return i, nil
	}
	return 0, naming.Unknown(what, s, all)
}

// Range is the half-open interval [Lo, Hi) of one dimension.
type Range struct{ Lo, Hi int }

// Len is the number of indices in the range.
func (r Range) Len() int { return r.Hi - r.Lo }

// Box is one range per dimension. A nil Box stands for the whole buffer.
type Box []Range

// String prints the box as in "0:4,3:7".
func (b Box) String() string {
	var s strings.Builder
	for i, r := range b {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, "%d:%d", r.Lo, r.Hi)
	}
	return s.String()
}

// Elems is the number of elements in the box.
func (b Box) Elems() int64 {
	n := int64(1)
	for _, r := range b {
		n *= int64(r.Len())
	}
	return n
}

// Buffer is a named, shaped, typed block of memory, or a view of one.
type Buffer struct {
	Name  string
	Shape []int // every extent at least 1; row-major, contiguous
	Type  DType
	Role  Role

	// Layout names the order of the dimensions where it is not the usual one: images n×c×h×w,
	// weights as PyTorch keeps them. It is for people and files; the meaning of a task follows
	// from its operation. Empty for a view.
	Layout string

	// ViewOf is the owner of this buffer's storage, and None for a buffer with its own. The element counts are equal.
	ViewOf BufferID

	// Home is the memory where the contents are before the first step. Empty means that its producer writes it. If no
	// task writes it, it is free everywhere.
	// [HostHome] is the platform's host memory, whatever it is called.
	Home string

	// Accumulators is the number of private accumulators into which Expand
	// spreads the contributors of a Reduce; 0 means 1.
	Accumulators int

	// Versions is the number of versions of the storage, which steps use in turn. Step k uses number k modulo
	// Versions, and begins to overwrite it when its users of step k − Versions have ended. So the writer may run
	// ahead of the readers. Zero means 1. Only a storage that some task writes before any reads it can have several.
	Versions int
}

// MaxVersions is the greatest number of versions of a storage.
const MaxVersions = 64

// HostHome is the home that stands for the platform's host memory.
const HostHome = "host"

// Elems is the number of elements.
func (b *Buffer) Elems() int64 {
	n := int64(1)
	for _, e := range b.Shape {
		n *= int64(e)
	}
	return n
}

// Bytes is the size of the buffer.
func (b *Buffer) Bytes() int64 { return b.Elems() * b.Type.SizeBytes() }

// Region is a box of a buffer; a nil Box is the whole buffer.
type Region struct {
	Buffer BufferID
	Box    Box
}

// Access is a region and its use by the task.
type Access struct {
	Region
	Mode Mode
}

// Param is one named number of a task, such as a stride.
type Param struct {
	Name  string
	Value float64
}

// Params are sorted by name. Tasks of one operation share them.
type Params []Param

// Get returns the value of a parameter.
func (p Params) Get(name string) (float64, bool) {
	for _, q := range p {
		if q.Name == name {
			return q.Value, true
		}
	}
	return 0, false
}

// Labels say where in the network a task comes from. Reports group by them. The orders of pipelines in package
// schedule/policy read micro-batch, stage and phase, and nothing else gives them a meaning.
type Labels struct {
	Layer      string
	Phase      string
	MicroBatch int32
	Stage      int32 // of a pipeline, from 1 on; 0 is none
}

// Cost is a duration and energy that the graph itself gives for a task.
type Cost struct {
	// Key is "device or kind[/variant][@clock]". "*" in place of the device
	// stands for every device, and gives way to a key that names one. Without a clock it holds for the first clock of
	// a device.
	Key    string
	Ns     int64
	Joules float64 // 0 means take the platform's power
}

// AnyDevice is the device of a cost that holds everywhere.
const AnyDevice = "*"

// SplitCostKey takes a cost key apart; variant and clock are empty when absent.
func SplitCostKey(key string) (device, variant, clock string) {
	key, clock, _ = strings.Cut(key, "@")
	device, variant, _ = strings.Cut(key, "/")
	return device, variant, clock
}

// OpCosts are the costs of every task of an operation that has none of its own.
type OpCosts struct {
	Op    string
	Costs []Cost
}

// Placement restricts where a task may run.
type Placement struct {
	Device   string // device, worker or kind; empty: any
	Colocate string // tasks with the same key run on the same worker; empty: free
}

// Task is one kernel call.
type Task struct {
	Name     string
	Op       string
	Shape    string // shape key: with Op and Type it names a performance model
	Type     DType
	Priority int32
	Params   Params
	Labels   Labels
	Accesses []Access

	// Flops and MovedBytes are the work: floating-point operations, and bytes
	// read plus written once each.
	Flops      float64
	MovedBytes int64

	After     []TaskID   // tasks it follows without data
	Costs     []Cost     // durations given by the graph, by key; nil means the platform's models
	Placement *Placement // nil means anywhere
}

// Instance is one execution of a task: the task and its step.
type Instance struct {
	Task TaskID
	Step int32
}
