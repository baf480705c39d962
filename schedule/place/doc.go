// Package place makes the copies between memories tasks like others: it takes a program and a plan
// for each of its graphs, and gives graphs with the copies in them, their order on every engine,
// and places for all buffers.
//
// Read first: [Program] and [Compile]. The passes are, for each graph:
//
//   - traffic.go finds what has to move, from the memory that wrote it to those that read it
//     (pushes.go), in parts where it passes the host memory (parts.go), and graph.go what waits for
//     what then.
//   - estimate.go orders the copies on each engine.
//   - layouts.go places the buffers. Where a memory is too small, spill.go chooses what leaves it
//     between two uses, reload.go brings that back, and everything begins again.
//
// [Written] is what a plan file has of all that. A plan that has it is followed (follow.go).
//
// # Invariants
//
//   - A *replica* is the buffer that a memory has of a buffer of the origin. A version moves once to
//     each memory that needs it, right after the task that wrote it, and once more after each time
//     that it left for lack of room. A replica has as many copies as the plan says for its memory,
//     else the graph.
//   - Whoever runs the lists of a graph and keeps its orders is right, whatever the times.
//   - Times only give the order of the copies, and which contents leave. Both are in [Written], so
//     that a plan that has it gives the same graph on any costs.
//
// # Units
//
// Times are time.Duration, bytes are int64. Memories are bits of a uint64.
//
// # Limits
//
// A replica is in its memory whole or not at all, but for rows that no task there uses. Contents
// leave for the host memory only, and the host memory gives up nothing. A buffer that exists several
// times in some memory leaves none. In a program in which contents leave a memory nothing goes in
// parts, nor does what moves before the first step or after the last.
package place
