package main

import (
	"fmt"
	"go/token"
	"go/types"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// loop is a function of assembly whose argument is a pointer to a struct of package simd.
type loop struct {
	machine
	names []string // of the 8-byte fields of the struct, in their order
	parts int      // labels of bodies so far
}

// args is the register with the pointer.
var args = reg.RDI

// begin begins func name(args *structName), not to be preempted and without a frame.
func (m machine) begin(name, structName, doc string, fields ...string) loop {
	m.Function(name)
	m.Doc(name + " " + doc)
	m.Attributes(attr.NOSPLIT)
	named := types.NewNamed(types.NewTypeName(token.NoPos, nil, structName, nil), types.NewStruct(nil, nil), nil)
	param := types.NewParam(token.NoPos, nil, "args", types.NewPointer(named))
	m.Signature(gotypes.NewSignature(nil, types.NewSignatureType(nil, nil, nil, types.NewTuple(param), nil, false)))
	m.Load(m.Param("args"), args)
	m.list(name, structName)
	return loop{machine: m, names: fields}
}

// end ends the function.
func (l *loop) end() {
	l.VZEROUPPER()
	l.RET()
}

// field is the position of a field of the struct.
func (l *loop) field(name string) operand.Mem {
	for i, n := range l.names {
		if n == name {
			return operand.Mem{Base: args, Disp: 8 * i}
		}
	}
	panic("gen: no field " + name)
}

// pointer loads the sum of two fields: where an operand begins, and how far the loops are in it.
func (l *loop) pointer(base, at string, to reg.Register) {
	l.MOVQ(l.field(base), to)
	l.ADDQ(l.field(at), to)
}

// advance adds a field to another one, by way of a register.
func (l *loop) advance(at, by string, scratch reg.Register) {
	l.MOVQ(l.field(by), scratch)
	l.ADDQ(scratch, l.field(at))
}

// again counts down and jumps to a label until the count is 0.
func (l *loop) again(count operand.Op, label string) {
	l.DECQ(count)
	l.JNE(operand.LabelRef(label))
}

// ifZero jumps to a label if a field is 0.
func (l *loop) ifZero(field, label string) {
	l.CMPQ(l.field(field), operand.Imm(0))
	l.JE(operand.LabelRef(label))
}

// mask is the register with the mask of the rest of a row.
func (l *loop) mask() reg.Register { return width[reg.Register](l.machine, l.v(15), reg.K1) }

// setMask makes the mask of a field with what Level.mask gives: bits, or the address of a vector.
func (l *loop) setMask(field string, scratch reg.GPPhysical) {
	l.MOVQ(l.field(field), scratch)
	l.loadMask(scratch, l.mask())
}

// vectors writes a loop over whole vectors, and the same body under the mask for a rest.
func (l *loop) vectors(left reg.Register, done string, body func(masked bool), advance func()) {
	l.count("vectors", left, "rest", func() {
		l.Label("vector")
		body(false)
		advance()
		l.again(left, "vector")
	})
	l.ifZero("tail", done)
	body(true)
	l.Label(done)
}

// count loads a field, and skips what counts it down where it is 0.
func (l *loop) count(field string, to reg.Register, skip string, down func()) {
	l.MOVQ(l.field(field), to)
	l.TESTQ(to, to)
	l.JE(operand.LabelRef(skip))
	down()
	l.Label(skip)
}

// unique is a label of the body that is being written.
func (l *loop) unique(name string) string {
	l.parts++
	return name + string(rune('A'+l.parts))
}

// when runs the body only if a bit of the flags is set. All elements take the same way, so the branch costs nothing.
func (l *loop) when(bit int, flags operand.Op, body func()) {
	skip := l.unique("skip")
	l.TESTQ(operand.U32(1<<bit), flags)
	l.JE(operand.LabelRef(skip))
	body()
	l.Label(skip)
}

// numbered is a name with a digit.
func numbered(name string, digit int) string { return fmt.Sprintf("%s%d", name, digit) }

// plural is a number and what it counts.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
