// Package execute runs the graphs of a program on the CPU cores of this machine, and on devices with
// memories of their own.
//
// Read first: [New] and [Runner.Run]. New takes a [schedule.Decision] for a platform that is this
// machine ([Runnable]); [Target] says which kernels the decision may use. New reserves all
// memory, binds every task to its bytes and compiles every plan into lists. Run then decides
// nothing: with a plan each worker replays its list; without one [policy.Engine] asks the
// policy, under one lock. Both give a measured [schedule.Schedule]. [Detect] describes this
// machine; package calibrate measures it.
//
// # Workers
//
// Worker i of the platform is one goroutine. It is locked to its thread and pinned to an allowed
// CPU; the first workers get different physical cores. It lives from New to Close and sleeps
// between runs. A wait spins for at most 50 µs and then parks, so that the rest of the process
// keeps running with as many workers as cores.
//
// A task without an operation is a point in the order of others: it is ordered and recorded, and
// does nothing.
//
// # Devices
//
// The decision has placed a plan for several memories ([place.Program]): copies are tasks, and
// every worker and every copy engine is a lane with a list. A cpu worker runs its own lane. The
// lanes at any other memory are streams of one device. One goroutine issues to all of them
// (device.go) through the interface of package driver, which the emulated device and CUDA implement.
//
// The goroutine issues a task when two conditions hold. All predecessors elsewhere have ended, by
// their counts. All predecessors on the same device have been issued; the device itself waits for
// those, by events. The goroutine asks for the events that end tasks and publishes the counts of
// its lanes. It never waits for one lane only, and inside a step nothing waits for the device as
// a whole.
//
// A run without a record issues more at once. Neighbouring tasks of a lane form one batch
// (batches.go) if only the first waits for other lanes and others wait only for the last. A batch
// needs one event, and where it pays, it is one captured graph. The lists, and so the results,
// are the same. Such a run also drops the orders from step to step that memories with instances
// of their own do not need ([place.Graph].MemoryReuseNext). So the next samples are fed while a
// device still works on this step.
//
// Before the first step, a run moves the contents that a memory reads before a step writes them.
// After the last step, it moves contents home. Between runs the host's memory has valid
// parameters. Hooks run on cpu workers. An emulated device runs the kernels of CPUs, so weights
// are the same to the last bit wherever tasks run. The race detector sees its streams as
// goroutines, and so finds a missing order.
//
// # Ranks
//
// Several processes may run a program together, one for each node of a cluster ([Ranks]). Each binds and runs the lanes of its
// node. A transfer between nodes is on a lane of its own (rankplan.go): the rank of the source waits for the transfer's predecessors and sends,
// and the rank of the destination receives into place. Predecessors on other nodes are waited for by their lanes' counts as
// all others are, so a rank sends the counts that another one waits for. Rank 0 starts every run, sends the other nodes the changed part of the state that they
// use (rankstates.go), and grants steps. So the last step is known everywhere when its gate closes.
//
// # Clocks
//
// Each device times its tasks by its own clock, with events before and after them. Package align
// puts these times on the clock of the run. It also ensures that no effect seems to come before
// its cause.
//
// # Memory
//
// New allocates the arenas once, in huge pages where the system gives them. A worker writes every
// page before New returns, so no step waits for the system to find and clear memory.
//
// Where buffers exist several times, step k works on number k modulo the copies of each. A task is
// bound once for each step until it works on the same copies of all its operands again.
//
// # Why the waits are enough
//
// All lanes wait in the way of the workers below. Worker u counts the tasks it has ended since
// the run began and publishes the count with one atomic store after each. In step s, the task at
// position p of its list of n has ended exactly when the count is at least s·n + p + 1. A task
// that follows it by d steps therefore waits for the count s·n + (p + 1 − d·n). Only the largest such number per
// worker matters, because the count never falls. Here d is 0 within a step, 1 for a carried storage, and
// the number of versions for a storage in turn. A wait is dropped if an earlier task of the same
// list, or the last pass over the list, has already made it.
//
// In a plan with lags the passes over the lists are periods: in period k a task with lag l works on step k − l, or rests where there is no such step, and is counted
// in any case. A predecessor d steps back with lag m is then d + l − m periods back. Tasks that rest make their waits, too.
// A batch of a device has tasks of one lag, and while it rests the device issues its event alone.
//
// Go's atomics are sequentially consistent and synchronise: a load that sees a store sees
// everything the storing goroutine wrote before it. A predecessor's kernel writes before its
// store, and the reader's kernel follows the load, so the bytes are visible. Reuse is safe by the
// same argument the other way round: a reader's loads precede its own store, and the load before the
// overwriting kernel saw this store.
//
// A waiter announces itself and then looks at the count again before it parks. A publisher stores
// the count and then looks for announced waiters. In a sequentially consistent order one of the
// two comes second and sees the other, and a parker keeps a wake-up that comes before its park.
// So no wake-up is lost, and a superfluous one costs one more look.
//
// # Invariants
//
//   - A steady step allocates nothing, starts no goroutine, and takes no lock (plans) or one lock
//     (policies).
//   - A failing or panicking kernel or hook ends the run. The error names the task, and no other
//     worker is left waiting.
//   - Equal graphs and variants give equal bits, whatever the workers and the order.
//
// # Units
//
// Times are time.Duration on the monotonic clock from the start of the run; bytes are int64.
package execute
