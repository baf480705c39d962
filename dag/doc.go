// Package dag holds the one task graph that dahl simulates, plans and executes.
//
// Read first: [Graph]. A graph is a loop body: tasks in program order, each
// naming the regions of buffers it reads and writes. Program order is the
// meaning; nobody writes a dependence down. [Builder.Build] derives them:
// a task depends on exactly those earlier tasks whose regions overlap its own
// with at least one of the two writing (read after write, write after read,
// write after write), within a step and from one step to the next.
//
// [Expand] turns reductions into chains and trees of ordinary accesses. Graphs are
// read and written as text ([ParseText], which also defines [Graph.Hash]) and as
// JSON ([ReadJSON]), and drawn by [Graph.WriteDOT].
//
// # How dependences are found
//
// Every storage is cut along the boundaries of all regions that any task names.
// The cells of that grid are called atoms; each access covers whole atoms.
// One pass over the tasks in program order keeps, per atom, the last writer and
// the readers since, so the cost is the number of atoms visited plus the number
// of edges, never the number of pairs of tasks.
//
// # Views
//
// A view is another shape of the same storage (a flatten, say). Shapes of one
// storage are compared on their common refinement: the coarsest list of
// dimensions from which every shape is obtained by merging neighbours. A box of
// any view is a union of few boxes of the refinement, so overlap is exact. Two
// shapes without a common refinement, such as 2×3 and 3×2, are refused.
//
// # Invariants (checked by [Graph.Check])
//
//   - task and buffer names are unique; IDs are indices into Tasks and Buffers
//   - every box lies inside its buffer and is not empty
//   - a task does not both read and write one atom, except by ReadWrite
//   - the edges within a step point forwards in program order, so no cycle exists
//
// # Units
//
// Bytes are int64, floating-point operations float64, durations time.Duration or
// integer nanoseconds where the name ends in Ns. Extents count elements.
//
// # Limits
//
// A graph is refused when its regions cut its storages into more than 2^26 pieces,
// or into more than 2^20 and 64 for each access, or when the pieces of all
// accesses together are more than 2^26.
package dag
