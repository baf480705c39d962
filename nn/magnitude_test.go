package nn_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
)

// Error bounds of a network's values, derived as follows.
//
// A sum of n products computed in any order errs by at most n·eps·Σ|a||b| (with
// eps the unit roundoff, to first order). Let M be the same network on absolute
// values: weights |w|, pixels as they are. If a layer's
// inputs err by at most k·eps·M_x, then its outputs, y = Σ w·x + b, err by at most
//
//	Σ|w|·k·eps·M_x + (n+1)·eps·(Σ|w|·M_x + |b|)  ≤  (k+n+1)·eps·M_y ,
//
// so by induction a value errs by at most K·eps·M, where K adds up n+1 over all
// layers that it depends on. A max-pool gives one element of its window, which is
// at most the sum of the window: M takes size² times the average.
//
// Where a layer applies a function f to every element, with the bounds of [kernels.Function], M_y is
// Steepest·M_x + |f(0)|, which is at least |y|, so that y errs by Steepest·k·eps·M_x ≤ k·eps·M_y.
// Its backward pass dx = f'(x)·dy errs by the errors of dy and of x, where those are at
// most k·eps times M_dy and M_x, by at most
//
//	|f'|·k·eps·M_dy + Bend·k·eps·M_x·|dy|  ≤  k·eps·M_dx ,  M_dx = (Steepest + Bend·M_x)·M_dy .
//
// Either takes at most 8 roundings of numbers that are no larger.
//
// Kinks of functions and the choice of the maximum are the same on both sides unless values
// within the bound of each other straddle the kink; the fixtures have none.
//
// The softmax's derivative in z is at most 1/2, so loss and dz·B err by at most
// 2·K·eps·max M_z plus (c+8)·eps for their own operations. The backward pass
// is linear again in dz: M starts from (1+max M_z)/B and runs through |w|.
// A weight gradient is a sum of products of two values with such errors, of n
// terms: its K adds both and n.
type magnitudes struct {
	m   map[string][]float64 // M of each buffer of activations and gradients
	k   float64
	eps float64
}

// bound is the largest error of element i of a buffer in one computation; the
// difference of two has twice that.
func (b *magnitudes) bound(buffer string, i int) float64 { return b.k * b.eps * b.m[buffer][i] }

// magnitudesOf runs the network of absolute values on the data and weights that
// an interpreter holds.
func magnitudesOf(t testing.TB, m *nn.Model, in *interpreter, batch, samples int, index []int32, real dag.DType) *magnitudes {
	t.Helper()
	if hasQuotients(m) {
		return conditionOf(t, m, in, batch, samples, index, real)
	}
	abs, curves, scale, k := absoluteModel(t, m, batch)
	g := mustLower(t, abs, nn.LowerOptions{Batch: batch, Type: dag.Float64, Train: true, Samples: samples, Optimizer: keepsGradients, Unfused: true})
	norms := normsOf(t, m, in, batch, samples, index)
	mag := newInterpreter(t, g, map[string][]uint64{})
	copy(mag.bytes("data.train.images"), in.bytes("data.train.images"))
	copy(mag.ints("data.train.labels"), in.ints("data.train.labels"))
	for _, p := range abs.Parameters() {
		values := in.floats(p.Name)
		for i := range values {
			values[i] = math.Abs(values[i])
		}
		mag.setFloats(p.Name, values)
	}
	mag.feed(index, 0, 1)
	z := m.Stages[len(m.Stages)-1].Name + ".out"
	for i, task := range mag.tasks {
		if task.Labels.Phase == "update" {
			continue
		}
		if task.Op == "softmax_xent" {
			d := mag.floats("grad." + z)
			top := slices.Max(mag.floats(z)) * scale
			for j := range d {
				d[j] = (1 + top) / float64(batch)
			}
			mag.setFloats("grad."+z, d)
			continue
		}
		mag.calls[i]()
		if c := curves[task.Labels.Layer]; c != nil {
			c.apply(mag, task, scale)
		}
		if n := norms[task.Labels.Layer]; n != nil {
			n.apply(mag, task, scale)
		}
	}
	b := &magnitudes{m: map[string][]float64{}, k: k, eps: 0x1p-53}
	if real == dag.Float32 {
		b.eps = 0x1p-24
	}
	for i := range g.Buffers {
		buf := &g.Buffers[i]
		if buf.Type != dag.Float64 || buf.Role == dag.Input || strings.HasPrefix(buf.Name, "loss") {
			continue
		}
		values := mag.floats(buf.Name)
		for j := range values {
			values[j] *= scale * scale
		}
		b.m[buf.Name] = values
	}
	for i := range m.Stages {
		for _, prefix := range []string{"", "grad."} {
			name := prefix + m.Stages[i].Name + ".out"
			if values := mag.ofStage(abs, i, name); values != nil { // in the order of PyTorch
				for j := range values {
					values[j] *= scale * scale
				}
				b.m[name] = values
			}
		}
	}
	for name, n := range norms {
		n.note(b, name, [2][]float64{in.floats(name + ".running_mean"), in.floats(name + ".running_var")}, scale)
	}
	b.m["loss"] = []float64{1 + slices.Max(b.m[z])}
	return b
}

// absoluteModel is the network whose values are M/scale where its ReLUs are the curves that
// are given by layer, and the K of all its values.
func absoluteModel(t testing.TB, m *nn.Model, batch int) (abs *nn.Model, curves map[string]*magnitudeCurve, scale, k float64) {
	t.Helper()
	curves = map[string]*magnitudeCurve{}
	all := m.Named()
	scale, k = 1, float64(m.Classes()+8)
	factors := 1.0
	for i, s := range m.Stages {
		as := func(l nn.Layer) { n := all[i].(nn.Named); n.Layer = l; all[i] = n }
		outputs := float64(nn.Channels(s.Out))
		k += float64(2 * len(s.Readers())) // the sum of the parts of the gradient
		switch p := s.Layer.(type) {
		case layers.ReLU:
			curves[s.Name] = &magnitudeCurve{Function: &kernels.Function{Steepest: 1}}
			k += 2 * 8
		case layers.Activation:
			as(layers.ReLU{})
			curves[s.Name] = &magnitudeCurve{Function: must.Get(kernels.FunctionByName(p.Function))(t)}
			k += 2 * 8
		case layers.Dropout: // at most: some are 0
			as(layers.ReLU{})
			curves[s.Name] = &magnitudeCurve{Function: &kernels.Function{Steepest: 1 / (1 - p.P)}}
			k += 2 * 2
		case layers.Flatten, layers.Concat, layers.Pixels, layers.Select:
		case layers.Add:
			k += float64(2 * len(s.In))
		case layers.Multiply: // the errors of both factors add up; of k, half is of the forward pass
			factors *= 2
			k += 2
		case layers.BatchNorm:
			as(layers.ReLU{})
			k += 2 * (float64(batch*nn.Elems(s.Out)/s.Out[0]) + 16)
		case layers.GlobalAvgPool:
			k += 2 * float64(nn.Elems(s.In[0])/s.Out[0]+1)
		case layers.MaxPool:
			as(layers.AvgPool(p))
			scale *= area(p)
			k += 2
		case layers.AvgPool:
			k += 2 * (area(layers.MaxPool(p)) + 1)
		case layers.Conv2D:
			k += 2*float64(s.Params[0].FanIn+1) + outputs*float64(s.Params[0].FanIn*max(p.Groups, 1)/s.In[0][0]) + 1 + float64(batch*s.Out[1]*s.Out[2])
		case layers.Dense:
			k += 2*float64(nn.Channels(s.In[0])+1) + outputs + 1 + float64(batch*nn.Elems(s.Out)/nn.Channels(s.Out))
		case layers.Embedding:
			k += float64(batch * s.Out[0])
		case layers.ClassToken: // a sum over samples in the backward pass alone
			k += float64(batch)
		case layers.Positions:
			k += 2 + float64(batch)
		default:
			t.Fatalf("a layer of kind %q has no bounds: derive here how errors grow in it", s.Layer.Kind())
		}
	}
	if factors > 1 && scale > 1 {
		t.Fatal("a product of values that are scaled has no bounds")
	}
	return mustNew(t, "magnitudes", m.Input, all...), curves, scale, 2 * k * factors
}

// area is the number of positions of a window.
func area(p layers.MaxPool) float64 {
	w := p.Windows()
	return float64(w[0].Size * w[1].Size)
}

// magnitudeCurve is a layer that applies a function, in whose place the network has a ReLU.
type magnitudeCurve struct {
	*kernels.Function
	grows []float64 // M_dx/M_dy of each element
}

// apply writes M/scale where a task of the ReLU has written.
func (c *magnitudeCurve) apply(mag *interpreter, task *dag.Task, scale float64) {
	values := mag.operand(task, 0)
	switch task.Op {
	case "relu":
		c.grows = make([]float64, len(values))
		for i, x := range mag.operand(task, 2) {
			values[i], c.grows[i] = c.Steepest*x+c.AtZero, c.Steepest+c.Bend*scale*x
		}
	case "relu.dx":
		for i, dy := range mag.operand(task, 1) {
			values[i] = c.grows[i] * dy
		}
	default:
		return // a sum of gradients
	}
	mag.setOperand(task, 0, values)
}

// compareWithin fails if two versions of a buffer differ by more than their bound.
func (b *magnitudes) compareWithin(t *testing.T, what, buffer string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 || len(b.m[buffer]) != len(got) {
		t.Fatalf("%s: %s has %d values, want %d, bounds %d", what, buffer, len(got), len(want), len(b.m[buffer]))
	}
	for i := range got {
		limit := 2 * b.bound(buffer, i)
		if !(math.Abs(got[i]-want[i]) <= limit) {
			t.Fatalf("%s: %s[%d] is %.17g, want %.17g, off by %.3g, bound %.3g", what, buffer, i, got[i], want[i], math.Abs(got[i]-want[i]), limit)
		}
	}
}
