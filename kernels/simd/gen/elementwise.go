package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Loops over runs of elements: every operand is contiguous, and element i of the
// results depends on element i of the operands only.

func elementwise(m machine) {
	for _, f := range elementwiseLoops {
		l := m.run(f.name+m.name(), f.doc, f.operands)
		l.walk(func() {
			if f.constants != nil {
				f.constants(&l)
			}
		}, func(masked bool) { f.body(&l, masked) })
	}
}

// elementwiseLoops names the operands in the order of simd.runArgs. Capitals mark operands
// with bytes.
var elementwiseLoops = []struct {
	name, doc string
	operands  []string
	constants func(*runLoop)
	body      func(l *runLoop, masked bool)
}{
	{"relu", "replaces what is not positive by 0, NaN excepted.", []string{"y", "MASK", "x"}, (*runLoop).reluConstants, (*runLoop).relu},
	{"reluGradient", "passes what the mask allows.", []string{"dx", "dy", "MASK"}, (*runLoop).reluConstants, (*runLoop).reluGradient},
	{"add", "adds src to dst.", []string{"dst", "src"}, nil, (*runLoop).add},
	{"multiply", "multiplies two runs.", []string{"y", "a", "b"}, nil, (*runLoop).multiply},
	{"divideBytes", "divides bytes.", []string{"y", "BYTES"}, (*runLoop).divideConstants, (*runLoop).divideBytes},
	{"sgd", "makes a step of stochastic gradient descent.", []string{"w", "g", "v"}, (*runLoop).sgdConstants, (*runLoop).sgd},
	{"adam", "makes a step of Adam.", []string{"w", "g", "m", "v"}, (*runLoop).adamConstants, (*runLoop).adam},
}

// runFields are the fields of simd.runArgs.
var runFields = []string{
	"p0", "p1", "p2", "p3", "vectors", "tail", "mask", "flags",
	"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9",
}

var (
	runPointers = [4]reg.GPPhysical{reg.RSI, reg.R8, reg.R9, reg.R10}
	runFlags    = reg.R11
	runLeft     = reg.R12
	runScratch  = [3]reg.GPPhysical{reg.RAX, reg.RBX, reg.RDX}
)

type runLoop struct {
	loop
	operands []string
}

func (m machine) run(name, doc string, operands []string) runLoop {
	return runLoop{m.begin(name, "runArgs", doc, runFields...), operands}
}

// walk writes the loop around the body, which is written twice: for whole vectors and
// masked for the rest.
func (l *runLoop) walk(constants func(), body func(masked bool)) {
	for i := range l.operands {
		l.MOVQ(l.field(numbered("p", i)), runPointers[i])
	}
	l.MOVQ(l.field("flags"), runFlags)
	l.setMask("mask", runLeft)
	constants()
	l.vectors(runLeft, "done", body, func() {
		for i, name := range l.operands {
			step := l.bytes()
			if isBytes(name) {
				step /= l.element()
			}
			l.ADDQ(operand.Imm(uint64(step)), runPointers[i])
		}
	})
	l.end()
}

func isBytes(name string) bool { return name[0] < 'a' }

func (l *runLoop) get(masked bool, name string, to reg.Register) {
	l.read(masked, l.mask(), operand.Mem{Base: l.operand(name)}, to)
}

func (l *runLoop) put(masked bool, from reg.Register, name string) {
	l.write(masked, l.mask(), from, operand.Mem{Base: l.operand(name)})
}

func (l *runLoop) operand(name string) reg.Register {
	for i, o := range l.operands {
		if o == name {
			return runPointers[i]
		}
	}
	panic("gen: no operand " + name)
}

func (l *runLoop) tail(name string) bytesAt {
	return bytesAt{l.operand(name), l.mask(), l.field("tail"), l.unique("byte"), runScratch}
}

// scalars broadcasts the first scalars of the arguments to registers from v(first).
func (l *runLoop) scalars(first, count int) {
	for i := range count {
		l.broadcast(l.field(numbered("s", i)), l.v(first+i))
	}
}

func (l *runLoop) reluConstants() {
	l.zero(l.v(8))
	l.broadcast(l.field("s0"), l.v(9))
	if l.wide {
		l.VPBROADCASTB(l.field("s0"), reg.X9)
	}
}

func (l *runLoop) relu(masked bool) {
	x, zero, one, selected := l.v(0), l.v(8), l.v(9), l.selection(14, reg.K2)
	l.get(masked, "x", x)
	l.compare(notLessOrEqual, x, zero, selected)
	mask := l.tail("MASK")
	if !l.wide {
		l.VANDPS(x, selected, l.v(1))
		l.put(masked, l.v(1), "y")
		l.compare(greaterThan, x, zero, selected)
		l.VANDPS(one, selected, l.v(1))
		l.storeBytes(masked, l.v(1), l.v(2), mask)
		return
	}
	form(l.machine, l.VMOVAPS_Z, l.VMOVAPD_Z)(x, selected, l.v(1))
	l.put(masked, l.v(1), "y")
	l.compare(greaterThan, x, zero, selected)
	bytes, memory := l.v(2).(reg.Vec).AsX(), operand.Mem{Base: mask.at}
	l.VMOVDQU8_Z(reg.X9, selected, bytes)
	switch {
	case masked:
		l.VMOVDQU8(bytes, l.mask(), memory)
	case l.f64:
		l.VMOVQ(bytes, memory)
	default:
		l.VMOVDQU(bytes, memory)
	}
}

func (l *runLoop) reluGradient(masked bool) {
	mask, selected := l.tail("MASK"), l.selection(14, reg.K2)
	l.loadBytes(masked, mask, l.v(0))
	if l.wide {
		form(l.machine, l.VPTESTMD, l.VPTESTMQ)(l.v(0), l.v(0), selected)
		l.get(masked, "dy", l.v(1))
		form(l.machine, l.VMOVAPS_Z, l.VMOVAPD_Z)(l.v(1), selected, l.v(1))
	} else {
		form(l.machine, l.VPCMPEQD, l.VPCMPEQQ)(l.v(8), l.v(0), selected)
		l.get(masked, "dy", l.v(1))
		l.VANDNPS(l.v(1), selected, l.v(1))
	}
	l.put(masked, l.v(1), "dx")
}

func (l *runLoop) add(masked bool) {
	l.get(masked, "dst", l.v(0))
	l.get(masked, "src", l.v(1))
	l.plus(l.v(0), l.v(1), l.v(0))
	l.put(masked, l.v(0), "dst")
}

func (l *runLoop) multiply(masked bool) {
	l.get(masked, "a", l.v(0))
	l.get(masked, "b", l.v(1))
	l.times(l.v(0), l.v(1), l.v(0))
	l.put(masked, l.v(0), "y")
}

func (l *runLoop) divideConstants() { l.scalars(8, 1) }

// divideBytes divides, so that the quotient is rounded once, as the reference's is.
func (l *runLoop) divideBytes(masked bool) {
	l.loadBytes(masked, l.tail("BYTES"), l.v(0))
	switch {
	case !l.f64:
		l.VCVTDQ2PS(l.v(0), l.v(0))
	case l.wide:
		l.VCVTQQ2PD(l.v(0), l.v(0))
	default: // AVX2 converts words only
		l.VEXTRACTI128(otherHalf, l.v(0), reg.X1)
		l.VSHUFPS(everyOtherWord, reg.X1, reg.X0, reg.X0)
		l.VCVTDQ2PD(reg.X0, l.v(0))
	}
	l.over(l.v(0), l.v(8), l.v(0))
	l.put(masked, l.v(0), "y")
}

// Flags and scalars of the updates, see simd.SGD and simd.Adam.
const (
	flagDecay    = 0
	flagMomentum = 1
	flagNesterov = 2
)

func (l *runLoop) sgdConstants() { l.scalars(8, 4) }

// sgd multiplies and adds in the order of the reference, each rounded.
func (l *runLoop) sgd(masked bool) {
	w, step, product := l.v(0), l.v(1), l.v(2)
	rate, momentum, decay, factor := l.v(8), l.v(9), l.v(10), l.v(11)
	l.get(masked, "w", w)
	l.get(masked, "g", step)
	l.times(step, factor, step)
	l.when(flagDecay, runFlags, func() {
		l.times(w, decay, product)
		l.plus(step, product, step)
	})
	l.when(flagMomentum, runFlags, func() {
		v := l.v(3)
		l.get(masked, "v", v)
		l.times(v, momentum, v)
		l.plus(v, step, v)
		l.put(masked, v, "v")
		plain, done := l.unique("plain"), l.unique("step")
		l.TESTQ(operand.U32(1<<flagNesterov), runFlags)
		l.JE(operand.LabelRef(plain))
		l.times(v, momentum, product)
		l.plus(step, product, step)
		l.JMP(operand.LabelRef(done))
		l.Label(plain)
		l.move(v, step)
		l.Label(done)
	})
	l.times(step, rate, product)
	l.minus(w, product, w)
	l.put(masked, w, "w")
}

// adamConstants uses the register of selections too, since nothing is selected.
func (l *runLoop) adamConstants() { l.scalars(5, 10) }

// adam multiplies and adds in the order of the reference, each rounded.
func (l *runLoop) adam(masked bool) {
	w, g, m, v, t := l.v(0), l.v(1), l.v(2), l.v(3), l.v(4)
	b1, c1, b2, c2, rate, root, eps, decay, keep, factor := l.v(5), l.v(6), l.v(7), l.v(8), l.v(9), l.v(10), l.v(11), l.v(12), l.v(13), l.v(14)
	l.get(masked, "w", w)
	l.get(masked, "g", g)
	l.times(g, factor, g)
	l.when(flagDecay, runFlags, func() {
		l.times(w, decay, t)
		l.plus(g, t, g)
	})
	l.get(masked, "m", m)
	l.times(m, b1, m)
	l.times(g, c1, t)
	l.plus(m, t, m)
	l.put(masked, m, "m")
	l.get(masked, "v", v)
	l.times(v, b2, v)
	l.times(g, c2, t)
	l.times(t, g, t)
	l.plus(v, t, v)
	l.put(masked, v, "v")
	l.squareRoot(v, v)
	l.over(v, root, v)
	l.plus(v, eps, v)
	l.times(m, rate, m)
	l.over(m, v, m)
	l.times(w, keep, w)
	l.minus(w, m, w)
	l.put(masked, w, "w")
}
