package main

import (
	"fmt"
	"go/token"
	"go/types"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// machine writes instructions for vectors of one width and element type.
type machine struct {
	*build.Context
	wide bool // 64-byte registers and opmasks (AVX-512), else 32-byte ones (AVX2)
	f64  bool
}

// machines are the four that every family of loops is written for.
func machines(c *build.Context, wide bool) []machine {
	return []machine{{c, wide, false}, {c, wide, true}}
}

// name is the suffix of functions: AVX512F32 and so on.
func (m machine) name() string {
	level, float := "AVX2", "F32"
	if m.wide {
		level = "AVX512"
	}
	if m.f64 {
		float = "F64"
	}
	return level + float
}

// registers is the number of vector registers, bytes the size of one, element that
// of one element.
func (m machine) registers() int {
	if m.wide {
		return 32
	}
	return 16
}

func (m machine) bytes() int {
	if m.wide {
		return 64
	}
	return 32
}

func (m machine) element() int {
	if m.f64 {
		return 8
	}
	return 4
}

var zmm = [32]reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
	reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
	reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}

// v is vector register i.
func (m machine) v(i int) reg.Register {
	if m.wide {
		return zmm[i]
	}
	return zmm[i].AsY()
}

// count is a number and what it counts.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// function begins func name(args *structName), not to be preempted and without a
// frame, and loads the pointer into a register.
func (m machine) function(name, structName, doc string, args reg.Register) {
	m.Function(name)
	m.Doc(name + " " + doc)
	m.Attributes(attr.NOSPLIT)
	named := types.NewNamed(types.NewTypeName(token.NoPos, nil, structName, nil), types.NewStruct(nil, nil), nil)
	param := types.NewParam(token.NoPos, nil, "args", types.NewPointer(named))
	m.Signature(gotypes.NewSignature(nil, types.NewSignatureType(nil, nil, nil, types.NewTuple(param), nil, false)))
	m.Load(m.Param("args"), args)
}

// fields gives the position of each 8-byte field of a struct of arguments.
func fields(base reg.Register, names ...string) func(name string) operand.Mem {
	return func(name string) operand.Mem {
		for i, n := range names {
			if n == name {
				return operand.Mem{Base: base, Disp: 8 * i}
			}
		}
		panic("gen: no field " + name)
	}
}

func (m machine) zero(v reg.Register) {
	if m.wide {
		m.VPXORD(v, v, v)
	} else {
		m.VXORPS(v, v, v)
	}
}

// move loads or stores a whole vector, or copies one.
func (m machine) move(from, to operand.Op) {
	if m.f64 {
		m.VMOVUPD(from, to)
	} else {
		m.VMOVUPS(from, to)
	}
}

// load reads the elements of a vector that a mask selects and sets the others to zero.
func (m machine) load(from operand.Mem, mask reg.Register, to reg.Register) {
	switch {
	case m.wide && m.f64:
		m.VMOVUPD_Z(from, mask, to)
	case m.wide:
		m.VMOVUPS_Z(from, mask, to)
	case m.f64:
		m.VMASKMOVPD(from, mask, to)
	default:
		m.VMASKMOVPS(from, mask, to)
	}
}

// store writes the elements of a vector that a mask selects.
func (m machine) store(from reg.Register, mask reg.Register, to operand.Mem) {
	switch {
	case m.wide && m.f64:
		m.VMOVUPD(from, mask, to)
	case m.wide:
		m.VMOVUPS(from, mask, to)
	case m.f64:
		m.VMASKMOVPD(from, mask, to)
	default:
		m.VMASKMOVPS(from, mask, to)
	}
}

func (m machine) broadcast(from operand.Mem, to reg.Register) {
	if m.f64 {
		m.VBROADCASTSD(from, to)
	} else {
		m.VBROADCASTSS(from, to)
	}
}

// fma adds a·b to sum.
func (m machine) fma(a operand.Op, b, sum reg.Register) {
	if m.f64 {
		m.VFMADD231PD(a, b, sum)
	} else {
		m.VFMADD231PS(a, b, sum)
	}
}

// fmaScalar adds a·b to sum for a scalar a in memory; AVX-512 only.
func (m machine) fmaScalar(a operand.Mem, b, sum reg.Register) {
	if m.f64 {
		m.VFMADD231PD_BCST(a, b, sum)
	} else {
		m.VFMADD231PS_BCST(a, b, sum)
	}
}

// notBelow sets v to the larger of v and floor; a NaN in v stays.
func (m machine) notBelow(floor, v reg.Register) {
	if m.f64 {
		m.VMAXPD(v, floor, v)
	} else {
		m.VMAXPS(v, floor, v)
	}
}

// keep sets v to zero where gate is not greater than zero, which is a register of
// zeros; gate and opmask 2 are overwritten.
func (m machine) keep(zero, gate, v reg.Register) {
	switch {
	case m.wide && m.f64:
		m.VCMPPD(lessThan, gate, zero, reg.K2)
		m.VMOVUPD_Z(v, reg.K2, v)
	case m.wide:
		m.VCMPPS(lessThan, gate, zero, reg.K2)
		m.VMOVUPS_Z(v, reg.K2, v)
	case m.f64:
		m.VCMPPD(lessThan, gate, zero, gate)
		m.VANDPD(gate, v, v)
	default:
		m.VCMPPS(lessThan, gate, zero, gate)
		m.VANDPS(gate, v, v)
	}
}
