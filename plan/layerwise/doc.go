// Package layerwise estimates training steps without making a graph: for a set of devices and a cut of each layer, the time and the
// joules of a step in microseconds, and from that good cuts and the most promising sets.
//
// Read first: [Network], what the model needs to know of a network, and [Model]. A step consists of operations; see package nn.
// [Model.Of] cuts each into tiles, which are priced like tasks, and runs a few steps of a list schedule. The first of the ready
// tiles goes to a free unit, in the order of steps and then of ranks, as the heterogeneous earliest finish time heuristic has them. Where there are
// several devices, a tile goes to the one that ends it first, with the transfers of its inputs.
//
// A tile waits for the tiles whose results it reads. Two operations that cut a dimension of one storage meet tile by tile along
// it, and otherwise one waits for all of the other one. So a chain of layers that are cut along samples has no barrier. Sums with cut terms
// have chains of tiles, and sums of accumulators behind them.
//
// # Cuts and sets
//
// [Model.Rank] compares uniform cuts on all sets by the flow of their work, estimates steps of the best ones, and turns one number of one layer
// after the other on the best sets. Efforts are counted in simulated tiles, so that equal input gives equal results.
//
// # Units
//
// Times of tiles are nanoseconds as float64. Estimates are seconds and joules.
//
// # Limits
//
// Tiles of an operation take their mean time. Links are as free as copy engines are. Memory is not limited, and no two buffers share bytes. Devices have
// the clock in force. There are no micro-batches, no sleep and no layers that are computed twice.
package layerwise
