// Package execute runs the graphs of a program on the CPU cores of this machine, and on
// devices with memories of their own beside them.
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
// # Devices
//
// A plan for several memories is compiled by [schedule.Place]: copies become tasks, and
// every worker and every copy engine is a lane with a list. A lane of a cpu worker is run
// by the worker. The lanes at any other memory are streams of one device, and one
// goroutine issues to them all (device.go), through the interface driver, which the
// emulated device and CUDA implement. It issues a task when what the task waits for
// elsewhere has been counted and what it waits for on the same device has been issued; the
// latter wait is left to the device, as an event. It asks for the events that end
// tasks, publishes its lanes' counts, and never waits for one lane only. Inside a step nothing
// waits for the device as a whole.
//
// Where tasks are timed, that is all. In a run without a record, neighbouring tasks of a lane
// that wait for nobody between them, and of which others wait for the last only, are issued
// as one batch (batches.go): one event for all, and where it pays, one captured graph.
// The lists and so the results are the same. Such a run also drops the orders from step to
// step that memories with instances of their own do not need ([schedule.PlacedGraph].RoomNext),
// so that the next batch is fed while a device is still at work on this one.
//
// Before the first step of a run moves what a memory reads before a step writes it, and
// after the last one what has to be at home; between runs parameters are valid in the
// host memory. Hooks run on cpu workers. Kernels on an emulated device are those of
// CPUs, so that the weights are the same to the last bit wherever tasks run; the race
// detector sees its streams as goroutines, and with them an order that is missing.
//
// # Policies on devices
//
// Where a policy decides at run time on several memories (dynamic.go, orders.go,
// demand.go), every storage has a place in every memory that may want it, bound to every
// task and worker before the run: a step binds and reserves nothing. A memory that cannot
// hold all has storages share bytes ([schedule.LayoutOnDemand]), so that what it can come
// to hold is known before the run, and no gap between storages can make it fail. The
// Engine sees to it that of those that share bytes one at a time is there; what is in
// the way goes home first where nobody else has it.
//
// The Engine hears of an end when the host has seen it, and commands only what waits for
// nothing any more, but for the task before it on its worker's stream. So what a kernel reads has come before it is issued, what it reads
// is not freed before it has ended, and streams wait for no events. One thing outlives
// what the Engine knows: a copy whose contents are of use to nobody any more, since they
// were written again, or had their last use, while they moved. Until it has ended no
// task starts to write its atoms, in any memory, nor anything that shares bytes with them
// where it reads or writes; that holds for the host's memory too, whose layout has
// storages share bytes by their order alone.
//
// Before the first step comes what no task writes, and after the last one goes home what
// storages keep from step to step and only a device has.
//
// # Clocks
//
// Tasks on a device are timed by its own clock, between events before and after them. How
// those times come to lie on the clock of the run, and why no effect ever seems to come
// before its cause, is in deviceclock.go.
//
// # Memory
//
// The arenas are allocated once, in huge pages where the system gives them, and every
// page is written by a worker before New returns, so that no step waits for the system
// to find and clear memory.
//
// # Why the waits are enough
//
// What is said of workers holds for all lanes. Worker u counts the tasks it has ended since
// the run began and publishes the count with one atomic store after each. In step s, the
// task at position p of its list of n has ended exactly when the count is at least s·n + p + 1. A task
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
// and a parker keeps a wake-up that comes before its park. So no wake-up is lost, and a
// superfluous one costs one more look.
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
