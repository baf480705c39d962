package conformance

import (
	"math"
	"slices"
	"testing"

	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
)

// arithmetic is how a kernel rounds: sums in a type with unit roundoff sums, and factors
// of products rounded to factors before they are multiplied (0: they are exact).
type arithmetic struct{ sums, factors float64 }

var (
	float64Sums = arithmetic{sums: 0x1p-53}
	float32Sums = arithmetic{sums: 0x1p-24}
)

// confidence is λ of the bound λ·√n·u for sums of n terms: the errors of the additions
// have no common sign, so that a bound of n·u is missed by far, and this one is exceeded
// with a probability of 2·exp(-λ²/2), 7e-6 (Higham and Mary, A new approach to probabilistic rounding
// error analysis, SIAM J. Sci. Comput. 41, 2019, theorem 2.4).
const confidence = 5

// stepErrors bounds what one step of stochastic gradient descent errs by in each weight,
// whatever the order of its sums, to first order in the unit roundoff u.
//
// A sum of n products errs by at most λ√n·u·Σ|a||b|. Let M be the network on absolute
// values (weights |w|, pixels as they are) with the signs of the ReLU and the choices of
// the max-pools of the exact network. If the inputs of a layer err by k·u·M_x, then its outputs by at most
//
//	Σ|w|·k·u·M_x + λ√(n+1)·u·(Σ|w|·M_x + |b|)  ≤  (k+λ√(n+1))·u·M_y,
//
// so a value errs by K·u·M, with K the sum of λ√(n+1) over the layers before it. The
// gradient of logit i is (p_i - [i is the label])/B, and |∂p_i/∂z_j| adds up to 2p_i(1-p_i) over j, so it errs by K·u·M with
// M_i = (|p_i - [label]| + 2p_i(1-p_i)·max M_z)/B, the c+8 roundings of its own added to K. Backwards every
// layer is linear in it. A weight's gradient, a sum of products of both, has the K of both
// and its own. Factors rounded to v before they are multiplied err by 2v in each product:
// K·u has 2v more for each layer forward, backward and for the gradient.
//
// The update w - rate·g rounds twice.
func (a arithmetic) stepErrors(m *nn.Model, weights map[string][]float64, images [][]float64, labels []int32, rate float64) map[string][]float64 {
	relative := float64(m.Classes()+8) * a.sums
	sum := func(n int) { relative += confidence*math.Sqrt(float64(n))*a.sums + 2*a.factors }
	for _, s := range m.Stages {
		switch l := s.Layer.(type) {
		case layers.Conv2D:
			sum(s.Params[0].FanIn + 1)
			sum(s.Out[0] * l.Kernel * l.Kernel)
			sum(len(images) * s.Out[1] * s.Out[2])
		case layers.Dense:
			sum(s.In[0][0] + 1)
			sum(s.Out[0])
			sum(len(images))
		}
	}
	bounds := map[string][]float64{}
	for name, g := range gradientMagnitudes(m, weights, images, labels) {
		bounds[name] = make([]float64, len(g))
		for i := range g {
			bounds[name][i] = rate*relative*g[i] + 2*a.sums*(math.Abs(weights[name][i])+rate*g[i])
		}
	}
	return bounds
}

// magnitudes are the exact values of a network beside M, which stepErrors defines.
type magnitudes struct {
	weights, abs map[string][]float64
	grads        map[string][]float64 // M of the gradients of the weights
}

// gradientMagnitudes is M of the gradient of every weight, for networks of
// convolutions, dense layers, ReLU and max-pooling.
func gradientMagnitudes(m *nn.Model, weights map[string][]float64, images [][]float64, labels []int32) map[string][]float64 {
	g := magnitudes{weights, map[string][]float64{}, map[string][]float64{}}
	for name, w := range weights {
		g.grads[name] = make([]float64, len(w))
		for _, v := range w {
			g.abs[name] = append(g.abs[name], math.Abs(v))
		}
	}
	for n, x := range images {
		exact, abs := [][]float64{x}, [][]float64{x} // inputs by stage, the logits last
		for i := range m.Stages {
			y, my := g.forward(&m.Stages[i], exact[i], abs[i])
			exact, abs = append(exact, y), append(abs, my)
		}
		last := len(m.Stages)
		d := logitMagnitudes(exact[last], slices.Max(abs[last]), int(labels[n]), len(images))
		for i := last - 1; i >= 0; i-- {
			d = g.backward(&m.Stages[i], exact[i], abs[i], d)
		}
	}
	return g.grads
}

// logitMagnitudes is M of the gradient of the logits z.
func logitMagnitudes(z []float64, top float64, label, batch int) []float64 {
	sum, p := 0.0, make([]float64, len(z))
	for i := range z {
		p[i] = math.Exp(z[i] - slices.Max(z))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
		off := p[i]
		if i == label {
			off = 1 - p[i]
		}
		p[i] = (off + 2*p[i]*(1-p[i])*top) / float64(batch)
	}
	return p
}

// forward gives a layer's outputs for one sample, and their M.
func (g *magnitudes) forward(s *nn.Stage, x, mx []float64) (y, my []float64) {
	y, my = make([]float64, product(s.Out)), make([]float64, product(s.Out))
	switch {
	case len(s.Params) > 0:
		perBias := len(y) / s.Out[0]
		w, abs := g.weights[s.Params[0].Name], g.abs[s.Params[0].Name]
		for i := range y {
			y[i], my[i] = g.weights[s.Params[1].Name][i/perBias], g.abs[s.Params[1].Name][i/perBias]
		}
		terms(s, func(out, weight, in int) {
			y[out] += w[weight] * x[in]
			my[out] += abs[weight] * mx[in]
		})
	default:
		selected(s, x, func(out, in int) { y[out], my[out] = x[in], mx[in] })
	}
	return y, my
}

// backward adds M of the gradients of a layer's weights for one sample, d being that of
// its outputs, and returns that of its inputs.
func (g *magnitudes) backward(s *nn.Stage, x, mx, d []float64) []float64 {
	dx := make([]float64, len(x))
	if len(s.Params) == 0 {
		selected(s, x, func(out, in int) { dx[in] += d[out] })
		return dx
	}
	perBias := len(d) / s.Out[0]
	for i := range d {
		g.grads[s.Params[1].Name][i/perBias] += d[i]
	}
	abs, dw := g.abs[s.Params[0].Name], g.grads[s.Params[0].Name]
	terms(s, func(out, weight, in int) {
		dw[weight] += d[out] * mx[in]
		dx[in] += abs[weight] * d[out]
	})
	return dx
}

// terms visits every product that a layer adds up for one sample.
func terms(s *nn.Stage, visit func(out, weight, in int)) {
	c, ok := s.Layer.(layers.Conv2D)
	if !ok {
		for o := range s.Out[0] {
			for i := range s.In[0][0] {
				visit(o, o*s.In[0][0]+i, i)
			}
		}
		return
	}
	channels, height, width, rows, columns := s.In[0][0], s.In[0][1], s.In[0][2], s.Out[1], s.Out[2]
	for weight := range product(s.Params[0].Shape) { // (f, c, k, k)
		p, q := weight/c.Kernel%c.Kernel-c.Pad, weight%c.Kernel-c.Pad
		channel, filter := weight/(c.Kernel*c.Kernel)%channels, weight/(c.Kernel*c.Kernel*channels)
		for r := range rows {
			for col := range columns {
				if i, j := r*max(c.Stride, 1)+p, col*max(c.Stride, 1)+q; i >= 0 && i < height && j >= 0 && j < width {
					visit((filter*rows+r)*columns+col, weight, (channel*height+i)*width+j)
				}
			}
		}
	}
}

// selected visits, for a layer without weights, the outputs that are one of the inputs:
// all but the zeros of a ReLU. The windows of a max-pool do not overlap.
func selected(s *nn.Stage, x []float64, visit func(out, in int)) {
	pool, pools := s.Layer.(layers.MaxPool)
	_, rectifies := s.Layer.(layers.ReLU)
	for out := range product(s.Out) {
		in := out
		if pools {
			rows, columns := s.Out[1], s.Out[2]
			corner := (out/(rows*columns)*s.In[0][1]+out/columns%rows*pool.Size)*s.In[0][2] + out%columns*pool.Size
			in = corner
			for k := range pool.Size * pool.Size {
				if at := corner + k/pool.Size*s.In[0][2] + k%pool.Size; x[at] > x[in] {
					in = at
				}
			}
		}
		if !rectifies || x[in] > 0 {
			visit(out, in)
		}
	}
}

func product(shape []int) int {
	n := 1
	for _, e := range shape {
		n *= e
	}
	return n
}

// TestMagnitudesOfOneNeuron: two pixels 1/2 and 1/4, two classes with weights
// (1, -2) and (-3, 4) and no biases. The logits are 0 and -1/2, M_z = (1, 5/2). With
// p = 1/(1+e^(-1/2)) for the first, which is the label, both p·(1-p) and |p - label| are the same for
// both logits, so M = (1-p) + 2p(1-p)·5/2 for a bias, half of it and a quarter for weights.
func TestMagnitudesOfOneNeuron(t *testing.T) {
	m := must.Get(nn.New("neuron", []int{2}, layers.Dense{Outputs: 2}))(t)
	w, b := m.Parameters()[0].Name, m.Parameters()[1].Name
	got := gradientMagnitudes(m, map[string][]float64{w: {1, -2, -3, 4}, b: {0, 0}}, [][]float64{{0.5, 0.25}}, []int32{0})
	p := 1 / (1 + math.Exp(-0.5))
	bias := 1 - p + 5*p*(1-p)
	for name, want := range map[string][]float64{w: {bias / 2, bias / 4, bias / 2, bias / 4}, b: {bias, bias}} {
		for i := range want {
			if math.Abs(got[name][i]-want[i]) > 1e-15 {
				t.Errorf("%s[%d]: %g, want %g", name, i, got[name][i], want[i])
			}
		}
	}
}
