package improve

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/ready"
)

// point is a plan as the search changes it. The tasks are in one sequence in which each comes after those
// that it waits for; a worker runs its tasks in that order. So every point is a plan that can run.
type point struct {
	sequence []int32 // tasks
	at       []int32 // by task: its place in the sequence
	worker   []platform.WorkerID
	clock    []int32
}

func newPoint(n int) *point {
	return &point{sequence: make([]int32, n), at: make([]int32, n), worker: make([]platform.WorkerID, n), clock: make([]int32, n)}
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

// rules say which points are plans that a decision accepts.
type rules struct {
	graph   *dag.Graph
	workers [][]platform.WorkerID // by task: those that may run it; the same list for like tasks
	clocks  [][]int32             // by device: those allowed
	group   [][]int32             // by task: those that share its worker, itself included; nil: it stands alone
}

func newRules(priced *schedule.Priced, o *Options) (*rules, error) {
	g, p := priced.Program.Graphs[0], priced.Platform
	r := &rules{graph: g, workers: make([][]platform.WorkerID, len(g.Tasks)), group: make([][]int32, len(g.Tasks))}
	for id := range p.Devices {
		own := []int32(nil)
		if id < len(o.Clocks) {
			own = o.Clocks[id]
		}
		for c := range max(1, len(p.Devices[id].Clocks)) {
			if own == nil || slices.Contains(own, int32(c)) {
				for len(r.clocks) <= id {
					r.clocks = append(r.clocks, nil)
				}
				r.clocks[id] = append(r.clocks[id], int32(c))
			}
		}
		if len(r.clocks) <= id {
			return nil, fmt.Errorf("none of the clocks allowed of device %q is one of its own", p.Devices[id].Name)
		}
	}
	groups, known := map[string][]int32{}, map[string][]platform.WorkerID{}
	for t := range g.Tasks {
		pl := g.Tasks[t].Placement
		key := fmt.Sprint(priced.Costs(0).Class[t])
		if pl != nil {
			key = fmt.Sprint(key, " ", pl.Device)
		}
		if _, ok := known[key]; !ok {
			known[key] = allowed(priced, dag.TaskID(t))
		}
		r.workers[t] = known[key]
		if pl != nil && pl.Colocate != "" {
			groups[pl.Colocate] = append(groups[pl.Colocate], int32(t))
		}
	}
	for _, group := range groups {
		r.join(group)
	}
	return r, nil
}

// join lets the tasks of a group run only where all of them can.
func (r *rules) join(group []int32) {
	var all []platform.WorkerID
	for _, w := range r.workers[group[0]] {
		if !slices.ContainsFunc(group, func(t int32) bool { return !slices.Contains(r.workers[t], w) }) {
			all = append(all, w)
		}
	}
	for _, t := range group {
		r.workers[t], r.group[t] = all, group
	}
}

// allowed lists the workers that can run a task and on which it may be placed.
func allowed(priced *schedule.Priced, t dag.TaskID) (all []platform.WorkerID) {
	p, pl := priced.Platform, priced.Program.Graphs[0].Tasks[t].Placement
	for w := range p.Workers {
		worker := &p.Workers[w]
		device := &p.Devices[worker.Device]
		_, runs := priced.Costs(0).Of(t, worker.Device)
		if runs && (pl == nil || slices.Contains([]string{"", worker.Name, device.Name, device.Kind}, pl.Device)) {
			all = append(all, platform.WorkerID(w))
		}
	}
	return all
}

// pointOf is the point of a plan. What the plan says of clocks that are not allowed does not hold.
func (r *rules) pointOf(p *platform.Platform, plan *schedule.Plan) (*point, error) {
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
			x.worker[t], x.clock[t] = platform.WorkerID(w), int32(device.AtClock)
			if name, ok := plan.Clocks[r.graph.Tasks[t].Name]; ok {
				x.clock[t] = int32(device.ClockIndex(name))
			}
			x.clock[t] = r.clockOn(p.Workers[w].Device, x.clock[t])
		}
	}
	return x, nil
}

// clockOn is a clock if it is allowed on a device, else the first that is.
func (r *rules) clockOn(id platform.DeviceID, clock int32) int32 {
	if slices.Contains(r.clocks[id], clock) {
		return clock
	}
	return r.clocks[id][0]
}

// room is the first and the last place of the sequence to which a task may move.
func (r *rules) room(x *point, t int32) (first, last int32) {
	first, last = 0, int32(len(x.sequence))-1
	for _, before := range r.graph.Preds(dag.TaskID(t)) {
		first = max(first, x.at[before]+1)
	}
	for _, after := range r.graph.Succs(dag.TaskID(t)) {
		last = min(last, x.at[after]-1)
	}
	return first, last
}

// pick is a random element.
func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }
