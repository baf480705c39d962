package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// machine writes instructions for vectors of one width and element type.
type machine struct {
	*build.Context
	wide bool // 64-byte registers and opmasks (AVX-512), else 32-byte ones (AVX2)
	f64  bool
}

// form picks the instruction for the elements' type.
func form[F any](m machine, f32, f64 F) F {
	if m.f64 {
		return f64
	}
	return f32
}

// width picks what a level has, of AVX2 and AVX-512.
func width[T any](m machine, avx2, avx512 T) T {
	if m.wide {
		return avx512
	}
	return avx2
}

// name is the suffix of functions: AVX512F32 and so on.
func (m machine) name() string { return width(m, "AVX2", "AVX512") + form(m, "F32", "F64") }

// bytes is the size of a vector register, and element the size of one element.
func (m machine) bytes() int   { return width(m, 32, 64) }
func (m machine) element() int { return form(m, 4, 8) }

var zmm = [32]reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7,
	reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23,
	reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}

// v is vector register i.
func (m machine) v(i int) reg.Register { return width[reg.Register](m, zmm[i].AsY(), zmm[i]) }

func (m machine) zero(v reg.Register) {
	if m.wide {
		m.VPXORD(v, v, v)
	} else {
		m.VXORPS(v, v, v)
	}
}

// move loads or stores a whole vector, or copies one.
func (m machine) move(from, to operand.Op) { form(m, m.VMOVUPS, m.VMOVUPD)(from, to) }

// load reads the elements of a vector that a mask selects and sets the others to zero.
func (m machine) load(from operand.Mem, mask reg.Register, to reg.Register) {
	if m.wide {
		form(m, m.VMOVUPS_Z, m.VMOVUPD_Z)(from, mask, to)
	} else {
		form(m, m.VMASKMOVPS, m.VMASKMOVPD)(from, mask, to)
	}
}

// store writes the elements of a vector that a mask selects.
func (m machine) store(from reg.Register, mask reg.Register, to operand.Mem) {
	if m.wide {
		form(m, m.VMOVUPS, m.VMOVUPD)(from, mask, to)
	} else {
		form(m, m.VMASKMOVPS, m.VMASKMOVPD)(from, mask, to)
	}
}

func (m machine) broadcast(from operand.Mem, to reg.Register) {
	form(m, m.VBROADCASTSS, m.VBROADCASTSD)(from, to)
}

// fma adds a·b to sum.
func (m machine) fma(a operand.Op, b, sum reg.Register) {
	form(m, m.VFMADD231PS, m.VFMADD231PD)(a, b, sum)
}

// fmaScalar adds a·b to sum for a scalar a in memory; AVX-512 only.
func (m machine) fmaScalar(a operand.Mem, b, sum reg.Register) {
	form(m, m.VFMADD231PS_BCST, m.VFMADD231PD_BCST)(a, b, sum)
}

// notBelow sets v to the larger of v and floor; a NaN in v stays.
func (m machine) notBelow(floor, v reg.Register) { form(m, m.VMAXPS, m.VMAXPD)(v, floor, v) }

// keep sets v to zero where gate is not greater than zero, which is a register of
// zeros; gate and opmask 2 are overwritten.
func (m machine) keep(zero, gate, v reg.Register) {
	if m.wide {
		form(m, m.VCMPPS, m.VCMPPD)(lessThan, gate, zero, reg.K2)
		form(m, m.VMOVUPS_Z, m.VMOVUPD_Z)(v, reg.K2, v)
	} else {
		form(m, m.VCMPPS, m.VCMPPD)(lessThan, gate, zero, gate)
		form(m, m.VANDPS, m.VANDPD)(gate, v, v)
	}
}
