// Package layerwise estimates training steps without making a graph: for a set of devices and a cut of each layer, the time and the
// joules of a step in microseconds, and from that good cuts and the most promising sets.
//
// Read first: [Network], what the model needs to know of a network, and [Model]. A step consists of operations; see package nn.
// [Model.Of] cuts each into tiles, which are priced like tasks, and runs a few steps of a list schedule: a free unit takes the first
// of the ready tiles of its device, by step and rank. Devices are chosen before, by the heterogeneous earliest finish time heuristic on tiles.
// Of several other devices than processors each may have one part of the samples instead, as the policy data-parallel plans. On processors
// with other devices the operations that no update waits for, such as loads, may be on processors, and all others on the other devices, as the policy
// apart plans. The best of these choices counts. A result is sent once to each memory in which it is read.
//
// A tile waits for the tiles whose results it reads. Two operations that cut a dimension of one storage meet tile by tile along
// it, and otherwise one waits for all of the other one. So a chain of layers that are cut along samples has no barrier. Sums with cut terms
// have chains of tiles, and sums of accumulators behind them. What a step overwrites, the step before has read.
//
// # Cuts and sets
//
// The cuts of one pass of a layer are a knob. The flow of operations is their time if they came one after the other, each
// shared by all units of a kind. [Model.Rank] compares uniform cuts on all sets by their flow, and estimates the best ones of each kind of
// set in turns. On the best sets it turns one knob after the other to the best of the positions with the least flow, and all knobs of a layer at once where none gets
// better: weights stay in parts where they are only if all passes cut them alike. It begins again with a few other uniform cuts. Efforts are counted
// in simulated tiles, so that equal input gives equal results on any number of processors. Sets that differ in the names of devices only are one.
//
// For joules, or their product with the time, a value is the least over the clocks: of each number, with all devices that have such a clock at it, and others at the clock in force.
//
// [Model.Layers] has the work of each layer, and the bytes between layers, from which estimates of stages follow.
//
// # Units
//
// Times of tiles are nanoseconds as float64. Estimates are seconds and joules.
//
// # Limits
//
// Tiles of an operation take their mean time, and accumulators are added one after the other. Links are as free as copy engines are. Memory is not limited, and no two buffers share bytes.
// Flows are at the clocks in force. There are no micro-batches, no sleep and no layers that are computed twice.
package layerwise
