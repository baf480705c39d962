// Package clocks chooses the clocks of a plan whose tasks stay where they are, in their order: for the least time, the least joules, or the
// least product of both, and by a deadline.
//
// Read first: [Graph], then [Clocks.Choose]; the linear program is in program.go, what is made of its fractions in search.go.
//
// # The linear program
//
// A step follows the other after a period T. A task i starts at s_i and takes d_i ns, as long as at its fastest clock or longer. A
// wait lets a task start no sooner than some time after the end of another one, in its step or some steps before. The machine draws P watts
// at any time, and a task E_i joules more, the fewer the longer it takes:
//
//	minimise  P·T + Σ E_i(d_i)   where   s_j ≥ s_i + d_i + delay − back·T  for each wait,   T ≤ deadline
//
// E_i is the lower convex hull of the time and the joules of the clocks. So a fraction of two neighbouring clocks stands for a time
// between theirs, and the minimum is no more than any clocks take. A step that runs alone has a task without work: the
// first tasks wait for it, and it waits for the last ones, a step later.
//
// A worked example. Two tasks, one after the other, take 10 ns and 20 J at one clock, or 20 ns and 10 J at the other; P is 0. By 30 ns the
// least is 30 J: one of them is slow, or both take 15 ns. By 25 ns it is 35 J, with a fraction; without, it is 40 J.
//
// The least joules are a convex function of the deadline, piecewise linear. Its corners are found by tangents: the tangents of two
// corners meet at or below another corner, or there is none between.
//
// # Rounding
//
// Tasks get the clock below their time, or one a little above it and then faster ones until the period holds, from points of a few
// longer periods. What the period leaves is filled by slower clocks. Exchanges make one task faster and others slower; at last at
// random (iterated local search). All of them are judged by the longest path alone. For the least joules branch and bound goes on: it forbids a task
// the times between two of its clocks, the part with the least bound first. That raises the bound, and where no part is left the clocks
// are the best.
//
// # Invariants
//
//   - equal input gives equal clocks, unless the context ends before
//   - times are whole nanoseconds, and the clocks keep the deadline exactly; only bounds come from floating-point numbers, and are stated lower
//     by a relative 1e-7
//
// # Sources
//
//   - J.-W. Chung, Y. Gu, I. Jang, L. Meng, N. Bansal, M. Chowdhury, Reducing Energy Bloat in Large Model Training, SOSP 2024: the same front by
//     minimum cuts of critical tasks (Perseus)
//   - D. R. Fulkerson, A Network Flow Computation for Project Cost Curves, Management Science 7(2), 1961
//   - W. Dinkelbach, On Nonlinear Fractional Programming, Management Science 13(7), 1967: the period, from chains of waits that are too
//     long for a shorter one
//   - H. R. Lourenço, O. C. Martin, T. Stützle, Iterated Local Search, Handbook of Metaheuristics, 2003
//
// # Limits
//
// Common clocks of several units, times and joules of changes, and transfers that wait for each other are not known here. Package
// improve simulates the chosen clocks.
package clocks
