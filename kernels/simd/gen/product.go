package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The loops of simd.Product keep m rows of C, each of nv vectors, in registers. For
// every step of the sum they load nv vectors of a row of B and multiply them with m
// scalars of A. Rows of A are addressed from two pointers, the second nine rows
// below the first, by multiples of the row distance. Where m·nv is small, steps are
// added in turn to two or four sets of such sums, see productLoop.sets.

// productRows is the largest m for each nv, bounded by the registers.
func productRows(wide bool) map[int]int {
	if wide {
		return map[int]int{1: 14, 2: 14, 3: 9, 4: 6}
	}
	return map[int]int{1: 12, 2: 6}
}

func product(m machine) {
	rows := productRows(m.wide)
	for nv := 1; nv <= len(rows); nv++ {
		p := productLoop{nv: nv}
		p.function(m, rows[nv])
	}
	if !m.wide {
		panel(m)
		pack(m)
	}
}

// productFields are the fields of simd.productArgs.
var productFields = []string{
	"a", "b", "c", "start", "where", "aAt", "bAt", "cAt", "startAt", "whereAt", "k", "batch", "blocks", "groups", "left", "panels", "panelsLeft", "rows",
	"aRow", "aStep", "aBatch", "aOuter", "aBlock", "aGroup", "bRow", "bBatch", "bOuter", "outer",
	"cRow", "cBlock", "cGroup", "startRow", "startBlock", "startGroup",
	"whereRow", "whereBlock", "whereGroup", "panel", "relu", "mask", "last", "packed", "batchLeft", "outerLeft", "aheadAt", "aheadStep", "aheadPanel", "aheadBlock", "aheadGroup",
}

// Registers of the loops; the others are named where they are used.
var (
	a0, a9            = reg.RSI, reg.R8
	row, row3         = reg.R9, reg.R10
	row5, row7        = reg.R11, reg.R12
	aStep, bRow       = reg.R13, reg.RCX
	b, depth          = reg.RBX, reg.RDX
	batch, ahead      = reg.RAX, reg.RAX // ahead in the loops: what to fetch next
	aOfBatch, bOfThis = reg.R14, reg.R15
)

type productLoop struct {
	loop
	nv, m  int
	masked bool // the last vector is read under the mask
	label  func(string) string
}

func (p *productLoop) function(m machine, maxRows int) {
	p.loop = m.begin(fmt.Sprintf("product%sx%d", m.name(), p.nv), "productArgs",
		fmt.Sprintf("computes blocks of 1 to %d rows of %s.", maxRows, plural(p.nv, "vector")), productFields...)
	p.MOVQ(p.field("aRow"), row)
	p.LEAQ(operand.Mem{Base: row, Index: row, Scale: 2}, row3)
	p.LEAQ(operand.Mem{Base: row, Index: row, Scale: 4}, row5)
	p.LEAQ(operand.Mem{Base: row, Index: row3, Scale: 2}, row7)
	p.MOVQ(p.field("aStep"), aStep)
	p.MOVQ(p.field("bRow"), bRow)
	p.setMask("mask", batch)
	p.MOVQ(p.field("rows"), batch)
	choose(p.machine, 1, maxRows)
	for p.m = 1; p.m <= maxRows; p.m++ {
		p.rows()
	}
}

// choose jumps to the block of as many rows as batch holds, low to high.
func choose(m machine, low, high int) {
	if low == high {
		m.JMP(operand.LabelRef(fmt.Sprintf("rows%d", low)))
		return
	}
	middle := (low + high + 1) / 2
	above := fmt.Sprintf("from%d", middle)
	m.CMPQ(batch, operand.Imm(uint64(middle)))
	m.JAE(operand.LabelRef(above))
	choose(m, low, middle-1)
	m.Label(above)
	choose(m, middle, high)
}

// rows computes all blocks of m rows, of all groups, each across all panels.
func (p *productLoop) rows() {
	m := p.m
	p.label = func(name string) string { return fmt.Sprintf("%s%d", name, m) }
	p.Label(p.label("rows"))
	p.pointer("a", "aAt", aOfBatch)
	p.pointer("b", "bAt", bOfThis)
	p.start()
	p.zeroSets()
	p.MOVQ(p.field("batch"), batch)
	if p.prefetches() {
		p.MOVQ(batch, p.field("batchLeft"))
		p.MOVQ(aOfBatch, ahead)
		p.ADDQ(p.field("aheadAt"), ahead)
	}
	p.Label(p.label("batch"))
	p.MOVQ(aOfBatch, a0)
	if m > 9 {
		p.LEAQ(operand.Mem{Base: a0, Index: row, Scale: 8}, a9)
		p.ADDQ(row, a9)
	}
	p.MOVQ(bOfThis, b)
	p.MOVQ(p.field("k"), depth)
	p.eitherEnd("k", p.steps)
	p.ADDQ(p.field("aBatch"), aOfBatch)
	p.ADDQ(p.field("bBatch"), bOfThis)
	if p.prefetches() {
		p.DECQ(p.field("batchLeft"))
	} else {
		p.DECQ(batch)
	}
	p.JNE(operand.LabelRef(p.label("batch")))
	p.CMPQ(p.field("outer"), operand.Imm(1)) // mostly
	p.JNE(operand.LabelRef(p.label("outer")))
	p.Label(p.label("summed"))
	p.addSets()
	p.finish()
	p.DECQ(p.field("panelsLeft"))
	p.JE(operand.LabelRef(p.label("across")))
	p.MOVQ(p.field("panel"), batch)
	for _, name := range []string{"b", "c", "start", "where"} {
		p.ADDQ(batch, p.field(name+"At"))
	}
	p.fetchOn("Panel")
	p.JMP(operand.LabelRef(p.label("rows")))
	p.Label(p.label("across"))
	p.MOVQ(p.field("panels"), batch)
	p.MOVQ(batch, p.field("panelsLeft"))
	p.MOVQ(operand.I32(0), p.field("bAt"))
	p.advanceAll("Block")
	p.fetchOn("Block")
	p.again(p.field("left"), p.label("rows"))
	p.DECQ(p.field("groups"))
	p.JE(operand.LabelRef(p.label("done")))
	p.advanceAll("Group")
	p.fetchOn("Group")
	p.MOVQ(p.field("blocks"), batch)
	p.MOVQ(batch, p.field("left"))
	p.JMP(operand.LabelRef(p.label("rows")))
	p.Label(p.label("done"))
	p.end()
	p.nextOuter()
}

// nextOuter goes on with the next sum of batches, or begins anew after the last one.
func (p *productLoop) nextOuter() {
	p.Label(p.label("outer"))
	p.DECQ(p.field("outerLeft"))
	p.JE(operand.LabelRef(p.label("last")))
	p.ADDQ(p.field("aOuter"), aOfBatch)
	p.ADDQ(p.field("bOuter"), bOfThis)
	if p.prefetches() {
		p.MOVQ(p.field("batch"), depth)
		p.MOVQ(depth, p.field("batchLeft"))
	} else {
		p.MOVQ(p.field("batch"), batch)
	}
	p.JMP(operand.LabelRef(p.label("batch")))
	p.Label(p.label("last"))
	p.MOVQ(p.field("outer"), depth)
	p.MOVQ(depth, p.field("outerLeft"))
	p.JMP(operand.LabelRef(p.label("summed")))
}

// fetchOn goes on with the operands of the next product, if they are fetched.
func (p *productLoop) fetchOn(by string) {
	if !p.prefetches() {
		return
	}
	fetched := p.label("fetched" + by)
	p.ifZero("aheadPanel", fetched)
	p.advance("aheadAt", "ahead"+by, batch)
	p.Label(fetched)
}

// advanceAll moves the operands to the next block of rows or group of rows.
func (p *productLoop) advanceAll(by string) {
	for _, name := range []string{"a", "c", "start", "where"} {
		p.advance(name+"At", name+by, batch)
	}
}

// eitherEnd writes a piece of code for rows of B and C that end with a part of a vector, and once more for whole vectors: with AVX2 a load
// under a mask takes as long as ten plain ones on some processors.
func (p *productLoop) eitherEnd(name string, piece func()) {
	p.masked = true
	if p.wide {
		piece()
		return
	}
	label, whole, after := p.label, p.label(name+"Whole"), p.label(name+"Ended")
	p.ifZero("last", whole)
	piece()
	p.JMP(operand.LabelRef(after))
	p.Label(whole)
	p.masked, p.label = false, func(name string) string { return label(name + "Whole") }
	piece()
	p.label = label
	p.Label(after)
}

// sum is the register of vector j of row i.
func (p *productLoop) sum(i, j int) reg.Register { return p.v(i*p.nv + j) }

// start loads what the sums start from, if anything.
func (p *productLoop) start() {
	p.MOVQ(p.field("start"), a0)
	p.TESTQ(a0, a0)
	p.JNE(operand.LabelRef(p.label("load")))
	for i := range p.m {
		for j := range p.nv {
			p.zero(p.sum(i, j))
		}
	}
	p.JMP(operand.LabelRef(p.label("loaded")))
	p.Label(p.label("load"))
	p.ADDQ(p.field("startAt"), a0)
	p.eitherEnd("start", func() {
		for i := range p.m {
			p.loadRow(a0, func(j int) reg.Register { return p.sum(i, j) })
			if i < p.m-1 {
				p.ADDQ(p.field("startRow"), a0)
			}
		}
	})
	p.Label(p.label("loaded"))
}

// loadRow loads nv vectors.
func (p *productLoop) loadRow(from reg.Register, to func(j int) reg.Register) {
	for j := range p.nv {
		p.read(p.masked && j == p.nv-1, p.mask(), operand.Mem{Base: from, Disp: j * p.bytes()}, to(j))
	}
}

// sets is how many sums each element has. A multiplication with addition takes four
// cycles and two start per cycle, so that at least eight vectors should be summed.
func (p *productLoop) sets() int {
	switch n := p.m * p.nv; {
	case n <= 2:
		return 4
	case n <= 6:
		return 2
	}
	return 1
}

// setSum is the register of vector j of row i of a set of sums.
func (p *productLoop) setSum(set, i, j int) reg.Register {
	return p.v(set*p.m*p.nv + i*p.nv + j)
}

// zeroSets clears the sums after the first.
func (p *productLoop) zeroSets() {
	for n := p.m * p.nv; n < p.sets()*p.m*p.nv; n++ {
		p.zero(p.v(n))
	}
}

// addSets adds the other sums to the first, in pairs.
func (p *productLoop) addSets() {
	for apart := 1; apart < p.sets(); apart *= 2 {
		for set := 0; set < p.sets(); set += 2 * apart {
			for i := range p.m {
				for j := range p.nv {
					p.plus(p.setSum(set+apart, i, j), p.setSum(set, i, j), p.setSum(set, i, j))
				}
			}
		}
	}
}

// steps adds the products of depth rows of B, in turn to each set of sums, what is left
// to the first.
func (p *productLoop) steps() {
	if p.prefetches() {
		p.ifZero("aheadStep", p.label("plain"))
		p.Label(p.label("fetching"))
		p.step(0)
		p.PREFETCHT0(operand.Mem{Base: ahead})
		p.ADDQ(p.field("aheadStep"), ahead)
		p.again(depth, p.label("fetching"))
		p.JMP(operand.LabelRef(p.label("stepped")))
		p.Label(p.label("plain"))
	}
	sets := p.sets()
	if sets > 1 {
		p.SUBQ(operand.Imm(uint64(sets)), depth)
		p.JL(operand.LabelRef(p.label("few")))
		p.Label(p.label("turn"))
		for set := range sets {
			p.step(set)
		}
		p.SUBQ(operand.Imm(uint64(sets)), depth)
		p.JGE(operand.LabelRef(p.label("turn")))
		p.Label(p.label("few"))
		p.ADDQ(operand.Imm(uint64(sets)), depth)
		p.JE(operand.LabelRef(p.label("stepped")))
	}
	p.Label(p.label("step"))
	p.step(0)
	p.again(depth, p.label("step"))
	p.Label(p.label("stepped"))
}

// step adds the products of one row of B to a set of sums.
func (p *productLoop) step(set int) {
	first := p.sets() * p.m * p.nv
	vector := func(j int) reg.Register { return p.v(first + j) }
	p.loadRow(b, vector)
	scalar := p.v(first + p.nv)
	for i := range p.m {
		if p.wide && p.nv == 1 {
			p.fmaScalar(rowOf(i), vector(0), p.setSum(set, i, 0))
			continue
		}
		p.broadcast(rowOf(i), scalar)
		for j := range p.nv {
			p.fma(vector(j), scalar, p.setSum(set, i, j))
		}
	}
	p.ADDQ(aStep, a0)
	if p.m > 9 {
		p.ADDQ(aStep, a9)
	}
	p.ADDQ(bRow, b)
}

// prefetches reports whether a step is long enough to fetch a line during it, if asked to: of A
// for the next block, or of the operands of the next product. The processor does not foresee reads of
// rows of A, in many places at once. Such blocks have one set of sums.
func (p *productLoop) prefetches() bool {
	if p.wide {
		return p.m*p.nv >= 16
	}
	return p.m*p.nv >= 8
}

// rowOf is the address of the present element of row i of A.
func rowOf(i int) operand.Mem {
	base := a0
	if i >= 9 {
		base, i = a9, i-9
	}
	switch i {
	case 0:
		return operand.Mem{Base: base}
	case 3, 6:
		return operand.Mem{Base: base, Index: row3, Scale: uint8(i / 3)}
	case 5:
		return operand.Mem{Base: base, Index: row5, Scale: 1}
	case 7:
		return operand.Mem{Base: base, Index: row7, Scale: 1}
	}
	return operand.Mem{Base: base, Index: row, Scale: uint8(i)}
}

// finish replaces sums by zero as asked, and stores them.
func (p *productLoop) finish() {
	floor := p.v(p.m * p.nv)
	p.count("relu", batch, p.label("signed"), func() {
		p.zero(floor)
		for i := range p.m {
			for j := range p.nv {
				p.notBelow(floor, p.sum(i, j))
			}
		}
	})
	p.where()
	p.pointer("c", "cAt", a0)
	p.MOVQ(p.field("cRow"), b)
	if p.wide {
		p.storeRows(p.m)
		return
	}
	// A masked store costs many times a plain one on AVX2.
	p.MOVQ(p.field("last"), batch)
	p.TESTQ(batch, batch)
	p.JNE(operand.LabelRef(p.label("part")))
	p.storeRows(0)
	p.JMP(operand.LabelRef(p.label("stored")))
	p.Label(p.label("part"))
	if p.m > 1 { // of rows without gaps the next one overwrites what a whole vector writes too much
		p.ifZero("packed", p.label("apart"))
		p.storeRows(1)
		p.JMP(operand.LabelRef(p.label("stored")))
		p.Label(p.label("apart"))
	}
	p.storeRows(p.m)
	p.Label(p.label("stored"))
}

// where replaces sums by zero where another matrix, if there is one, is not positive.
func (p *productLoop) where() {
	p.MOVQ(p.field("where"), a0)
	p.TESTQ(a0, a0)
	p.JE(operand.LabelRef(p.label("kept")))
	p.ADDQ(p.field("whereAt"), a0)
	zero, gate := p.v(p.m*p.nv), p.v(p.m*p.nv+1)
	p.zero(zero)
	for i := range p.m {
		for j := range p.nv {
			from := operand.Mem{Base: a0, Disp: j * p.bytes()}
			p.read(j == p.nv-1, p.mask(), from, gate)
			p.keep(zero, gate, p.sum(i, j))
		}
		if i < p.m-1 {
			p.ADDQ(p.field("whereRow"), a0)
		}
	}
	p.Label(p.label("kept"))
}

// storeRows stores the sums, under the mask in the last rows.
func (p *productLoop) storeRows(last int) {
	for i := range p.m {
		masked := i >= p.m-last
		for j := range p.nv {
			to := operand.Mem{Base: a0, Disp: j * p.bytes()}
			p.write(masked && j == p.nv-1, p.mask(), p.sum(i, j), to)
		}
		if i < p.m-1 {
			p.ADDQ(b, a0)
		}
	}
}
