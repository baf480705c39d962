package kerneltest

import (
	"math"
	"strings"

	"dahl/dag"
)

// xentCases are the cases of a dense layer with its loss.
func xentCases() []HandCase {
	return []HandCase{
		{
			// Of the classes 5 and 6 the label is the second one; the second row has its label elsewhere.
			Name: "two classes", Op: "xent.sums", Params: dag.Params{{Name: "first", Value: 5}},
			Shapes: [][]int{{2, 3}, {2, 1}, {2, 1}, {2}},
			In:     [][]float64{nil, {2, 0}, {1, 1}, {6, 4}},
			Want:   [][]float64{{2, 2, 2, 0, 2, 0}, nil, nil, nil},
		},
		{
			// No exponential overflows, and what is far below is nothing.
			Name: "two sets of classes", Op: "xent.merge",
			Shapes: [][]int{{2, 3}, {2, 3}},
			In:     [][]float64{{1000, 2, 7, -1000, 5, 0}, {1000, 3, 0, 1000, 4, 9}},
			Want:   [][]float64{{1000, 5, 7, 1000, 4, 9}, nil},
		},
		{
			// A label with the greatest logit, another one, and none.
			Name: "losses", Op: "xent",
			Shapes: [][]int{{3}, {3}, {3, 3}, {3}, {1}},
			In:     [][]float64{nil, nil, {7, 1, 7, 7, 1, 5, 7, 1, 7}, {0, 1, -1}, {1.5}},
			Want:   [][]float64{{0, 3, 0}, {1, 0, 0}, nil, nil, nil},
		},
		{
			// The first class has all of the probability, and the label is the second one: dz = 1 -1. The second row has no label.
			Name: "the other class", Op: "xent.dx", Params: LogitParams(2, 5),
			Shapes: [][]int{{2, 2}, {2, 2}, {2, 2}, {2}, {2, 3}, {1}},
			In:     [][]float64{nil, {1000, 0, 1000, 0}, {1, 3, 0, 4}, {6, -1}, {1000, 1, 0, 1000, 1, 0}, {2}},
			Want:   [][]float64{{1, -1, 0, 0}, nil, nil, nil, nil, nil},
		},
		{
			Name: "the other class", Op: "xent.dw", Params: LogitParams(1, 5),
			Shapes: [][]int{{2, 2}, {1, 2}, {2, 2}, {1}, {1, 3}},
			In:     [][]float64{nil, {8, 4}, {125, 0, 0, 0}, {6}, {1000, 1, 0}},
			Want:   [][]float64{{8, 4, -8, -4}, nil, nil, nil, nil},
		},
	}
}

// xentBounds is the bounds of these operations. The reference computes in float64, and rounds once.
//
// A logit of c products errs by ε = (c+4)·u·Σ|x||w|, and so does r2. r0 errs by the greatest ε of a row. An exponential of a difference errs by
// ρ = ε + 4u·(|z| + |r0|) + 8u of itself, and r1 by that and by the u of each of its terms, and once more since all are relative to r0. The numbers of a sum
// that was there are one term more. A gradient takes r0 + log(r1·B) from the logit, and errs by p·ρ/B with the size of this logarithm in ρ, and by
// 3u/B. Sums of N gradients add (N+4)·u of the sizes of their terms. All is doubled.
func xentBounds(c *Case) [][]float64 {
	if !strings.HasPrefix(c.Kernel.Op, "xent") {
		return nil
	}
	b := xentBound{Case: c, u: UnitRoundoff(c.Spec.Type), all: make([][]float64, len(c.Buffers))}
	for i := range c.Buffers {
		b.values = append(b.values, c.Values(i))
	}
	b.all[0] = make([]float64, len(b.values[0]))
	switch c.Kernel.Op {
	case "xent.sums":
		b.sums()
	case "xent.merge":
		r, other := b.values[0], b.values[1]
		for i := 0; i < len(r); i += 3 {
			b.all[0][i+1] = 2 * b.u * (16 + 4*math.Abs(r[i]) + 4*math.Abs(other[i])) * (math.Abs(r[i+1]) + math.Abs(other[i+1]))
			b.all[0][i+2] = 2 * b.u * (math.Abs(r[i+2]) + math.Abs(other[i+2]))
		}
	case "xent":
		r := b.values[2]
		for i := range b.all[0] {
			b.all[0][i] = 16 * b.u * (1 + math.Abs(math.Log(r[3*i+1])) + math.Abs(r[3*i]) + math.Abs(r[3*i+2]))
		}
	case "xent.dx", "xent.dw":
		b.gradients(c.Kernel.Op == "xent.dw")
	default:
		return nil
	}
	return b.all
}

// xentBound is these bounds while they are computed.
type xentBound struct {
	*Case
	u   float64
	all [][]float64

	values [][]float64 // by operand
}

// logit is a logit and its error.
func (b *xentBound) logit(n, f int) (z, err float64) {
	width := b.Spec.Operands[1].Shape[1]
	x, w := b.values[1][n*width:], b.values[2][f*width:]
	for i := range width {
		z, err = z+x[i]*w[i], err+math.Abs(x[i]*w[i])
	}
	return z, err * float64(width+4) * b.u
}

func (b *xentBound) sums() {
	r, classes := b.values[0], b.Spec.Operands[2].Shape[0]
	for n := range b.Spec.Operands[1].Shape[0] {
		most, worst, size := math.Inf(-1), 0.0, 0.0
		before := b.Spec.Operands[0].Mode == dag.ReadWrite
		if before {
			most, size = r[3*n], math.Abs(r[3*n])
		}
		for f := range classes {
			z, err := b.logit(n, f)
			most, worst, size = max(most, z), max(worst, err), max(size, math.Abs(z))
		}
		relative, sum := 2*worst+(8*size+float64(classes+24))*b.u, 0.0
		for f := range classes {
			z, _ := b.logit(n, f)
			sum += math.Exp(z - most)
		}
		if b.all[0][3*n+2] = 2 * (worst + 2*b.u*size); before {
			sum += math.Abs(r[3*n+1]) * math.Exp(r[3*n]-most)
			b.all[0][3*n+2] += 2 * b.u * (math.Abs(r[3*n+2]) + size)
		}
		b.all[0][3*n], b.all[0][3*n+1] = 2*(worst+b.u*size), 2*relative*sum
	}
}

func (b *xentBound) gradients(ofWeight bool) {
	rows, classes, width := b.Spec.Operands[1].Shape[0], b.Spec.Operands[2].Shape[0], b.Spec.Operands[1].Shape[1]
	y, r, batch := b.values[3], b.values[4], b.Spec.Param("batch")
	if len(b.Buffers) > 5 {
		batch /= b.values[5][0]
	}
	for n := range rows {
		for f := range classes {
			if y[n] < 0 {
				continue
			}
			z, err := b.logit(n, f)
			most, less := r[3*n], r[3*n]+math.Log(r[3*n+1]*batch)
			p := math.Exp(z-most) / r[3*n+1] / batch
			wrong := p*(2*err+(4*math.Abs(z)+4*math.Abs(less)+4*math.Abs(most)+24)*b.u) + 3*b.u/batch
			to, with := n, b.values[2][f*width:]
			if ofWeight {
				to, with = f, b.values[1][n*width:]
			}
			wrong += float64(rows+classes+4) * b.u * (p + 1/batch)
			for d := range width {
				b.all[0][to*width+d] += 2 * wrong * math.Abs(with[d])
			}
		}
	}
	for i, v := range b.values[0] {
		if b.Spec.Operands[0].Mode == dag.ReadWrite {
			b.all[0][i] += 2 * float64(rows+classes+4) * b.u * math.Abs(v)
		} else {
			b.all[0][i] += 0x1p-1000
		}
	}
}
