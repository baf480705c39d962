// Package ready says which tasks can start: it counts the predecessors that each still waits for while a loop runs,
// and orders tasks. It knows neither times nor devices.
//
// Read first: [Steps]. It serves whoever runs a loop: package schedule's Engine and Lists, and the
// estimate of package place. [Heap] orders events for the same users, [Sort] the tasks of one step.
//
// # Invariants
//
//   - A task starts only when its predecessors have ended: in its own step, through links that carry in the step
//     before, by the reuse of a buffer's version in an earlier step, and by the orders of a run.
//   - At most eight steps are in progress, or as many as a plan with lags needs. State is kept for as many more as links reach back.
//   - Each instance is released once, and only then counts as ready.
package ready
