package strategy

import (
	"fmt"
	"math"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// pipeDream cuts the layers into stages, and gives each a number of replicas: the mini-batches of a stage go to its replicas in
// turn, and these add their gradients once for each of them.
//
// The cost model has free transfers of activations and no input layer. With m replicas a stage of w bytes of weights takes
//
//	(compute + 4(m−1)w / (mB)) / m
//
// per mini-batch at a bandwidth B, and a pipeline as long as its slowest stage. The best one of all cuts and numbers of replicas
// is found by dynamic programming: the best pipeline of n workers for the first layers is one of fewer workers for fewer layers, and a last
// stage with the others.
//
// Narayanan, Harlap, Phanishayee, Seshadri, Devanur, Ganger, Gibbons, Zaharia, PipeDream: Generalized Pipeline Parallelism for DNN Training, SOSP
// 2019, section 3.1, on one level of links. The factor 4 comes from its program, optimizer_graph_hierarchical.py.
var pipeDream = Strategy{
	doc: schedule.Doc{
		Name: "pipedream", Sentence: "stages of layers, each on some replicas, that balance computing and the exchange of gradients",
		Paper: "D. Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN Training, SOSP 2019",
	},
	Arguments: []string{"workers"},
	Optional:  true,
	Says:      "transfers of activations free, no input layer, (compute + 4(m-1)w/(mB))/m per stage",
	place:     placePipeDream,
}

// cut is the best pipeline of some workers for an ideal: its slowest stage, and its last one.
type cut struct {
	seconds  float64
	before   int // the ideal of the stages before the last
	replicas int // of the last
}

func placePipeDream(n *network, numbers []int) (*Model, error) {
	workers, err := n.replicable(numbers)
	if err != nil {
		return nil, err
	}
	ideals, err := n.ideals()
	if err != nil {
		return nil, err
	}
	compute, weights := n.sums(ideals, workers[0])
	bytesPerSec := n.bandwidth(workers)
	stage := func(from, to, replicas int) float64 {
		m := float64(replicas)
		exchange := 4 * (m - 1) * (weights[to] - weights[from]) / (m * bytesPerSec)
		return (compute[to] - compute[from] + exchange) / m
	}
	best := make([][]cut, len(ideals)) // by ideal and number of workers less one
	for to := 1; to < len(ideals); to++ {
		best[to] = make([]cut, len(workers))
		for used := range best[to] {
			best[to][used] = cut{stage(0, to, used+1), 0, used + 1}
		}
		for from := 1; from < to; from++ {
			if !ideals[from].within(ideals[to]) {
				continue
			}
			for used := range best[to] {
				for replicas := 1; replicas <= used; replicas++ {
					now := max(best[from][used-replicas].seconds, stage(from, to, replicas))
					if now < best[to][used].seconds {
						best[to][used] = cut{now, from, replicas}
					}
				}
			}
		}
	}
	model := &Model{}
	stageOf, replicas := make([]int, len(n.parts)), [][]platform.WorkerID(nil)
	var froms, tos []int
	for to, left := len(ideals)-1, len(workers); to > 0; {
		last := best[to][left-1]
		model.Seconds = max(model.Seconds, stage(last.before, to, last.replicas))
		replicas, froms, tos = append(replicas, workers[left-last.replicas:left]), append(froms, last.before), append(tos, to)
		to, left = last.before, left-last.replicas
	}
	slices.Reverse(replicas)
	slices.Reverse(froms)
	slices.Reverse(tos)
	for at := range replicas {
		if m := len(replicas[at]); n.batch%m != 0 {
			return nil, fmt.Errorf("a stage has %d replicas, among which a step of %d mini-batches cannot be divided; import the profile with --minibatches %d", m, n.batch, n.leastBatches(replicas))
		}
		for i := range n.parts {
			if ideals[tos[at]].has(i) && !ideals[froms[at]].has(i) {
				stageOf[i] = at
			}
		}
	}
	for at := range replicas {
		model.Stages = append(model.Stages, n.stage(stageOf, at, replicas[at], stage(froms[at], tos[at], len(replicas[at]))))
	}
	model.workers = n.assign(stageOf, replicas)
	return model, nil
}

// leastBatches is the least number of mini-batches that the replicas of every stage can share.
func (n *network) leastBatches(replicas [][]platform.WorkerID) int {
	for batch := 1; ; batch++ {
		if !slices.ContainsFunc(replicas, func(of []platform.WorkerID) bool { return batch%len(of) != 0 }) {
			return batch
		}
	}
}

// replicable lists workers of one device, or of equal ones, which can run all tasks: no processors where there are others.
func (n *network) replicable(numbers []int) ([]platform.WorkerID, error) {
	var workers []platform.WorkerID
	for _, processors := range []bool{false, true} {
		for w := range n.Platform.Workers {
			d := &n.Platform.Devices[n.Platform.Workers[w].Device]
			if d.IsProcessor() != processors || d.PlacedOnly || !n.runsAll(platform.WorkerID(w)) {
				continue
			}
			if len(workers) == 0 || n.alike(workers[0], platform.WorkerID(w)) {
				workers = append(workers, platform.WorkerID(w))
			}
		}
		if len(workers) > 0 {
			break
		}
	}
	want := len(workers)
	if len(numbers) > 0 {
		want = numbers[0]
	}
	if len(workers) < max(1, want) {
		return nil, fmt.Errorf("%d workers are asked for, and %q has %d equal ones that can run all tasks", max(1, want), n.Platform.Name, len(workers))
	}
	return workers[:want], nil
}

func (n *network) runsAll(w platform.WorkerID) bool {
	for t := range dag.TaskID(len(n.of)) {
		if !n.fit.CanRun(t, w) {
			return false
		}
	}
	return true
}

// alike reports whether all tasks take equal times on two workers.
func (n *network) alike(a, b platform.WorkerID) bool {
	for t := range dag.TaskID(len(n.of)) {
		x, okX := n.Costs.Of(t, n.Platform.Workers[a].Device)
		y, okY := n.Costs.Of(t, n.Platform.Workers[b].Device)
		if okX != okY || x.Duration != y.Duration {
			return false
		}
	}
	return true
}

// bytesByPart are the bytes of the buffers with some role that the tasks of each part use, each buffer once.
func (n *network) bytesByPart(roles ...dag.Role) []float64 {
	bytes := make([]float64, len(n.parts))
	for i := range n.parts {
		counted := map[dag.BufferID]bool{}
		for _, t := range n.parts[i].tasks {
			for _, a := range n.Graph.Tasks[t].Accesses {
				if b := n.Graph.Storage(a.Buffer); slices.Contains(roles, n.Graph.Buffers[b].Role) && !counted[b] {
					counted[b] = true
					bytes[i] += float64(n.Graph.Buffers[b].Bytes())
				}
			}
		}
	}
	return bytes
}

// sums are the seconds of one mini-batch and the bytes of weights of each ideal.
func (n *network) sums(ideals []set, w platform.WorkerID) (compute, weights []float64) {
	ofPart, bytes := make([]float64, len(n.parts)), n.bytesByPart(dag.Parameter)
	for i := range n.parts {
		ofPart[i], _ = n.seconds(i, w)
	}
	for _, ideal := range ideals {
		c, b := 0.0, 0.0
		for i := range n.parts {
			if ideal.has(i) {
				c, b = c+ofPart[i], b+bytes[i]
			}
		}
		compute, weights = append(compute, c), append(weights, b)
	}
	return compute, weights
}

// bandwidth is the least between two of some workers, in bytes per second; infinite where all share a memory.
func (n *network) bandwidth(workers []platform.WorkerID) float64 {
	least := math.Inf(1)
	for _, a := range workers {
		for _, b := range workers {
			least = min(least, hopBetween(n.Platform, n.Platform.MemoryOf(a), n.Platform.MemoryOf(b)).bytesPerSec)
		}
	}
	return least
}
