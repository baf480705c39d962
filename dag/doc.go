// Package dag holds the one task graph that dahl simulates, plans and executes.
//
// Read first: [Graph]. A graph is a loop body: tasks in program order. Each task names the
// regions of buffers that it reads and writes. Nobody writes a dependence down; program order is
// the meaning, and [Builder.Build] derives them. A task depends on exactly those earlier tasks
// whose regions overlap its own if at least one of the two writes (read after write, write after
// read, write after write). This holds within a step and from one step to the next.
//
// [Expand] turns reductions into chains and trees of ordinary accesses. [ParseText] and
// [ReadJSON] read graphs, as text and as JSON; the text also defines [Graph.Hash].
// [Graph.WriteDOT] draws them.
//
// [Lowering] says how a network is cut, [Operations] how it may be cut, and [Step] what every lowering has to do.
//
// # How dependences are found
//
// Every storage is cut along the boundaries of all regions that any task names. The cells of that
// grid are called atoms; each access covers whole atoms. One pass over the tasks in program order
// keeps, per atom, the last writer and the readers since. So the cost is the number of atoms
// visited plus the number of edges, never the number of pairs of tasks.
//
// # Versions
//
// A storage that every step writes anew may have several versions ([Buffer.Versions]), for steps to use in turn.
// Nothing within a step changes. From step to step, a task follows the users of the contents that it overwrites
// ([Links.ReusePreds]). They are as many steps back as the storage has versions, so that later steps may begin while
// earlier ones still read.
//
// # Views
//
// A view is another shape of the same storage (a flatten, say). Shapes of one storage are
// compared on their common refinement: the coarsest list of dimensions from which merging
// neighbours gives every shape. A box of any view is a union of few boxes of the refinement, so
// overlap is exact. Two shapes without a common refinement, such as 2×3 and 3×2, are refused.
//
// # Invariants (checked by [Graph.Check])
//
//   - Task and buffer names are unique; IDs are indices into Tasks and Buffers.
//   - Every box lies inside its buffer and is not empty.
//   - A task does not both read and write one atom, except by ReadWrite.
//   - The edges within a step point forwards in program order, so no cycle exists.
//
// # Units
//
// Bytes are int64, floating-point operations float64, durations time.Duration or integer
// nanoseconds where the name ends in Ns. Extents count elements.
//
// # Limits
//
// A graph is refused in three cases: its regions cut its storages into more than 2^26 atoms, or
// into more than 2^20 plus 64 for each access, or the atoms of all accesses together are more
// than 2^26.
package dag
