package kerneltest

import "math"

// absolute is the bounds of operations with exponentials and logarithms, by operand and
// element: nil, or an empty entry, where bits must be equal or sums decide. want has the
// results of the reference, inputs are those that [Case.Fill] draws.
//
// Exponentials of a variant err by at most 4u, and of the reference, math.Exp
// rounded to the type, by less than 2u: they differ by at most δ = 6u. Logarithms of a
// variant err by 4u, and of the reference by 2u.
//
// softmax: both variants add c exponentials, so the sums differ by at most
// 2γ_c + δ, p = e/s by (2γ_c + 2δ + 2u)·p ≤ 2γ_c + 2δ + 2u, and dz, with two roundings
// more in each variant of numbers of at most 1, by (2γ_c + 2δ + 6u)/B. The loss differs
// as log s does, by the relative difference of s, and by logarithms and roundings:
// 8u·(log s + |z_y - m|), where s ≤ c and z is within -1 and 1. Label smoothing by σ subtracts
// σ/c from p, one rounding more in each variant, and takes σ/c·Σ(z_c - m) from the loss. That is at
// most 2σ, of a sum of c terms and three roundings more, so that it differs by 2γ_(c+3)·2σ.
//
// A weight of at most 3/2 multiplies gradients and losses, and rounds once more.
//
// clip: the sum of n squares of a variant, in float64, errs by n·2⁻⁵³ of itself, its root by half of
// that, and the factor by four roundings more.
//
// mse: the loss is the mean of c squares of at most 2² each. It differs by 2γ_(c+3)·4, with the
// subtraction counted twice, the square and the division. The gradient is computed element by
// element in all variants.
func absolute(c, want *Case, bits int) [][]float64 {
	u := UnitRoundoff(c.Spec.Type)
	bounds := map[string]func(want float64) float64{}
	classes := func() float64 { return float64(c.Spec.Operands[c.Operand("z")].Shape[1]) }
	gamma := func(n float64) float64 { return n * u / (1 - n*u) }
	smoothed := 0.0
	if smoothing, ok := c.Spec.Params.Get("smoothing"); ok && c.Operand("z") >= 0 {
		smoothed = 4 * smoothing * gamma(classes()+3)
	}
	constant := func(v float64) func(float64) float64 { return func(float64) float64 { return v } }
	switch c.Kernel.Op {
	case "softmax_xent", "softmax_xent.eval":
		sum := 2 * gamma(classes())
		if batch, ok := c.Spec.Params.Get("batch"); ok {
			bounds["dz"] = constant(1.5 * (sum + 21*u) / batch)
		}
		bounds["loss"] = constant(1.5 * (sum + 6*u + 9*u*(math.Log(classes())+2) + smoothed))
	case "mse", "mse.eval":
		bounds["loss"] = constant(8 * gamma(classes()+3))
	case "clip":
		sums := float64(c.Spec.Operands[c.Operand("s")].Shape[0])
		bounds["clipped"] = func(want float64) float64 { return 2 * (sums + 6) * 0x1p-53 * want }
	default:
		if all := attentionBounds(c, bits); all != nil {
			return all
		}
		for _, bounds := range []func(*Case) [][]float64{functionBounds, rowNormBounds, rowsOfHeadsBounds, xentBounds, tableBounds} {
			if all := bounds(c); all != nil {
				return all
			}
		}
		return totalBounds(c, want)
	}
	all := make([][]float64, len(c.Buffers))
	for i := range c.Buffers {
		if bound := bounds[c.Kernel.Operands[i].Name]; bound != nil {
			for _, v := range want.Values(i) {
				all[i] = append(all[i], bound(v))
			}
		}
	}
	return all
}
