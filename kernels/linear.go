package kernels

import (
	"slices"

	"dahl/kernels/calls"
	"dahl/kernels/cpu"
)

// The reference of an operation that is linear in each of its operands is the statement of the operation,
// executed: at every point of the iteration space the product of elements of two operands is
// added to an element of the written one. So one loop nest is the reference of all convolutions,
// dense layers and their gradients, and the other variants are compared with the statement itself.

// linear describes the reference of such an operation by the numbers of operands. Zero means none, and so does a number
// that a call lacks.
type linear struct {
	factors []int                       // that are multiplied; operand 0 takes the sums
	marks   int                         // has positions in windows: other points add nothing
	bias    int                         // adds terms of its own, which come last
	total   int                         // becomes the sum of the first factor alone
	gate    int                         // where it is not above 0, the result is 0
	relu    func(params []float64) bool // whether negative results become 0; nil means that they do not
	hyper   int                         // makes of the sums a step of operand 0, and of the bias unless with has NoBias
	with    calls.Attributes
}

// kernelOf is an operation with the reference and other variants.
func (l linear) kernelOf(k Kernel, others ...[]calls.Variant) Kernel {
	var err error
	if k.statement, err = k.parse(); err != nil {
		panic("kernels: " + k.Op + ": " + err.Error())
	}
	params := k.Parameters()
	k.Variants = withRef("the statement, point by point", linearRef[float32](l, k.statement, params), linearRef[float64](l, k.statement, params), others...)
	k.Variants[0].WorkspaceBytes = func(s *calls.Spec) int64 { return int64(s.Volume(0)) * s.Type.SizeBytes() }
	return k
}

func linearRef[T calls.Float](l linear, s statement, params []string) func(*calls.Call) {
	bias, first := []int{l.bias}, l.factors[:1]
	return func(c *calls.Call) {
		has := func(i int) bool { return i > 0 && i < len(c.Args) }
		sum := func(i int, factors []int) []T {
			sums, _ := calls.Scratch[T](c.Work, c.Args[i].Volume())
			clear(sums)
			addProducts(&s, params, c, sums, i, factors, l.marks)
			return sums
		}
		sums := sum(0, l.factors)
		if l.hyper > 0 {
			d := cpu.DescentOf[T](c, l.hyper, l.with)
			d.Ref(d.W, d.Vw, sums)
			if d.B != nil {
				d.Ref(d.B, d.Vb, sum(l.hyper+1, first))
			}
			return
		}
		if has(l.bias) {
			addProducts(&s, params, c, sums, 0, bias, 0)
		}
		gate := &c.Args[0]
		if has(l.gate) {
			gate = &c.Args[l.gate]
		}
		relu := l.relu != nil && l.relu(c.Params)
		calls.EachRun(&c.Args[0], gate, gate, func(y, gate, _ []T) {
			for i, v := range sums[:len(y)] {
				if relu && v <= 0 || has(l.gate) && !(gate[i] > 0) {
					v = 0
				}
				calls.Put(&y[i], v, c.Args[0].Accumulates())
			}
			sums = sums[len(y):]
		})
		if has(l.total) {
			db := &c.Args[l.total]
			for i, v := range sum(l.total, first) {
				calls.Put(&calls.Data[T](db)[i], v, db.Accumulates())
			}
		}
	}
}

// nest is the iteration space of a call over a result, up to two factors, and marks.
type nest[T calls.Float] struct {
	params  []string
	values  []float64
	names   [maxLoops]string
	extent  [maxLoops]int
	step    [maxLoops][4]int // from one to the next in each of the operands
	slide   [maxLoops][3]int // of the row and the column in an image, and of the position in a window
	loops   int
	image   [2]int // its rows and columns; 1 of each where there is none
	windows int    // of them, as far as bound
	result  []T
	factors [2][]T // the second may be nil
	marks   []uint8
}

const maxLoops = 12

// addProducts adds products of factors to the sums of operand to, which have no gaps.
func addProducts[T calls.Float](s *statement, params []string, c *calls.Call, sums []T, to int, factors []int, marks int) {
	n := nest[T]{params: params, values: c.Params, result: sums, image: [2]int{1, 1}}
	var at [4]int
	var slide [3]int
	for _, z := range s.sizes {
		n.extent[n.loop(z.loop)] = n.param(z.param)
	}
	var packed [4]int
	for d, step := len(c.Args[to].Shape)-1, 1; d >= 0; d-- {
		packed[d] = step
		step *= c.Args[to].Shape[d]
	}
	n.bind(0, s.operands[to], c.Args[to].Shape, packed[:], &at, &slide)
	for i, f := range factors {
		n.factors[i] = calls.Data[T](&c.Args[f])
		n.bind(1+i, s.operands[f], c.Args[f].Shape, c.Args[f].Stride, &at, &slide)
	}
	if marks > 0 {
		n.marks = calls.Data[uint8](&c.Args[marks])
		n.bind(3, s.operands[marks], c.Args[marks].Shape, c.Args[marks].Stride, &at, &slide)
		row, column := n.loop(s.sizes[0].loop), n.loop(s.sizes[1].loop)
		n.slide[row][2], n.slide[column][2] = n.extent[column], 1
	}
	n.run(0, at, slide)
}

// loop is the number of a loop, which is the next one if it is new.
func (n *nest[T]) loop(name string) int {
	if i := slices.Index(n.names[:n.loops], name); i >= 0 {
		return i
	}
	n.names[n.loops], n.extent[n.loops] = name, 1
	n.loops++
	return n.loops - 1
}

func (n *nest[T]) param(name string) int { return int(n.values[slices.Index(n.params, name)]) }

// bind adds an operand: how far each loop moves in it. at and slide are where the first point is.
func (n *nest[T]) bind(operand int, indices []Subscript, shape, stride []int, at *[4]int, slide *[3]int) {
	for d := range indices {
		x, extent, step := &indices[d], shape[d], stride[d]
		switch {
		case x.isWindow():
			for i := range x.Terms {
				loop, factor := n.loop(x.Terms[i].Loop), 1
				for _, name := range x.Terms[i].Factors {
					factor *= n.param(name)
				}
				n.step[loop][operand] += factor * step
				n.slide[loop][n.windows] += factor
			}
			before := n.param(x.Offset)
			at[operand] -= before * step
			slide[n.windows], n.image[n.windows] = -before, extent
			n.windows++
			continue
		case x.Block != "":
			block := n.loop(x.Block)
			extent /= n.extent[block]
			n.step[block][operand] += extent * step
		case x.Reversed:
			at[operand] += (extent - 1) * step
			step = -step
		}
		loop := n.loop(x.Terms[0].Loop)
		n.extent[loop] = extent
		n.step[loop][operand] += step
	}
}

// run visits all points of a loop and those within it.
func (n *nest[T]) run(loop int, at [4]int, slide [3]int) {
	if loop+1 == n.loops {
		n.row(loop, at, slide)
		return
	}
	for range n.extent[loop] {
		n.run(loop+1, at, slide)
		for i := range at {
			at[i] += n.step[loop][i]
		}
		for i := range slide {
			slide[i] += n.slide[loop][i]
		}
	}
}

// row adds the points of the innermost loop that lie in the image, and at the mark.
func (n *nest[T]) row(loop int, at [4]int, slide [3]int) {
	step, shift, result, one, other, marks := n.step[loop], n.slide[loop], n.result, n.factors[0], n.factors[1], n.marks
	to, i, j, mark, h, w, position := at[0], at[1], at[2], at[3], slide[0], slide[1], slide[2]
	for range n.extent[loop] {
		if uint(h) < uint(n.image[0]) && uint(w) < uint(n.image[1]) && (marks == nil || int(marks[mark]) == position) {
			v := one[i]
			if other != nil {
				v *= other[j]
			}
			result[to] += v
		}
		to, i, j, mark = to+step[0], i+step[1], j+step[2], mark+step[3]
		h, w, position = h+shift[0], w+shift[1], position+shift[2]
	}
}
