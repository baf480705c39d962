// Package ready says which tasks can start: it counts what each still waits for while a loop
// runs, and orders tasks. It knows neither times nor devices.
//
// Read first: [Steps]. It serves whoever runs a loop: package schedule's Engine and Lists, and the
// estimate of package place. [Heap] orders events for the same users, [Sort] the tasks of one step.
//
// # Invariants
//
//   - A task starts only when its predecessors have ended: those of its own step, those of the step
//     before through links that carry, those of the last step that used the same copy of a buffer,
//     and those of the orders that a run adds.
//   - At most eight steps are in progress. State is kept for as many more as links reach back.
//   - Each instance is released once, and only then counts as ready.
package ready
