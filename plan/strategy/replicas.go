package strategy

import (
	"dahl/dag"
	"dahl/schedule"
)

// dataParallel has all weights on every device, and each of these a part of the samples. The sums of the gradients take a ring: 2(p − 1) messages, each of
// the p-th part of the bytes.
//
// Patarasuk, Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, Journal of Parallel and Distributed Computing 69(2), 2009.
var dataParallel = Strategy{
	doc: schedule.Doc{
		Name: "data-parallel", Sentence: "replicas: each device has a part of the samples and all weights, and gradients are added over all",
		Paper: "P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC 69(2), 2009",
	},
	Arguments: []string{"devices"}, Words: sums,
	Says:  "slowest share, then the gradients: ring or direct 2(p-1)(a + bytes/(pB)), tree 2⌈log2 p⌉(a + bytes/B); hierarchical, g devices on each of q nodes: 2(g-1)(a + bytes/(gB)) in nodes, then 2(q-1)(A + bytes/(gqN)) between them, N a device's part of the way",
	split: alongSamples,
}

// zero1 has the state of the optimiser once: device s of p adds the gradients of part s of the weights, updates this part, and sends it to all. So a device has the
// p-th part of the state. dahl updates each weight once in any case, so that these are the replicas of [dataParallel] with a ring.
//
// Rajbhandari, Rasley, Ruwase, He, ZeRO: Memory optimizations toward training trillion parameter models, SC 2020, section 5.1.
var zero1 = Strategy{
	doc: schedule.Doc{
		Name: "zero1", Sentence: "replicas, each of which has a part of the optimiser's state and updates this part of the weights",
		Paper: "S. Rajbhandari et al., ZeRO: memory optimizations toward training trillion parameter models, SC 2020",
	},
	Arguments: []string{"devices"},
	Says:      "slowest share, then reduce-scatter of gradients and all-gather of weights: 2(p-1)(a + bytes/(pB))",
	split:     alongSamples,
}

func alongSamples(n []int) Split { return Split{Devices: n[0], Sum: dag.Ring} }
