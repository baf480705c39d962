package strategy

import (
	"time"

	"dahl/dag"
	"dahl/platform"
)

// Statistics of a batch of n samples and c channels over p devices are two sums with a number for each sample and channel. The first device takes them in
// 2(p - 1) messages of cn/p numbers, one after the other. Or each device sums its own samples, and a tree merges the sums: a launch on each device,
// and ⌈log₂ p⌉ times a message of 3c numbers and another launch. A message leaves a device free for gradients of weights, and a launch does not, so that
// launches count twice (bench/strategies.md has both for three machines). Devices that share rows have numbers for all n samples.

// launchCounts is how often a launch counts where a message counts once.
const launchCounts = 2

// placeStatistics chooses where the devices of each stage sum the statistics of its layers.
func (n *Network) placeStatistics(stages []dag.Stage, batches int) {
	at := 0
	onFirst, onEach, ways := make([]float64, len(stages)), make([]float64, len(stages)), make([][]hop, len(stages))
	for i := range n.Layers {
		if at+1 < len(stages) && stages[at+1].From == n.Layers[i].Name {
			at++
		}
		if s := &stages[at]; n.Layers[i].Statistics && s.Shared() {
			if ways[at] == nil {
				ways[at] = n.waysToFirst(s)
			}
			first, each := n.statistics(s, ways[at], &n.Layers[i], (n.Batch+batches-1)/batches)
			onFirst[at], onEach[at] = onFirst[at]+first, onEach[at]+each
		}
	}
	for i := range stages {
		switch {
		case onFirst[i] == onEach[i]: // nothing to sum
		case onFirst[i] < onEach[i]:
			stages[i].Statistics = dag.OnFirst
		default:
			stages[i].Statistics = dag.OnEach
		}
	}
}

// waysToFirst are the ways to the first device of a stage from those that sum statistics.
func (n *Network) waysToFirst(s *dag.Stage) (ways []hop) {
	apart, first := 1, n.memoryOf(s.Devices[0])
	if s.Along == dag.AlongOutputs {
		_, apart = s.Grid()
	}
	for k := 0; k < len(s.Devices); k += apart {
		ways = append(ways, hopBetween(n.Platform, n.memoryOf(s.Devices[k]), first))
	}
	return ways
}

// statistics is how many seconds the sums of a layer take on the first device of a stage, and on each. It has the ways between these.
func (n *Network) statistics(s *dag.Stage, ways []hop, layer *Layer, samples int) (onFirst, onEach float64) {
	p, first := len(ways), n.memoryOf(s.Devices[0])
	channels := layer.Weights / 2 // bytes: one weight for each, and one bias
	if s.Along != dag.AlongRows {
		samples = (samples + p - 1) / p
	}
	var launch time.Duration
	for i := range n.Platform.Workers {
		if d := &n.Platform.Devices[n.Platform.Workers[i].Device]; n.Platform.MemoryOf(platform.WorkerID(i)) == first {
			launch = max(launch, d.Dispatch)
		}
	}
	if p > 1 {
		onEach = launchCounts * launch.Seconds()
	}
	for k := 1; k < p; k++ {
		if onFirst += 2 * ways[k].message(channels*float64(samples)); k&(k-1) == 0 {
			onEach += ways[k].message(3*channels) + launchCounts*launch.Seconds()
		}
	}
	return onFirst, onEach
}
