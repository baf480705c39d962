// Package execute runs the graphs of a program on the CPU cores of this machine.
//
// Read first: [New] and [Runner.Run]. New lays all memory out, binds every task
// to its bytes and compiles every plan into lists; Run only replays. With a
// [schedule.Plan] each worker follows its list; without one a policy decides at
// run time through [schedule.Engine], under one lock. Both give a measured
// [schedule.Schedule]. [Detect] describes this machine, [Calibrate] and
// [CalibrateInSitu] measure it, and [NullRun] drives the Engine by the model's
// clock alone.
//
// # Workers
//
// Worker i of the platform is one goroutine, locked to its thread and pinned to
// one of the allowed CPUs, first one per physical core. It lives from New to
// Close and sleeps between runs. A wait spins for at most 50 µs and then parks,
// so that the rest of the process keeps running with as many workers as cores.
//
// A task without an operation is a point in the order of others: it is ordered,
// recorded, and does nothing.
//
// # Memory
//
// The arenas are allocated once, in huge pages where the system gives them, and every
// page is written by a worker before New returns, so that no step waits for the system
// to find and clear memory.
//
// # Why the waits are enough
//
// Worker u counts the tasks it has ended since the run began and publishes the
// count with one atomic store after each. In step s, the task at position p of
// its list of n has ended exactly when the count is at least s·n + p + 1. A task
// that follows it by d steps (0: same step, 1: carried or reused storage)
// therefore waits for the count s·n + (p + 1 − d·n); only the largest such number
// per worker matters, because the count never falls. A wait that an earlier task
// of the same list has already made, or the last pass over the list has, is
// dropped: what has been reached stays reached.
//
// Go's atomics are sequentially consistent and synchronise: a load that sees a
// store sees everything the storing goroutine wrote before it. The kernel's
// writes precede the store, the reader's kernel follows the load, so the bytes
// of a predecessor are visible. Reuse is safe by the same argument the other way
// round: a reader's loads precede its own store, the overwriting kernel follows
// the load that saw it.
//
// A waiter announces itself and then looks at the count again before it parks; a
// publisher stores the count and then looks for announced waiters. In a
// sequentially consistent order one of the two comes second and sees the other,
// and a parker keeps a wake-up that comes before its park. So no wake-up is lost, and a superfluous one costs one more look.
//
// # Invariants
//
//   - a steady step allocates nothing, starts no goroutine and takes no lock
//     (static plans) or one lock (policies)
//   - a failing or panicking kernel or hook ends the run with the task named and
//     never leaves another worker waiting
//   - equal graphs and variants give equal bits whatever the workers and the order
//
// # Units
//
// Times are time.Duration on the monotonic clock from the start of the run, bytes
// int64.
package execute
