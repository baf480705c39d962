// Package strategy has published ways to place a training on several devices, each with the cost model of its paper.
//
// Read first: [All], the table. A strategy is a file here and a line in the table, and either of two kinds:
//
//   - Of graphs, such as "pipedream:4". The strategy is a policy. It places the tasks of a graph, and [Model] is the plan in the eyes of its paper.
//   - Of networks, such as "data-parallel:4" or "1f1b:4x8". The strategy is a [Split], and [Split.Lowering] the network with stages: consecutive layers on a
//     device of a pipeline, or on several that share them along a dimension. [StepOf] is the closed formula of such a step, whoever has written the stages. A product has
//     at most a pipeline, devices that share its stages, and replicas of these, as in "data-parallel:2+tensor-parallel:2+1f1b:2x8". "megatron" is such a product of equal devices, folded ([dag.Fold]).
//
// # Two times
//
// [Model.Seconds] and [Step.Seconds] are closed formulas of papers, and the printed model_s. The simulator times the same plan with all transfers and
// waits. Neither is ever taken for the other.
//
// # Units of placement
//
// Devices are those with memories of their own first, in the order of the platform; see [Seats].
//
// In a graph, tasks that share a worker are one [part]: they have one colocation key. Parts hang together by the dependences of forward tasks. A part without any
// mirrors the dependences of its backward tasks. Parts that follow each other in a circle are one.
//
// # Limits
//
// Devices share a stage along one dimension, or along samples and one more. Shares of samples alone follow the speed of the devices, all others are equal. Formulas know the slowest hop from each device to the next one, and no links that several hops share.
//
// Strategies of graphs place tasks of one step. They know no copy engines, and of memories only the sizes in the model of their paper.
package strategy
