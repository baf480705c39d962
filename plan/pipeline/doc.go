// Package pipeline plans steps that overlap as a pipeline: a worker has tasks of several steps in progress.
//
// Read first: [Model.Plan]. For tasks with a place it finds the order, the lags and the versions of buffers.
//
// # Periods
//
// In each period a worker runs each of its tasks once, some of them of earlier steps ([schedule.Plan.Lags]). No period is shorter
// than the work of a worker, or than what a link has to carry in a step. [Model.Plan] makes plans of that period: the tasks of a
// worker have fixed times within the period, one after the other, and a task waits for the first of its times after the arrival of
// its operands. So any place of the tasks has such a plan, if only enough steps may be in progress. The phases of the workers
// against each other are chosen so that few bytes are kept for later periods.
//
// Tasks cannot overlap so where they read contents of the step before, written in place. Where the lags contradict the graph the plan has none, and
// steps follow each other as far as the graph lets them.
//
// # Units
//
// Times are nanoseconds. Bytes are int64.
//
// # Sources
//
// Rau, Iterative modulo scheduling, International Journal of Parallel Programming 24, 1996. A loop there is a graph here,
// and an operation a task. With fixed times in each list no operation is moved again.
//
// # Limits
//
// Copy engines and the sharing of links between transfers at one time are left out: a transfer takes some times as long as it would on an idle
// route. So the simulated period may be longer. Memory is not bounded.
package pipeline
