package policy

import (
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/place"
	"dahl/schedule/ready"
)

// Apart plans as [DataParallel] does on GPUs and the like, and gives processors loads and metrics alone.
//
// A steady step takes at least the time of the tasks between an update and the next one. Loads are not among these, but a GPU that
// loads has no time for others. So they are aside, on processors, and one step ahead: what they use exists twice. A worker runs
// the steps one after the other. So what follows the tasks between updates has a worker of its own, the last one, or
// the loads of a step would wait for the metrics of the step before.
//
// The policy is for searches and not in the table: there a policy's plan has the versions of the graph.
var Apart = New(schedule.Doc{
	Name:     "apart",
	Sentence: "as data-parallel on devices that are no processors; processors run a step ahead what lies on no way from an update to the next, such as loads",
}, func(p *schedule.Problem) (*schedule.Plan, error) {
	ahead, after := tasksAside(p.Graph)
	in := inMemories(p, memoriesOfParts(p, func(d *platform.Device) bool { return !d.IsProcessor() }))
	last := lastProcessor(p.Platform)
	plan, err := byRank(p, func(t dag.TaskID, w platform.WorkerID) bool {
		switch processor := p.Platform.Devices[p.Platform.Workers[w].Device].IsProcessor(); {
		case ahead[t]:
			return processor && w != last
		case after[t]:
			return processor && (last < 0 || w == last)
		default:
			return !processor && in(t, w)
		}
	}, nil)
	if err == nil {
		plan.Versions = twoVersions(p, plan.Order, func(t dag.TaskID) bool { return ahead[t] || after[t] })
	}
	return plan, err
})

// lastProcessor is the last of several workers of processors; below zero there are no several.
func lastProcessor(p *platform.Platform) platform.WorkerID {
	last, n := platform.WorkerID(-1), 0
	for w := range p.Workers {
		if d := &p.Devices[p.Workers[w].Device]; d.IsProcessor() && !d.PlacedOnly {
			last, n = platform.WorkerID(w), n+1
		}
	}
	if n < 2 {
		return -1
	}
	return last
}

// twoVersions lists two versions of what some tasks use and a step writes anew, in the memories where it is.
func twoVersions(p *schedule.Problem, order [][]dag.TaskID, of func(dag.TaskID) bool) (list []place.PlannedVersions) {
	g, used := p.Graph, make([]bool, len(p.Graph.Buffers))
	anew := func(b dag.BufferID) bool {
		buffer := &g.Buffers[b]
		return g.WrittenStorages()[b] && !g.Carried(b) && buffer.Home == "" && g.Versions(b) < 2
	}
	for t := range g.Tasks {
		for _, a := range g.Tasks[t].Accesses {
			used[g.Storage(a.Buffer)] = used[g.Storage(a.Buffer)] || of(dag.TaskID(t))
		}
	}
	known := map[place.PlannedVersions]bool{}
	for w, tasks := range order {
		for _, t := range tasks {
			for _, a := range g.Tasks[t].Accesses {
				b := g.Storage(a.Buffer)
				v := place.PlannedVersions{Memory: p.Platform.Memories[p.Platform.MemoryOf(platform.WorkerID(w))].Name, Buffer: g.Buffers[b].Name, Versions: 2}
				if used[b] && anew(b) && !known[v] {
					known[v] = true
					list = append(list, v)
				}
			}
		}
	}
	return list
}

// tasksAside marks the tasks that lie on no way from an update to the next one. An update changes contents that are carried from step to step. The other
// tasks are a loop, whose time bounds a steady step from below. Tasks ahead of it load, and tasks after it make what a program reads. In a graph without
// updates no task is aside.
func tasksAside(g *dag.Graph) (ahead, after []bool) {
	n := len(g.Tasks)
	carried, written := g.CarriedStorages(), g.WrittenStorages()
	behind, before := make([]bool, n), make([]bool, n)
	for t := range g.Tasks {
		for _, a := range g.Tasks[t].Accesses {
			if b := g.Storage(a.Buffer); carried[b] && written[b] {
				behind[t], before[t] = true, before[t] || a.Mode.Writes()
			}
		}
	}
	order, _ := ready.Sort(g.Links, nil, nil)
	for _, t := range order {
		for _, s := range g.Succs(t) {
			behind[s] = behind[s] || behind[t]
		}
	}
	for _, t := range slices.Backward(order) {
		for _, s := range g.Succs(t) {
			before[t] = before[t] || before[s]
		}
	}
	ahead, after = make([]bool, n), make([]bool, n)
	if !slices.Contains(behind, true) {
		return ahead, after
	}
	for t := range ahead {
		ahead[t], after[t] = !behind[t], behind[t] && !before[t]
	}
	return ahead, after
}
