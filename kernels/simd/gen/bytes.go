package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Bytes that accompany vectors of floats: masks and positions in memory have one byte where
// the vector has an element.

// bytesAt is where the bytes of a vector are, and what the rest of a row needs: the
// mask or, with AVX2, which cannot mask bytes, their number, a label and registers.
type bytesAt struct {
	at      reg.Register
	mask    reg.Register
	count   operand.Mem
	label   string
	scratch [3]reg.GPPhysical
}

const (
	otherHalf      = operand.U8(1)
	everyOtherWord = operand.U8(0x88)
)

// storeBytes stores the lowest byte of each element; both vectors are overwritten.
func (m machine) storeBytes(masked bool, from, scratch reg.Register, to bytesAt) {
	bytes, memory := from.(reg.Vec).AsX(), operand.Mem{Base: to.at}
	if m.wide {
		form(m, m.VPMOVDB, m.VPMOVQB)(from, bytes)
	} else {
		m.packBytes(bytes, from, scratch)
	}
	switch {
	case masked && m.wide:
		m.VMOVDQU8(bytes, to.mask, memory)
	case masked:
		m.storeByteByByte(bytes, to)
	case m.wide && !m.f64:
		m.VMOVDQU(bytes, memory)
	case m.wide || !m.f64:
		m.VMOVQ(bytes, memory)
	default:
		m.VMOVD(bytes, memory)
	}
}

// packBytes gathers the lowest bytes of integers below 256 (AVX2).
func (m machine) packBytes(bytes, from, scratch reg.Register) {
	high := scratch.(reg.Vec).AsX()
	m.VEXTRACTI128(otherHalf, from, high)
	if m.f64 {
		m.VSHUFPS(everyOtherWord, high, bytes, bytes)
		m.VPACKUSDW(bytes, bytes, bytes)
	} else {
		m.VPACKUSDW(high, bytes, bytes)
	}
	m.VPACKUSWB(bytes, bytes, bytes)
}

func (m machine) storeByteByByte(bytes reg.Register, to bytesAt) {
	word, left, at := to.scratch[0], to.scratch[1], to.scratch[2]
	m.VMOVQ(bytes, word)
	m.MOVQ(to.count, left)
	m.MOVQ(to.at, at)
	m.Label(to.label)
	m.MOVB(word.As8(), operand.Mem{Base: at})
	m.SHRQ(operand.U8(8), word)
	m.INCQ(at)
	m.DECQ(left)
	m.JNE(operand.LabelRef(to.label))
}

// loadBytes widens bytes to integers of the size of an element.
func (m machine) loadBytes(masked bool, from bytesAt, to reg.Register) {
	var bytes operand.Op = operand.Mem{Base: from.at}
	if masked {
		x := to.(reg.Vec).AsX()
		bytes = x
		if m.wide {
			m.VMOVDQU8_Z(operand.Mem{Base: from.at}, from.mask, x)
		} else {
			m.loadByteByByte(from, x)
		}
	}
	form(m, m.VPMOVZXBD, m.VPMOVZXBQ)(bytes, to)
}

func (m machine) loadByteByByte(from bytesAt, to reg.Register) {
	word, left, byte := from.scratch[0], from.scratch[1], from.scratch[2]
	m.XORQ(word, word)
	m.MOVQ(from.count, left)
	m.Label(from.label)
	m.SHLQ(operand.U8(8), word)
	m.MOVBQZX(operand.Mem{Base: from.at, Index: left, Scale: 1, Disp: -1}, byte)
	m.ORQ(byte, word)
	m.DECQ(left)
	m.JNE(operand.LabelRef(from.label))
	m.VMOVQ(word, to)
}
