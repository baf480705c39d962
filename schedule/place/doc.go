// Package place makes the transfers between memories tasks like others. It takes a program and a plan for each of its
// graphs, and gives graphs with the transfers in them, their order on every engine, and places for all buffers.
//
// Read first: [Program] and [Compile]. The passes are, for each graph:
//
//   - traffic.go finds the moves, from the memory of the writer to the memories of the readers (pushes.go). A move
//     that passes the host memory goes in parts (parts.go). graph.go derives the dependences.
//   - estimate.go orders the transfers on each engine.
//   - layouts.go places the buffers. Where a memory is too small, spill.go and residents.go evict contents between two uses and
//     reload.go reloads them. Then everything begins again.
//
// [Written] is the part of a plan file for all of this. A plan that has it is followed (follow.go).
//
// # Invariants
//
//   - A *replica* is the buffer that a memory has of a buffer of the origin. A version of an atom moves once to each
//     memory of its readers, right after its writer has ended, and once more after each eviction. A replica has as
//     many versions as the plan says for its memory, else the graph.
//   - Whoever runs the lists of a graph and keeps its orders is right, whatever the times.
//   - Times only give the order of the transfers, and the evictions. Both are in [Written], so that a plan with it
//     gives the same graph on any costs.
//
// # Units
//
// Times are time.Duration, bytes are int64. Memories are bits of a uint64.
//
// # Limits
//
// A replica is in its memory whole or not at all, but for rows that no task there uses. Contents
// leave for the host memory only, and the host memory gives up nothing. A buffer that exists several
// times in some memory leaves none. With evictions nothing goes in parts. Moves before the first step and after the
// last never do.
package place
