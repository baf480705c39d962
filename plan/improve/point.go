package improve

import (
	"errors"
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/ready"
)

// point is a plan as the search changes it. The sequence has every task after its predecessors; a worker runs its tasks in that
// order. So every point is a plan that can run.
type point struct {
	sequence []int32 // tasks
	at       []int32 // by task: its place in the sequence
	worker   []platform.WorkerID
	clock    []platform.ClockID
}

func newPoint(n int) *point {
	return &point{sequence: make([]int32, n), at: make([]int32, n), worker: make([]platform.WorkerID, n), clock: make([]platform.ClockID, n)}
}

// copy makes x equal to another point of the same graph.
func (x *point) copy(of *point) {
	copy(x.sequence, of.sequence)
	copy(x.at, of.at)
	copy(x.worker, of.worker)
	copy(x.clock, of.clock)
}

// insert moves a task to another place of the sequence. Those between move by one.
func (x *point) insert(t int32, to int32) {
	for at := x.at[t]; at != to; {
		next := at + 1
		if to < at {
			next = at - 1
		}
		x.sequence[at] = x.sequence[next]
		x.at[x.sequence[at]] = at
		at = next
	}
	x.sequence[to], x.at[t] = t, to
}

// rules hold the points that a decision accepts.
type rules struct {
	graph     *dag.Graph
	places    [][][]platform.WorkerID // by task, and by device: the workers that may run it; one list for like tasks
	clocks    [][]platform.ClockID    // by device: those allowed
	group     [][]int32               // by task: those that share its worker, itself included; nil means it stands alone
	sameCalls [][]int32               // by task: tasks of its class of costs, and tasks of its layer and phase
	layer     [][]int32
}

func newRules(priced *schedule.Priced, of *problem.Problem) *rules {
	g, p := priced.Program.Graphs[0], priced.Platform
	r := &rules{graph: g, group: make([][]int32, len(g.Tasks)), clocks: of.Clocks}
	known := map[*platform.WorkerID][][]platform.WorkerID{} // by the first of a list, since equal ones are one
	for t := range g.Tasks {
		workers := of.Workers[t]
		if known[&workers[0]] == nil {
			known[&workers[0]] = byDevice(p, workers)
		}
		r.places = append(r.places, known[&workers[0]])
	}
	r.sameCalls = lists(len(g.Tasks), func(t int) string { return fmt.Sprint(priced.Costs(0).Class[t]) })
	r.layer = lists(len(g.Tasks), func(t int) string { return fmt.Sprint(g.Tasks[t].Labels) })
	for t, group := range of.Groups {
		if group >= 0 {
			r.group[t] = ofGroup(of.Groups, group)
		}
	}
	return r
}

// ofGroup lists the tasks of a group; nil if it is one alone.
func ofGroup(groups []int32, group int32) (all []int32) {
	for t, g := range groups {
		if g == group {
			all = append(all, int32(t))
		}
	}
	if len(all) == 1 {
		return nil
	}
	return all
}

// byDevice splits workers, which are sorted by device.
func byDevice(p *platform.Platform, workers []platform.WorkerID) (all [][]platform.WorkerID) {
	for i, w := range workers {
		if i == 0 || p.Workers[w].Device != p.Workers[workers[i-1]].Device {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], w)
	}
	return all
}

// lists are, by task, the tasks of one name.
func lists(tasks int, name func(t int) string) [][]int32 {
	byName, names := map[string][]int32{}, make([]string, tasks)
	for t := range names {
		names[t] = name(t)
		byName[names[t]] = append(byName[names[t]], int32(t))
	}
	all := make([][]int32, tasks)
	for t := range all {
		all[t] = byName[names[t]]
	}
	return all
}

// allows reports whether a worker may run a task.
func (r *rules) allows(t int32, w platform.WorkerID) bool {
	return slices.ContainsFunc(r.places[t], func(workers []platform.WorkerID) bool { return slices.Contains(workers, w) })
}

// pointOf is the point of a plan. Clocks of the plan that are not allowed are ignored.
func (r *rules) pointOf(p *platform.Platform, plan *schedule.Plan) (*point, error) {
	if plan.Lags != nil {
		return nil, errors.New("the plan has tasks that run steps behind others, which local search does not change; take a plan without lags")
	}
	sorted, stuck := ready.Sort(r.graph.Links, nil, plan.Order)
	if stuck >= 0 {
		return nil, fmt.Errorf("the plan's order contradicts the dependences: task %q could never start", r.graph.Tasks[stuck].Name)
	}
	x := newPoint(len(sorted))
	for at, t := range sorted {
		x.sequence[at], x.at[t] = int32(t), int32(at)
	}
	for w, list := range plan.Order {
		device := &p.Devices[p.Workers[w].Device]
		for _, t := range list {
			x.worker[t], x.clock[t] = platform.WorkerID(w), device.AtClock
			if plan.Clocks != nil && plan.Clocks[t] != platform.InForce {
				x.clock[t] = plan.Clocks[t]
			}
			x.clock[t] = r.clockOn(p.Workers[w].Device, x.clock[t])
		}
	}
	return x, nil
}

// clockOn is a clock if it is allowed on a device, else the first that is.
func (r *rules) clockOn(id platform.DeviceID, clock platform.ClockID) platform.ClockID {
	if slices.Contains(r.clocks[id], clock) {
		return clock
	}
	return r.clocks[id][0]
}
