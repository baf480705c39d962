package nn_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// magnitudeNorm is a batch normalisation, in whose place the network of magnitudes has a ReLU.
//
// With x̂ = (x - μ)/σ, where σ² is the variance plus eps, a channel's inputs err by at most k·eps·M_x. Then μ errs by the mean of that,
// x̂ by E = (M_x + mean M_x)/σ from x and μ, and σ, of itself, by at most Σ|x̂|·E/N ≤ ρ = √(mean E²), since the mean
// of x̂² is at most 1. Together x̂ errs by Ê = E + |x̂|·ρ, times k·eps, and y = γ·x̂ + β by |γ|·Ê. E is at least |x̂|, so that
// M_y = |γ|·Ê + |β| is at least |y|. The gradient is
//
//	dx = γ/σ·(dy - mean dy - x̂·mean(dy·x̂))
//
// whose factors err by k·eps times M_dy, Ê and ρ:
//
//	M_dx = |γ|/σ·((M_dy + mean M_dy + |x̂|·mean(|x̂|·M_dy))·(1 + ρ) + Ê·mean(|x̂|·M_dy) + |x̂|·mean(Ê·M_dy))
//
// and in the same way dγ = Σ dy·x̂ has M = Σ M_dy·(|x̂| + Ê), and dβ = Σ dy has Σ M_dy. The N terms of the sums
// and 16 roundings of no larger numbers are added to K.
type magnitudeNorm struct {
	shape           []int // of a sample
	weight, bias    []float64
	mean, deviation []float64
	x               []float64 // channels last, as operands are
	ratio           []float64 // Ê
	spread          []float64 // ρ by channel
	weightGrad      []float64
	biasGrad        []float64
	averages        []float64 // of M_x by channel
}

// magnitudeNormOf takes x and its statistics from a run of the network.
func magnitudeNormOf(m *nn.Model, stage int, run *interpreter, eps float64) *magnitudeNorm {
	s := &m.Stages[stage]
	id := s.Inputs[0]
	n := &magnitudeNorm{shape: s.Out, weight: run.floats(s.Params[0].Name), bias: run.floats(s.Params[1].Name)}
	pixels := n.shape[1] * n.shape[2]
	x := run.ofStage(m, id, m.Stages[id].Name+".out")
	n.x = make([]float64, len(x))
	for i, v := range x {
		sample, channel, pixel := i/(pixels*n.shape[0]), i/pixels%n.shape[0], i%pixels
		n.x[(sample*pixels+pixel)*n.shape[0]+channel] = v
	}
	for c := range s.Out[0] {
		sum, squares, count := 0.0, 0.0, 0.0
		n.each(c, func(i int) { sum += n.x[i]; count++ })
		n.each(c, func(i int) { squares += (n.x[i] - sum/count) * (n.x[i] - sum/count) })
		n.mean, n.deviation = append(n.mean, sum/count), append(n.deviation, math.Sqrt(squares/count+eps))
	}
	return n
}

// each visits the values of a channel.
func (n *magnitudeNorm) each(channel int, visit func(i int)) {
	for i := channel; i < len(n.x); i += n.shape[0] {
		visit(i)
	}
}

// average is the mean over a channel.
func (n *magnitudeNorm) average(channel int, of func(i int) float64) float64 {
	sum, count := 0.0, 0.0
	n.each(channel, func(i int) { sum += of(i); count++ })
	return sum / count
}

// normal is |x̂|.
func (n *magnitudeNorm) normal(channel, i int) float64 {
	return math.Abs(n.x[i]-n.mean[channel]) / n.deviation[channel]
}

func (n *magnitudeNorm) apply(mag *interpreter, task *dag.Task, scale float64) {
	values := mag.operand(task, 0)
	switch task.Op {
	case "relu":
		n.forward(values, mag.operand(task, 2), scale)
	case "relu.dx":
		n.backward(values, mag.operand(task, 1))
	default:
		return
	}
	mag.setOperand(task, 0, values)
}

func (n *magnitudeNorm) forward(y, x []float64, scale float64) {
	n.ratio, n.spread, n.averages = make([]float64, len(x)), nil, nil
	for c, d := range n.deviation {
		mean := scale * n.average(c, func(i int) float64 { return x[i] })
		rho := math.Sqrt(n.average(c, func(i int) float64 { return math.Pow((scale*x[i]+mean)/d, 2) }))
		n.each(c, func(i int) {
			n.ratio[i] = (scale*x[i]+mean)/d + n.normal(c, i)*rho
			y[i] = (math.Abs(n.weight[c])*n.ratio[i] + math.Abs(n.bias[c])) / scale
		})
		n.spread, n.averages = append(n.spread, rho), append(n.averages, mean)
	}
}

func (n *magnitudeNorm) backward(dx, dy []float64) {
	n.weightGrad, n.biasGrad = nil, nil
	count := float64(len(dy) / n.shape[0])
	for c, d := range n.deviation {
		mean := n.average(c, func(i int) float64 { return dy[i] })
		product := n.average(c, func(i int) float64 { return dy[i] * n.normal(c, i) })
		err := n.average(c, func(i int) float64 { return dy[i] * n.ratio[i] })
		n.each(c, func(i int) {
			x := n.normal(c, i)
			dx[i] = math.Abs(n.weight[c]) / d * ((dy[i]+mean+x*product)*(1+n.spread[c]) + n.ratio[i]*product + x*err)
		})
		n.weightGrad, n.biasGrad = append(n.weightGrad, count*(product+err)), append(n.biasGrad, count*mean)
	}
}

// note gives the magnitudes of the gradients of the parameters, and of the running statistics: of a part of
// the mean, and of the variance, which errs by twice what the deviation does.
func (n *magnitudeNorm) note(b *magnitudes, name string, running [2][]float64, scale float64) {
	of := func(values []float64) (all []float64) {
		for _, v := range values {
			all = append(all, v*scale*scale)
		}
		return all
	}
	b.m["grad."+name+".weight"], b.m["grad."+name+".bias"] = of(n.weightGrad), of(n.biasGrad)
	var mean, variance []float64
	for c, d := range n.deviation {
		mean = append(mean, n.averages[c]+math.Abs(running[0][c]))
		variance = append(variance, 4*d*d*(1+n.spread[c])+math.Abs(running[1][c]))
	}
	b.m[name+".running_mean"], b.m[name+".running_var"] = mean, variance
}

// normsOf are the batch normalisations of a network with the weights and data of an interpreter.
func normsOf(t testing.TB, m *nn.Model, in *interpreter, batch, samples int, index []int32) map[string]*magnitudeNorm {
	norms := map[string]*magnitudeNorm{}
	var run *interpreter
	for i := range m.Stages {
		b, ok := m.Stages[i].Layer.(layers.BatchNorm)
		if !ok {
			continue
		}
		if run == nil {
			_, run = runAgain(t, m, in, batch, samples, index)
		}
		norms[m.Stages[i].Name] = magnitudeNormOf(m, i, run, cmp.Or(b.Eps, 1e-5))
	}
	return norms
}

// runAgain is a step in float64, of layers by themselves, with the weights and data of an interpreter.
func runAgain(t testing.TB, m *nn.Model, in *interpreter, batch, samples int, index []int32) (*dag.Graph, *interpreter) {
	t.Helper()
	opt := nn.LowerOptions{Batch: batch, Type: dag.Float64, Train: true, Samples: samples, Unfused: true, Optimizer: keepsGradients}
	if m.Vocabulary() > 0 {
		opt.SampleType = dag.Int32
	}
	g := mustLower(t, m, opt)
	run := newInterpreter(t, g, map[string][]uint64{})
	copy(run.bytes("data.train.images"), in.bytes("data.train.images"))
	copy(run.ints("data.train.labels"), in.ints("data.train.labels"))
	for _, p := range m.Parameters() {
		run.setFloats(p.Name, in.floats(p.Name))
	}
	run.step(index, 0, 1)
	return g, run
}

// hasQuotients reports whether a layer of the network divides by what it has computed: a root, or a sum of exponentials.
func hasQuotients(m *nn.Model) bool {
	return slices.ContainsFunc(m.Stages, func(s nn.Stage) bool {
		switch s.Layer.(type) {
		case layers.LayerNorm, layers.RMSNorm, layers.Attention, layers.Rotary:
			return true
		}
		return false
	})
}

// conditionOf is bounds for such a network, in which errors grow by quotients of its values, too. M of a buffer is its greatest value in a step in
// float64, and K stands for the number of terms of a value times the condition of the network. The networks of the tests have
// some hundred terms and conditions below 30.
func conditionOf(t testing.TB, m *nn.Model, in *interpreter, batch, samples int, index []int32, real dag.DType) *magnitudes {
	t.Helper()
	g, run := runAgain(t, m, in, batch, samples, index)
	b := &magnitudes{m: map[string][]float64{}, k: 1 << 12, eps: 0x1p-53}
	if real == dag.Float32 {
		b.eps = 0x1p-24
	}
	note := func(name string, values []float64) {
		most := 0.0
		for _, v := range values {
			most = max(most, math.Abs(v))
		}
		b.m[name] = slices.Repeat([]float64{most}, len(values))
	}
	for i := range g.Buffers {
		if buf := &g.Buffers[i]; buf.Type == dag.Float64 && buf.Role != dag.Input {
			note(buf.Name, run.floats(buf.Name))
		}
	}
	for i := range m.Stages {
		for _, prefix := range []string{"", "grad."} {
			name := prefix + m.Stages[i].Name + ".out"
			if values := run.ofStage(m, i, name); values != nil {
				note(name, values)
			}
		}
	}
	return b
}
