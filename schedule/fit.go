package schedule

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// Fit knows the workers of each task of a problem, and the time for which a task occupies a worker.
// Tasks with equal
// answers share a class. Each colocation group has a class of its own, which shrinks to one worker when
// its first task is given away. No task may run at a memory that is smaller than its operands.
type Fit struct {
	p       *Problem
	needs   *footprint
	class   []int32               // by task
	allowed [][]bool              // by class and worker
	workers [][]platform.WorkerID // by class, ascending
	group   []bool                // by class: a colocation group
}

func newFit(p *Problem) (*Fit, error) {
	g := p.Graph
	e := &Fit{p: p, needs: newFootprint(p), class: make([]int32, len(g.Tasks))}
	type key struct {
		costs    int32 // whose tasks have one device in their placement
		colocate string
		tooSmall int64 // the largest capacity that is
	}
	byKey := map[key]int32{} // of tasks with a group, or with operands that exceed some memory
	byCosts := slices.Repeat([]int32{-1}, len(p.Costs.ByClass))
	byWorkers := map[string]int32{}
	groups := map[string]int32{} // colocation key to class
	for t := range g.Tasks {
		k, device := key{costs: p.Costs.Class[t], tooSmall: e.needs.tooSmall(dag.TaskID(t))}, ""
		if pl := g.Tasks[t].Placement; pl != nil {
			device, k.colocate = pl.Device, pl.Colocate
		}
		if k.colocate == "" && k.tooSmall == 0 {
			if byCosts[k.costs] < 0 {
				byCosts[k.costs] = e.classOf(byWorkers, allowedWorkers(p, dag.TaskID(t), device, 0))
			}
			e.class[t] = byCosts[k.costs]
			continue
		}
		class, known := byKey[k]
		if !known {
			allowed := allowedWorkers(p, dag.TaskID(t), device, k.tooSmall)
			if k.colocate == "" {
				class = e.classOf(byWorkers, allowed)
			} else {
				class = e.joinGroup(groups, k.colocate, allowed)
			}
			byKey[k] = class
		}
		e.class[t] = class
	}
	for c, allowed := range e.allowed {
		for w, ok := range allowed {
			if ok {
				e.workers[c] = append(e.workers[c], platform.WorkerID(w))
			}
		}
	}
	for t, c := range e.class {
		if len(e.workers[c]) == 0 {
			return nil, e.nowhere(p, dag.TaskID(t))
		}
	}
	return e, nil
}

// NewFit checks a problem and finds the workers of its tasks, for one use. It reuses the work of [Priced]. The error
// names a task that no worker can run.
func NewFit(p *Problem) (*Fit, error) {
	if p.fit == nil {
		if err := p.Check(); err != nil {
			return nil, err
		}
		return newFit(p)
	}
	e, err := p.fit()
	if err != nil {
		return nil, err
	}
	free := *e
	free.p = p
	if !slices.Contains(e.group, true) {
		return &free, nil // Give changes nothing
	}
	free.allowed, free.workers = slices.Clone(e.allowed), slices.Clone(e.workers)
	for c := range free.allowed {
		free.allowed[c], free.workers[c] = slices.Clone(e.allowed[c]), slices.Clone(e.workers[c])
	}
	return &free, nil
}

// Eligible lists the workers that may run each task of a graph, equal lists being one, and the number of the task's
// colocation group. -1 means that it is in none.
func (c *Priced) Eligible(graph int) (workers [][]platform.WorkerID, groups []int32, err error) {
	e, err := c.graphs[graph].fit()
	if err != nil {
		return nil, nil, err
	}
	for _, class := range e.class {
		group := int32(-1)
		if e.group[class] {
			group = class
		}
		workers, groups = append(workers, e.workers[class]), append(groups, group)
	}
	return workers, groups, nil
}

// nowhere says why no worker can run a task.
func (e *Fit) nowhere(p *Problem, t dag.TaskID) error {
	task := &p.Graph.Tasks[t]
	if e.group[e.class[t]] {
		return fmt.Errorf("task %q: no worker can run all tasks that are to share one with it (colocate %q)", task.Name, task.Placement.Colocate)
	}
	placed := ""
	if task.Placement != nil {
		placed = task.Placement.Device
	}
	for _, w := range allowedWorkers(p, t, placed, 0) {
		return fmt.Errorf("task %q could run on %q, %s", task.Name, p.Platform.Workers[w].Name, e.needs.refusal(t, w))
	}
	return fmt.Errorf("task %q: no worker of platform %q can run it", task.Name, p.Platform.Name)
}

// allowedWorkers lists the workers that may run a task, ascending.
func allowedWorkers(p *Problem, t dag.TaskID, placed string, tooSmall int64) (allowed []platform.WorkerID) {
	for d := range p.Costs.Devices(p.Costs.Class[t]) {
		device := &p.Platform.Devices[d]
		if !holds(&p.Platform.Memories[device.Memory], tooSmall) {
			continue
		}
		first, _ := slices.BinarySearchFunc(p.Platform.Workers, d, func(w platform.Worker, d platform.DeviceID) int { return int(w.Device - d) })
		for w := first; w < len(p.Platform.Workers) && p.Platform.Workers[w].Device == d; w++ {
			if placed == "" || placed == p.Platform.Workers[w].Name || placed == device.Name || placed == device.Kind {
				allowed = append(allowed, platform.WorkerID(w))
			}
		}
	}
	return allowed
}

func (e *Fit) classOf(byWorkers map[string]int32, allowed []platform.WorkerID) int32 {
	bytes := make([]byte, 0, 2*len(allowed))
	for _, w := range allowed {
		bytes = binary.AppendUvarint(bytes, uint64(w))
	}
	key := string(bytes)
	class, ok := byWorkers[key]
	if !ok {
		class = e.add(allowed, false)
		byWorkers[key] = class
	}
	return class
}

func (e *Fit) joinGroup(groups map[string]int32, colocate string, allowed []platform.WorkerID) int32 {
	class, ok := groups[colocate]
	if !ok {
		class = e.add(allowed, true)
		groups[colocate] = class
		return class
	}
	for w := range e.allowed[class] {
		e.allowed[class][w] = e.allowed[class][w] && slices.Contains(allowed, platform.WorkerID(w))
	}
	return class
}

func (e *Fit) add(allowed []platform.WorkerID, group bool) int32 {
	may := make([]bool, len(e.p.Platform.Workers))
	for _, w := range allowed {
		may[w] = true
	}
	e.allowed = append(e.allowed, may)
	e.workers = append(e.workers, nil)
	e.group = append(e.group, group)
	return int32(len(e.allowed) - 1)
}

// CanRun reports whether a worker may run a task now: its device has a cost for the task, the task's
// placement allows it, and no other worker has the task's colocation group.
func (e *Fit) CanRun(t dag.TaskID, w platform.WorkerID) bool { return e.allowed[e.class[t]][w] }

// Workers lists the workers for which CanRun holds, ascending. The caller must not keep the list.
func (e *Fit) Workers(t dag.TaskID) []platform.WorkerID { return e.workers[e.class[t]] }

// Class is the number of the class of a task. Tasks of one class may run on the same workers.
func (e *Fit) Class(t dag.TaskID) int32 { return e.class[t] }

// Classes counts the classes.
func (e *Fit) Classes() int { return len(e.allowed) }

// Occupies is the time for which a task keeps a worker, dispatch included. The worker must be able to run it.
func (e *Fit) Occupies(t dag.TaskID, w platform.WorkerID) time.Duration { return e.p.occupies(t, w) }

// Refusal says why a worker cannot run a task, as the end of a sentence that names both.
func (e *Fit) Refusal(t dag.TaskID, w platform.WorkerID) string { return e.needs.refusal(t, w) }

// Give notes that a worker was given a task. The rest of the task's colocation group follows.
func (e *Fit) Give(t dag.TaskID, w platform.WorkerID) {
	c := e.class[t]
	if !e.group[c] || len(e.workers[c]) == 1 {
		return
	}
	clear(e.allowed[c])
	e.allowed[c][w] = true
	e.workers[c] = append(e.workers[c][:0], w)
}
