// Package schedule decides which device runs each task and in which order, which bytes move
// between memories and when, and where every buffer lies. The package has no clock and no
// threads: package simulate brings time to its state machines, package execute brings real
// completions.
//
// Read first: [Price] and [Priced.Decide]. Price finds the cost of every task on every device
// ([Priced]). Decide runs an ordered list of passes (decide.go) and gives a [Decision], which
// both worlds follow:
//
//   - With a [Plan] for every graph, one pass places the copies between memories as tasks and
//     lays out every memory (package place). [Lists] then replays the lists of the placed graph.
//   - In one memory a policy may decide while the graph runs ([Doc.Online]). The Engine of package policy
//     serves it: it knows which tasks are ready.
//
// A run leaves a [Schedule]. Package audit derives it again from the graph and the platform
// alone.
//
// # Invariants
//
//   - A task starts only when its predecessors have ended: those of its own step, those of the
//     previous step for storages that keep their contents, and those of the step that used the
//     same bytes for all other storages.
//   - Steps overlap as far as these dependences allow; at most eight are in progress. A graph or a
//     plan may have several copies of a buffer, which steps use in turn ([dag.Buffer.Copies]): then
//     the step that used the same bytes is as many steps back.
//   - A region moves once to each memory that needs it and does not have it. A write makes all
//     other copies invalid.
//   - Nobody writes where a copy that has started still reads or writes.
//   - A task that has a clock in its plan runs at it. The clock changes only while nothing runs in its
//     domain, and the tasks that ask for one drain the domain in the order in which they ask.
//   - What sleeps does so by its plan or when it has idled for long enough, and wakes for what comes;
//     an entry that has begun is completed. The state before holds until a change ends, but sleep ends
//     when waking starts ([Change]).
//   - The variant of each (operation, type, shape, device kind) is fixed before the run. Policies
//     choose device and order only.
//   - The rank of the task's name breaks ties. Neither insertion nor map order does.
//
// # Units
//
// Times are time.Duration from the start of the run; bytes are int64.
package schedule
