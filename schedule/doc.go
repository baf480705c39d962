// Package schedule decides the device and the order of each task, the transfers between memories, and the place of
// every buffer. The package has no clock and no
// threads: package simulate brings time to its state machines, package execute brings real
// completions.
//
// Read first: [Price] and [Priced.Decide]. Price finds the cost of every task on every device ([Priced]). Decide runs
// an ordered list of passes (decide.go) and gives a [Decision]. Both worlds follow it:
//
//   - With a [Plan] for every graph, one pass places the transfers between memories as tasks and
//     lays out every memory (package place). [Lists] then replays the lists of the placed graph.
//   - In one memory a policy may decide while the graph runs ([Doc.Online]). The Engine of package policy
//     serves it: it knows which tasks are ready.
//
// A run leaves a [Schedule]. Package audit derives it again from the graph and the platform
// alone.
//
// # Invariants
//
//   - A task starts only when its predecessors have ended: in its own step; for storages that keep their contents, in
//     the previous step; for all other storages, in the step that used the same bytes.
//   - Steps overlap as far as these dependences allow; at most eight are in progress, or as many as a plan with lags
//     needs ([Plan.Lags]). A graph or a plan may have
//     several versions of a buffer, which steps use in turn ([dag.Buffer.Versions]): then the step that used the same
//     bytes is as many steps back.
//   - A region moves once to each memory that needs it and does not have it. A write makes the contents invalid in
//     all other memories.
//   - Nobody writes where a started transfer still reads or writes.
//   - A task that has a clock in its plan runs at it. The clock changes only while nothing runs in its domain. Tasks
//     that ask for one drain the domain, in the order of their requests.
//   - A unit or a link sleeps by its plan or when it has idled for long enough, and wakes for its next work; an entry
//     that has begun is completed. The state before holds until a change ends, but sleep ends
//     when waking starts ([Change]).
//   - The variant of each (operation, type, shape, device kind) is fixed before the run. Policies
//     choose device and order only.
//   - The rank of the task's name breaks ties. Neither insertion nor map order does.
//
// # Units
//
// Times are time.Duration from the start of the run; bytes are int64.
package schedule
