package kerneltest

import (
	"fmt"
	"math"

	"dahl/dag"
	"dahl/kernels"
)

// Errors of Winograd's algorithm. A tile of results is A' (Σ (G g G') ∘ (B' d B)) A, a sum over channels, or
// for gradients of filters G' (Σ (B' d B) ∘ (A z A')) G, a sum over tiles.
//
// Each transform of a line gives sums in which every value of the line occurs once, times a constant,
// and is rounded at most 5 times: with the constant, by products, and by sums. So a transform of a
// tile rounds 10 times, and (Higham, section 3.1) errs by at most γ₁₀|T||x||T|'. Of the domain's
// product each term has been rounded 10 times on either side, it is rounded itself, the sum adds n
// more, and the last transform 10. Bias and old contents are two more. So a result errs by at most
//
//	γ·|A'| (Σ |G||g||G|' ∘ |B'||d||B|) |A|    γ = n'u/(1-n'u), n' = n + 33
//
// where n is the terms of the sum, u half the distance of 1 and the next number. With all |g| ≤ w
// and |d| ≤ x this is at most γ·κ²·n·w·x for the amplification
//
//	κ = max_k Σ_i |A'|_ki (Σ_j |G|_ij) (Σ_j |B'|_ij)
//
// of one dimension. For gradients of filters the matrices change places. The points 0, ±5/8, ±3/2 and ∞
// have κ = 23.7, and 28.3 for gradients of filters; the usual 0, ±1, ±2 and ∞ have 48 and 53.3. With
// the terms of a direct convolution there are 3 in the place of κ, or 4.
// B. Barabasz et al., Error analysis and improving the accuracy of Winograd convolution for deep
// neural networks, ACM TOMS 46(4), 2020, derive such bounds by norms and choose points; K. Vincent et
// al., On improving the numerical stability of Winograd convolutions, ICLR workshop, 2017, by the
// condition of the matrices.

// inDomain is, by operation, the operands that meet in the domain, and whether their sum is a gradient of filters.
var inDomain = map[string]struct {
	operands [2]string
	filters  bool
}{
	"conv2d.nhwc":    {operands: [2]string{"x", "w"}},
	"conv2d.nhwc.dx": {operands: [2]string{"dy", "wt"}},
	"conv2d.nhwc.dw": {operands: [2]string{"dy", "x"}, filters: true},
}

// winogradTile is the rows and columns of results of a tile.
const winogradTile = 4

// winogradError bounds the error of a result.
func (c *Case) winogradError() float64 {
	call, ok := inDomain[c.Kernel.Base]
	if !ok {
		panic(fmt.Sprintf("kerneltest: inDomain has no line for %s", c.Kernel.Op))
	}
	most := [2]float64{}
	for i, name := range call.operands {
		for _, v := range c.Values(c.Operand(name)) {
			most[i] = max(most[i], math.Abs(v))
		}
	}
	shape := c.Spec.Operands[c.Operand(call.operands[0])].Shape
	terms := shape[3] // channels
	if call.filters {
		terms = shape[0] * tiles(shape[1]) * tiles(shape[2])
	}
	kappa := Amplification(WinogradPoints(), call.filters)
	nu := float64(terms+33) * UnitRoundoff(c.Spec.Type)
	return nu / (1 - nu) * kappa * kappa * float64(terms) * most[0] * most[1]
}

func tiles(pixels int) int { return (pixels + winogradTile - 1) / winogradTile }

// WinogradPoints are the points at which polynomials are evaluated, without ∞.
func WinogradPoints() [5]float64 { return [5]float64{0, 0.625, -0.625, 1.5, -1.5} }

// Amplification is κ for some points and ∞, of results or of gradients of filters. The matrices of
// Cook and Toom are: with n the product of p-r over the other points r, point p has the row
// (1, p, p²)/n of G, the column (1, p, p², p³) of A', and in B' the coefficients of the product of
// the x-r. The point ∞ has (0, 0, 1), (0, 0, 0, 1) and the coefficients of the product over all points.
func Amplification(points [5]float64, filters bool) float64 {
	sums := func(values []float64) (sum float64) {
		for _, v := range values {
			sum += math.Abs(v)
		}
		return sum
	}
	var results [4]float64 // by column of A
	var gradients [3]float64
	add := func(g, a, b []float64) {
		for k, v := range a {
			results[k] += math.Abs(v) * sums(g) * sums(b)
		}
		for k, v := range g {
			gradients[k] += math.Abs(v) * sums(a) * sums(b)
		}
	}
	for i, p := range points {
		others, n := []float64{1}, 1.0
		for j, r := range points {
			if j != i {
				others, n = timesRoot(others, r), n*(p-r)
			}
		}
		add([]float64{1 / n, p / n, p * p / n}, []float64{1, p, p * p, p * p * p}, others)
	}
	all := []float64{1}
	for _, p := range points {
		all = timesRoot(all, p)
	}
	add([]float64{0, 0, 1}, []float64{0, 0, 0, 1}, all)
	if filters {
		return max(gradients[0], gradients[1], gradients[2])
	}
	return max(results[0], results[1], results[2], results[3])
}

// timesRoot multiplies a polynomial by x - root, coefficients in ascending order.
func timesRoot(polynomial []float64, root float64) []float64 {
	product := append([]float64{0}, polynomial...)
	for i, v := range polynomial {
		product[i] -= root * v
	}
	return product
}

// winogradBound adds the error of Winograd's algorithm to a bound of operand i. Sums over pixels, of biases, are not
// in the domain.
func (e *Expected) winogradBound(i int, bound func(int) float64) func(int) float64 {
	if bound == nil {
		return nil
	}
	own := 0.0
	if name := e.ref.Kernel.Operands[i].Name; len(e.ref.Spec.Operands[i].Shape) == 4 {
		own = 1.01 * e.ref.winogradError()
	} else if name == "s" || name == "q" {
		own = e.momentError(name)
	}
	return func(j int) float64 { return bound(j) + own }
}

// momentError bounds the error of a moment over n pixels of results y that err by up to e. Their sum errs by n·e, and by
// γₙ of n times the largest that a result can be. A deviation from the mean is at most d = 2·max|y|, and errs by
// 2e, so that its square errs by 2e·(2d + 2e); the sum of squares does n times that, and its roundings,
// of a mean, a difference, a product and the sum, are γ of n + 8 of squares of at most d + 2e.
func (e *Expected) momentError(name string) float64 {
	own, most, y := 1.01*e.ref.winogradError(), 0.0, e.ref.Operand("y")
	for _, v := range e.ref.Values(y) {
		most = max(most, math.Abs(v))
	}
	shape := e.ref.Spec.Operands[y].Shape
	n := float64(shape[1] * shape[2])
	nu := (n + 8) * UnitRoundoff(e.ref.Spec.Type)
	rounded, d := 1.01*nu/(1-nu), 2*most
	if name == "s" {
		return n*own + rounded*n*(most+own)
	}
	return n*4*own*(d+own) + rounded*n*(d+2*own)*(d+2*own)
}

// comparePooled compares maxima of a convolution on small integers, whose sums are exact in the reference.
// Winograd's are not. So the sum at the position of a maximum may be less than the greatest of its window by
// the errors of both. Where they are smaller than a half, it is one of the greatest.
func (e *Expected) comparePooled(got *Case) error {
	limit := 1.01 * e.ref.winogradError()
	sums, height, width := e.ref.unpooled()
	size, step := e.ref.Value("size"), e.ref.Value("step")
	y, index, want := got.Values(0), got.Values(1), e.ref.Values(0)
	pooled := e.ref.Spec.Operands[0].Shape
	j := 0
	for n := range pooled[0] {
		for p := range pooled[1] {
			for q := range pooled[2] {
				for f := range pooled[3] {
					at, sum := int(index[j]), 0.0
					if at != noMaximum {
						u, v := p*step+at/size, q*step+at%size
						sum = sums[((n*height+u)*width+v)*pooled[3]+f]
					}
					if !(math.Abs(y[j]-want[j]) <= limit) || !(sum >= want[j]-2*limit) || (at == noMaximum) != (y[j] == 0) {
						return fmt.Errorf("[%d] is %g from position %g, where the sum is %g; ref gives %g", j, y[j], index[j], sum, want[j])
					}
					j++
				}
			}
		}
	}
	return nil
}

// unpooled is the sums of a convolution that is pooled, and their rows and columns.
func (c *Case) unpooled() (sums []float64, height, width int) {
	pooled := c.Spec.Operands[0].Shape
	covered := func(n int) int { return (n-1)*c.Value("step") + c.Value("size") }
	height, width = covered(pooled[1]), covered(pooled[2])
	k, err := kernels.KernelByName("conv2d.nhwc")
	if err != nil {
		panic("kerneltest: " + err.Error())
	}
	params := dag.Params{{Name: "relu", Value: 0}}
	for _, p := range c.Spec.Params {
		if p.Name != "size" && p.Name != "step" {
			params = append(params, p)
		}
	}
	shapes := [][]int{{pooled[0], height, width, pooled[3]}}
	for _, o := range c.Spec.Operands[2:] {
		shapes = append(shapes, o.Shape)
	}
	conv := New(k, c.Spec.Type, shapes, FirstModes(k)[:len(shapes)], params, 0)
	for i := 1; i < len(shapes); i++ {
		values := c.Values(i + 1)
		conv.Set(i, func(j int) float64 { return values[j] })
	}
	conv.Run(&k.Variants[0])
	return conv.Values(0), height, width
}
