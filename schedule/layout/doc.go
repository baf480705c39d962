// Package layout says where every buffer lies in the arenas of a memory, before anything runs.
//
// Read first: [Layout], then [Program] for one memory. [Memories] places a program whose buffers
// are in several memories and follow a plan.
//
// # Invariants (checked by [Layout.Check])
//
//   - Two storages share bytes only if every use of one comes before every use of the other, by the
//     graph or by the orders that the layout adds; this holds in a step and into the next.
//   - Storages outside the step arena share nothing, nor do storages with kept contents or with several versions.
//   - Parameters, optimiser state and inputs lie at the same place in all graphs of a program.
//   - Offsets are multiples of [Alignment].
//
// # Units
//
// Sizes and offsets are bytes, as int64.
//
// # Limits
//
// The largest storages of a graph share bytes in a memory, until 2²⁹ places have been compared with one. None do where the order of the tasks takes more than
// 1 GiB: the number of tasks that come before one of another worker times the number of workers, in words of 4 bytes. Without a plan chains that cover the graph count as workers.
package layout
