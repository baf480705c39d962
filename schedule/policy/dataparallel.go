package policy

import (
	"math"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// DataParallel plans as [HEFT] does and keeps parts of the data in one memory.
var DataParallel = New(schedule.Doc{
	Name:     "data-parallel",
	Sentence: "as heft, but tasks on one part of a batch, or of the channels, rows or columns of a layer, stay in one memory",
	Paper:    "A. Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv:1404.5997, 2014",
}, func(p *schedule.Problem) (*schedule.Plan, error) {
	return byRank(p, inMemories(p, memoriesOfParts(p, func(*platform.Device) bool { return true })), nil)
})

// inMemories allows the workers in the memory of each task.
func inMemories(p *schedule.Problem, goes []platform.MemoryID) func(dag.TaskID, platform.WorkerID) bool {
	return func(t dag.TaskID, w platform.WorkerID) bool {
		return goes[t] == anywhere || goes[t] == p.Platform.MemoryOf(w)
	}
}

// memoriesOfParts gives tasks on one part of the data one memory of some devices, by task. A part is one of the batch, or of the
// channels, rows or columns of a layer.
//
// HEFT puts a task where it ends first, and does not see that its successors will have to fetch its results. Here
// each memory has a share of the data. The faster its workers do the tasks on parts, the greater the share. Such a
// task goes where the middle of its part lies. The others, such as those that add gradients, go where they end
// first. Layers that the lowering leaves whole are among these: their weights stay where they are, while the samples
// move. Where a layer is cut along its outputs or inputs, so are its weights, and their parts stay while all samples
// move. Without parts, or with workers in one memory only, the plan is HEFT's.
//
// Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv:1404.5997, 2014.
func memoriesOfParts(p *schedule.Problem, among func(*platform.Device) bool) []platform.MemoryID {
	middles := make([]float64, len(p.Graph.Tasks))
	memories := len(p.Platform.Memories)
	runs, takes := make([]float64, memories), make([]float64, memories) // tasks on parts that can run there, and how long all of these take
	rates := make([]float64, memories)
	for t := range middles {
		middles[t] = middleOfPart(p.Graph, dag.TaskID(t))
		if middles[t] < 0 {
			continue
		}
		clear(rates)
		for id := range p.Platform.Devices {
			d := &p.Platform.Devices[id]
			if cost, ok := p.Costs.Of(dag.TaskID(t), platform.DeviceID(id)); ok && among(d) {
				rates[d.Memory] += float64(d.Count) / float64(max(1, d.Dispatch+cost.Duration))
			}
		}
		for m, rate := range rates {
			if rate > 0 {
				runs[m]++
				takes[m] += math.Round(1e6 / rate) // a sum of whole numbers does not depend on the order of tasks
			}
		}
	}
	speeds, all := make([]float64, memories), 0.0
	for m := range speeds {
		speeds[m] = runs[m] / max(1, takes[m])
		all += speeds[m]
	}
	goes := slices.Repeat([]platform.MemoryID{anywhere}, len(middles))
	for t, middle := range middles {
		end := 0.0
		for m, speed := range speeds {
			if end += speed / all; middle >= 0 && middle < end {
				goes[t] = platform.MemoryID(m)
				break
			}
		}
	}
	return goes
}

// anywhere is the memory of a task without a part.
const anywhere = platform.MemoryID(-1)

// middleOfPart is the middle of a task's part, between 0 and 1, in the first dimension that the task has in part
// only. -1 means that it has no part. The largest operand in part counts. Weights do not count, since they are cut as
// the results of the task.
func middleOfPart(g *dag.Graph, t dag.TaskID) (middle float64) {
	middle = -1
	most := int64(0)
	for i, a := range g.Tasks[t].Accesses {
		role, shape := g.Buffers[g.Storage(a.Buffer)].Role, g.Buffers[a.Buffer].Shape
		if len(a.Box) == 0 || role == dag.Parameter || role == dag.State {
			continue
		}
		for d, r := range a.Box {
			if r.Len() == shape[d] {
				continue
			}
			if bytes := g.RegionBytes(t, i); bytes > most {
				most, middle = bytes, float64(r.Lo+r.Hi)/float64(2*shape[d])
			}
			break
		}
	}
	return middle
}
