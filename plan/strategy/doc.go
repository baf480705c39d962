// Package strategy has published ways to place a training on several devices, each with the cost model of its paper.
//
// Read first: [All], the table, and [Model], which a paper says of its plan. A [Strategy] is a policy: `dahl simulate --policy pipedream:4`
// plans by it. A strategy is a file here and a line in the table.
//
// # Two times
//
// [Model.Seconds] is a closed formula of the paper, and the printed model_s. The simulator times the same plan with all transfers and
// waits. Neither is ever taken for the other.
//
// # Units of placement
//
// Tasks that share a worker are one [part]: they have one colocation key. Parts hang together by the dependences of forward tasks. A part without any
// mirrors the dependences of its backward tasks. Parts that follow each other in a circle are one.
//
// # Limits
//
// Strategies place tasks of graphs of one step. They know no copy engines, and of memories only the sizes in the model of their paper.
package strategy
