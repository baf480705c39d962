// Package explain says why a schedule is as long as it is: the cause of every idle gap, the
// critical path through tasks, transfers, changes of state and resources, and how well the durations of a
// prediction are known.
//
// Read first: [Idles], then [CriticalPath].
//
// # Invariants
//
//   - problem and schedule belong together, as [audit.Check] verifies
//   - gaps and spans of a worker tile the run exactly; so do the steps and waits of the path
//
// # Limits
//
// The causes explain one schedule. Without the wait that a cause names, the task might have waited for something
// else. A wait for power below a cap is in "dispatch", or where a change of the
// clock follows it, in that: the schedule does not tell it apart.
package explain
