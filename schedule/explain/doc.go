// Package explain says why a schedule is as long as it is: the cause of every idle gap, the
// critical path through tasks, transfers and resources, and how far the durations that a
// prediction rests on are known.
//
// Read first: [Idles], then [CriticalPath].
//
// # Invariants
//
//   - problem and schedule belong together, as [schedule.Schedule.Check] verifies
//   - gaps and spans of a worker tile the run exactly; so do the steps and waits of the path
//
// # Limits
//
// The causes are those of one schedule: without the wait that it names, a task might have
// waited for something else.
package explain
