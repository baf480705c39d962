package kernels_test

import (
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/kerneltest"
	"dahl/must"
)

// followedCase is an operation that does two after each other. An operand of these is the number of an operand of the whole; written ones hold what the step gives.
type followedCase struct {
	op     string
	params dag.Params
	shapes [][]int
	steps  []followedStep
}

type followedStep struct {
	op       string
	params   dag.Params
	operands []int
}

// TestFusedAreTheirParts: every variant of an operation with a function or a sum gives the bits of the same variants of its parts, one after the other. Rows and columns are
// fewer and more than what is computed at once, and 37×157 sums of 1031 products are computed in blocks.
func TestFusedAreTheirParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(37, 41))
	for i, c := range followedCases() {
		k := must.Get(kernels.KernelByName(c.op))(t)
		for _, real := range typesOf(i) {
			for margin := range 2 {
				s := kerneltest.New(k, real, c.shapes, kerneltest.FirstModes(k)[:len(c.shapes)], c.params, margin)
				must.Do(t, kernels.Validate(&s.Spec))
				s.Fill(rng)
				for v := range k.Variants {
					if variant := &k.Variants[v]; s.Runs(variant) {
						c.compare(t, s, variant)
					}
				}
			}
		}
	}
}

func followedCases() (all []followedCase) {
	rows, columns, inputs := []int{3, 7, 11, 37}, []int{1, 13, 157, 409}, []int{1031, 31, 67, 5}
	for f, of := range kernels.Functions() {
		params := kerneltest.FunctionParams(of.Name, of.Default)
		var own dag.Params
		if of.Setting != "" {
			own = dag.Params{{Name: of.Setting, Value: of.Default}}
		}
		n, m, c := rows[f%4], columns[(f+f/4)%4], inputs[(f+2)%4]
		for range 2 {
			y, x, w, b := []int{n, m}, []int{n, c}, []int{m, c}, []int{m}
			all = append(all,
				followedCase{"dense.function", params, [][]int{y, x, w, b}, []followedStep{{op: "dense", operands: []int{0, 1, 2, 3}}, {op: of.Name, params: own, operands: []int{0, 0}}}},
				followedCase{"dense.function.kept", params, [][]int{y, y, x, w}, []followedStep{{op: "dense", operands: []int{1, 2, 3}}, {op: of.Name, params: own, operands: []int{0, 1}}}},
				followedCase{"dense.dx.function", params, [][]int{y, x, {c, m}, y}, []followedStep{{op: "dense.dx", operands: []int{0, 1, 2}}, {op: of.Name + ".dx", params: own, operands: []int{0, 0, 3}}}})
			n, m, c = rows[(f+3)%4], columns[(f+2)%4], inputs[f%4]
		}
	}
	for _, e := range [][2]int{{3, 5}, {7, 37}, {2, 1031}} {
		x, w := []int{e[0], e[1]}, []int{e[1]}
		for center := range 2 {
			norm, back := kerneltest.RowParams(float64(center), 1e-5), kerneltest.FlagParams("center", float64(center))
			all = append(all,
				followedCase{"layernorm.sum", norm, [][]int{x, {e[0], 2}, x, x, x, w, w}, []followedStep{{op: "sum", operands: []int{2, 3, 4}}, {op: "layernorm", params: norm, operands: []int{0, 1, 2, 5, 6}}}},
				followedCase{"layernorm.sum", norm, [][]int{x, {e[0], 2}, x, x, x, w}, []followedStep{{op: "sum", operands: []int{2, 3, 4}}, {op: "layernorm", params: norm, operands: []int{0, 1, 2, 5}}}},
				followedCase{"layernorm.dx.sum", back, [][]int{x, x, x, {e[0], 2}, w, x}, []followedStep{{op: "layernorm.dx", params: back, operands: []int{0, 1, 2, 3, 4}}, {op: "add", operands: []int{0, 5}}}})
		}
	}
	return all
}

func (c *followedCase) compare(t *testing.T, s *kerneltest.Case, v *calls.Variant) {
	t.Helper()
	whole, parts := s.Clone(), s.Clone()
	whole.Run(v)
	for _, step := range c.steps {
		k := must.Get(kernels.KernelByName(step.op))(t)
		p := parts.Part(k, step.operands)
		p.Spec.Params = step.params
		for i := range p.Spec.Operands {
			p.Spec.Operands[i].Mode = k.Operands[i].Modes[0]
		}
		must.Do(t, kernels.Validate(&p.Spec))
		like := likeVariant(k, v.Name)
		if like == nil { // a function at the level without vectors
			like = &k.Variants[0]
		}
		p.Run(like)
		for i, of := range step.operands {
			if p.Spec.Operands[i].Mode.Writes() {
				parts.Data[of] = p.Data[i]
			}
		}
	}
	for i, o := range s.Spec.Operands {
		if o.Mode.Writes() && !whole.SameBytes(parts, i) {
			t.Fatalf("%s %s: operand %s differs from that of the operations one after the other", v.Name, s.Spec.Key(), s.Kernel.Operands[i].Name)
		}
	}
}
