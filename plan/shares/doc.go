// Package shares proves lower bounds on the time or the energy of a step for all lowerings of a network on all sets of devices of a
// machine, and checks such proofs in exact arithmetic. It imports neither networks nor a solver of linear programs.
//
// Read first: [Step], the work of every lowering, and [Proof.Bound]. A [Model] prices the work on some sets, level.go says how
// much small tiles move, sums.go how long sums are, and a [Bound] has proofs for all sets.
//
// # Why a proof is one
//
// A tile has a share of its operation, and the shares of all tiles of a lowering add up to 1. Its time is no less than some fixed time and its share
// of some other time, whatever its shape. So every plan of every lowering gives numbers N of tiles by operation, device and share q, with
//
//   - Σ q·N = 1 for each operation
//   - Σ N·(fixed + q·nanos) ≤ units·T for each device, where T is the time of a step
//   - Σ q·N·(fixed + q·nanos) ≤ T over the operations of each chain
//   - watts·T + Σ q·N·joules is no more than the energy
//
// The third is the time of a chain in the mean. From one update of a weight to the next there is a chain through one tile of each
// operation on the way: forward, loss, backward, gradient. A sample, a row, a column and a channel of each layer are
// drawn at random, and the chain has the tiles with these. It has a tile with the probability of its share, and no chain takes longer than T.
// So large tiles make the chain long, and small ones cost dispatch and bytes that are read again.
//
// Each weight has a chain of its own, with its gradient. So gradients of all weights are long where their tiles are large.
//
// Multipliers λ of devices and μ of chains that add up to the watts, Σ λ·units + Σ μ = watts, so prove
//
//	energy ≥ Σ over operations of the least λ·(fixed/q + nanos) + μ·(fixed + q·nanos) + joules
//
// over devices and shares, where μ adds up the chains with the operation. For the time the watts are 1, and there are no joules.
//
// Micro-batches and stages are cuts as well. A tile of a micro-batch has its share, and the draw of a sample says its micro-batch. Replicas, and parts of weights or of
// images, place tiles, and do more work where they exchange borders or sums. Stashed weights are another program: a gradient then changes weights that a
// later forward pass has not read.
//
// That is one view of an operation. Where it sums over inputs or samples, there is another, sums.go: tiles add to a result one after the
// other, or need accumulators and their sums. The greater one of both holds.
//
// A worked example. Two operations of 8 ns on one device of two units, a dispatch of 1 ns, a chain of both. With λ = 0.4 and μ = 0.2 each takes at least
// 0.4·8 + 0.2·1 + 2·√(0.4·1·0.2·8) = 5 ns with q = 1/2, so that T ≥ 10 ns. By work alone T is 9 ns, and by the chain
// with tiles of no time 2 ns. In halves the operations take two rounds of 5 ns.
//
// # Units
//
// Times are nanoseconds, energies nanojoules (watts times nanoseconds).
//
// # Sources
//
// Williams, Waterman, Patterson, Roofline, Communications of the ACM 52(4), 2009, for the work; Loomis, Whitney, An inequality related to the
// isoperimetric inequality, Bulletin of the AMS 55, 1949, and Irony, Toledo, Tiskin, Communication lower bounds for distributed-memory matrix
// multiplication, 2004, for the bytes of small tiles.
//
// # Limits
//
// Bounds leave out operations that some lowerings do not have, such as a ReLU by itself. An update by itself
// they do count. Of copies between
// memories they know the latency within a chain. They know nothing of the room in memories. That all of
// a batch's work behind a layer lies between two updates of it is no row: the gradients of other weights, a third of the work, fill its heads and tails.
package shares
