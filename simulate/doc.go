// Package simulate runs a graph on a described machine: a discrete-event
// simulation that supplies time to the state machine of package schedule.
//
// Read first: [Run]. The event queue is in run.go, the sharing of links in
// flow.go, with its theory and a worked system at the top.
//
// # Invariants
//
//   - events are ordered by time, then kind, then the rank of the task's name,
//     then step; never by insertion or address, so equal input gives equal output
//   - a worker runs one task at a time; [schedule.Pace] says when each kernel starts
//     and how long it takes
//   - a transfer waits for the latencies of its links and then shares their
//     bandwidth max-min fairly with all others; when it may start is the Engine's
//     decision, which knows copy engines and capacities
//
// # Units
//
// Times are time.Duration from the start of the run. Rates are solved in float64
// and become times in one function, which rounds up.
//
// # Limits
//
// A device runs at the clock in force; its other clocks are for planners. Streams are
// noted and not modelled: a unit runs one task at a time, beside its copies. A link
// serves any number of transfers at once.
package simulate
