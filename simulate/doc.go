// Package simulate runs a decided graph on a described machine. It is a discrete-event simulation
// that brings time to the state machines of package schedule.
//
// Read first: [Run]. It takes a [schedule.Decision]. A graph with a plan is replayed from lists
// ([schedule.Lists], lists.go); otherwise a policy decides through the Engine (policy.go). The
// event queue is in run.go. The sharing of links is in flow.go, with its theory and a worked
// system at the top.
//
// # Invariants
//
//   - Events are ordered by time, then kind, then the rank of the task's name, then step, never
//     by insertion or address. So equal input gives equal output.
//   - A worker runs one task at a time. [schedule.Pace] says when each kernel starts and how long
//     it takes.
//   - A transfer waits for the latencies of its links and then shares their bandwidth max-min
//     fairly with all others. Package schedule decides when it may start; it knows copy engines
//     and capacities.
//
// # Units
//
// Times are time.Duration from the start of the run. Rates are solved in float64; one function,
// which rounds up, turns them into times.
//
// # Limits
//
// A policy that decides at run time leaves every device at the clock in force; plans may change clocks between
// tasks. Streams are noted and not modelled: a unit runs one task at a time, and transfers at the same time.
// A link serves any
// number of transfers at once.
package simulate
