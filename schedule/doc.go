// Package schedule decides: which device runs a task, in which order, what moves
// where and when, and where in memory every buffer lies. It has no clock and no
// threads; package simulate supplies time and package execute supplies
// completions, and both obey the same state machine.
//
// Read first: [Problem], then [Engine] (the state machine), [Policy] (a dynamic
// scheduler), [Plan] (decisions written down) and [Schedule] (what ran).
// [Schedule.Check] re-derives everything from the graph and the platform alone.
// [Place] compiles plans for several memories into graphs in which copies are tasks;
// [LayoutOnDemand] gives storages places in them for policies that decide at run time.
//
// # Invariants
//
//   - a task starts only when its predecessors have ended, in its own step, in
//     the previous step for carried storages, and in the step that used the same
//     instance for the others
//   - a worker away from the host's memory takes one task while another runs, at most
//   - steps overlap as far as these dependences allow, up to eight at once
//   - a region moves once, when it is needed somewhere it is not valid; a write
//     makes it invalid everywhere else
//   - where a memory is too small, what no task given to it names is evicted first, the
//     least recently used before the rest, and moves once more when it is needed again; a
//     run that the largest task fits comes to its end
//   - nothing is written where a copy that has started still reads or writes
//   - a variant is fixed per (operation, type, shape, device kind) before the
//     run; policies choose device and order only
//   - ties are broken by the rank of the task's name, never by insertion or map order
//
// # Units
//
// Times are time.Duration from the start of the run; bytes are int64.
package schedule
