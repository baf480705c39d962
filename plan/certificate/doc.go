// Package certificate proves lower bounds on what any plan of a graph on some devices takes, in time
// or in energy, and checks such proofs in exact arithmetic. It imports neither the search for plans
// nor a solver of linear programs: whoever found the multipliers of a proof need not be trusted.
//
// Read first: [Model], what a bound is about; then [Row], the inequalities that hold for every plan. In pool.go, period.go, spread.go
// and tied.go are those rows that count whole tasks; [Proof.Bound]; and [Condition], which splits all plans in parts with proofs
// of their own. A [Certificate] has such proofs for all choices of a space, and
// [Certificate.Check] proves them again and verifies that no plan is left out. A certificate may also have a bound for all lowerings of a network on all sets of
// devices, see package shares.
//
// # Why a proof is one
//
// Every plan gives a point: the share of each task on each device and clock (0 or 1), start times, the makespan, the time of
// each device awake, and the versions of data in each memory.
// The point fulfils every row a·x ≥ b of the model, and each of its columns lies in an interval
// [l, u]. Its objective c·x is no more than the plan's. So for any multipliers y, with y ≥ 0 for inequalities,
//
//	c·x = y·(A·x) + (c − y·A)·x ≥ y·b + Σ_j min over x_j in [l_j, u_j] of (c − y·A)_j x_j
//
// whatever y is. The right side is computed in rational numbers from the very floating-point numbers
// of y, A, b and c. What rounding left in a reduced cost (c − y·A)_j so costs its column's interval, and
// no more.
//
// A worked example. Tasks a and b of 3 ns and 4 ns, b after a, on one device. Rows: S_b − S_a − 3y_a
// ≥ 0, T − S_b − 4y_b ≥ 0, y_a = 1, y_b = 1, all S ≥ 0. With multipliers 1, 1, 3, 4 the left sides
// add up to T − S_a, so T ≥ 7 + S_a ≥ 7.
//
// # Units
//
// Times are nanoseconds, energies nanojoules (watts times nanoseconds).
//
// # Sources
//
// Neumaier, Shcherbina, Safe bounds in linear and mixed-integer programming, Mathematical Programming
// 99, 2004. Applegate, Cook, Dash, Espinoza, Exact solutions to linear programming problems,
// Operations Research Letters 35, 2007.
//
// # Limits
//
// A plan is lists that the units go through, step by step: plans with lags, whose periods mix steps, have no certificate. A run keeps all orders of the graph, as
// simulated ones do. Bytes that cross the edge of a node add up for tasks with a place alone (Cross). Tasks without
// a place are tied to each other, or count nothing there (Tied). A model does not ask how many copies of a buffer there are: a step waits for the one before
// by what it reads of it alone. Sleep and power caps only take away from what a plan may do or are counted as the least power of a state. Of
// more than a few thousand tasks nothing is proved by counting whole ones.
package certificate
