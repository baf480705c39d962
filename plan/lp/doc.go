// Package lp solves linear programs whose bounds are to be proved: to minimise c·x where every
// row keeps lo <= a·x <= hi and every column l <= x <= u. It knows nothing of graphs.
//
// Read first: [Problem] and [Solver.Solve]. Floating-point numbers decide nothing: the solver finds multipliers of the rows,
// and the caller adds up the lower bound that they prove, in rational numbers. The
// tests do (Bound, whose derivation stands above its code), and package certificate for its rows.
//
// # How it solves
//
// Every row gets a variable of its own that is its value (its logical), so that rows read
// Ax − r = 0 and only variables have bounds. A basis B is as many columns of [A −I] as there are
// rows. The other variables rest on a bound, and determine the variables of the basis. With y from
// Bᵀy = c the reduced costs are d = c − Aᵀy for columns and y itself for logicals. A basis is dual
// feasible if all that rest have d >= 0 on a lower bound and d <= 0 on an upper one. It is
// optimal if moreover the basic variables keep their bounds.
//
// The dual simplex goes from one dual feasible basis to the next. A basic variable outside its
// bounds leaves; among all, the one that is furthest outside along an edge of the dual polyhedron
// (steepest edge). Its reduced cost moves away from 0 by a step, and the others' along with
// the row of B⁻¹[A −I] that it stands at. The first to reach 0 enters. If that variable has two
// finite bounds, it may move to the other one instead, and the step goes on as long as the objective
// grows (bound flipping). Where none can enter, the row of B⁻¹ proves that no x exists.
//
// Costs are perturbed first, since many bases tie in problems with few costs. If the first basis, of all logicals, is not dual
// feasible, costs are shifted until it is. In the end the
// true costs return, and the primal simplex takes away what they leave wrong, mostly little. Rows
// that are added keep the basis dual feasible, and so do other bounds. So a solver goes on from
// where it ended.
//
// # An example
//
// Minimise 2x₁ + 3x₂ where x₁ + x₂ >= 4, 0 <= x₁ <= 3 and 0 <= x₂ <= 10. At first both x rest
// on 0, d = (2, 3), and the row's logical r = 0 lies 4 below its bound. The row of B⁻¹ is −1, so r
// leaves upwards: the step reaches 0 for d₁ at 2 and for d₂ at 3. The objective grows at a
// rate of 4 until d₁ is 0. Passing it moves x₁ to 3, after which 1 is left to gain, so the step
// goes on to 3. There x₂ enters, and passing it would cost 10. Now x = (3, 1) with the objective 9,
// y = 3 and d = (−1, 0). Adding up confirms 3·4 + (−1)·3 + 0 = 9; for y = 2 that gives
// 2·4 + 0 + 1·0 = 8, a weaker bound but as true.
//
// # Invariants
//
//   - equal input gives equal pivots and equal bits: neither time nor map order counts, and the
//     numbers that perturb are drawn from a fixed seed
//   - scales are powers of two, so that scaling rounds nothing
//
// # Sources
//
//   - Koberstein (2005), The Dual Simplex Method, Techniques for a Fast and Stable
//     Implementation: bound flipping with tolerances, perturbation, order of the steps
//   - Maros (2003), Computational Techniques of the Simplex Method: long steps of the dual
//   - Forrest & Goldfarb (1992), Steepest-edge simplex algorithms for linear programming
//   - Forrest & Tomlin (1972), Updated triangular factors of the basis
//   - Harris (1973), Pivot selection methods of the Devex LP code
//   - Suhl & Suhl (1990), Computing sparse LU factorizations for large-scale linear programming bases
//   - Neumaier & Shcherbina (2004), Safe bounds in linear and mixed-integer linear programming
package lp
