package dag

import "slices"

// Once parts a graph into two. The first has the constant tasks: these depend on nothing but parameters and states, and
// no task writes those. The second has all other tasks. What these read of the first is a state of both graphs, at home
// in the host's memory. So the first graph, of another name, is to run once, and then the second for any number of steps.
// Once returns nil and g where no task is constant.
func (g *Graph) Once(name string) (once, rest *Graph, err error) {
	constant, varies := g.constants()
	if !slices.Contains(constant, true) {
		return nil, g, nil
	}
	buffers := slices.Clone(g.Buffers)
	for t := range g.Tasks {
		for _, a := range g.Tasks[t].Accesses {
			if s := g.Storage(a.Buffer); !constant[t] && a.Mode.Reads() && g.isWritten[s] && !varies[s] {
				buffers[s].Role, buffers[s].Home, buffers[s].Versions = State, HostHome, 0
			}
		}
	}
	if once, err = g.part(name, buffers, constant, true); err == nil {
		rest, err = g.part(g.Name, buffers, constant, false)
	}
	return once, rest, err
}

// Constant marks the tasks with equal results in every step, as [Graph.Once] has them.
func (g *Graph) Constant() []bool {
	constant, _ := g.constants()
	return constant
}

// constants marks the constant tasks, and the storages with contents that vary from step to step. A task is constant if it
// reads something, and reads and writes nothing that varies.
func (g *Graph) constants() (constant, varies []bool) {
	constant, varies = make([]bool, len(g.Tasks)), make([]bool, len(g.Buffers))
	for b := range varies {
		varies[b] = g.isWritten[b] == g.isCarried[b] // neither is an input, and both is a state that changes
	}
	for t := range g.Tasks {
		constant[t] = slices.ContainsFunc(g.Tasks[t].Accesses, func(a Access) bool { return a.Mode.Reads() })
	}
	for changed := true; changed; {
		changed = false
		for t := range g.Tasks {
			accesses := g.Tasks[t].Accesses
			constant[t] = constant[t] && !slices.ContainsFunc(accesses, func(a Access) bool { return varies[g.Storage(a.Buffer)] })
			for _, a := range accesses {
				if s := g.Storage(a.Buffer); !constant[t] && a.Mode.Writes() && !varies[s] {
					varies[s], changed = true, true
				}
			}
		}
	}
	return constant, varies
}

// part is a graph of some tasks in their order, marked or not, with their buffers. Buffers without a task belong to the
// marked ones.
func (g *Graph) part(name string, buffers []Buffer, marks []bool, marked bool) (*Graph, error) {
	used, others := make([]bool, len(buffers)), make([]bool, len(buffers))
	for t := range g.Tasks {
		by := used
		if marks[t] != marked {
			by = others
		}
		for _, a := range g.Tasks[t].Accesses {
			by[a.Buffer], by[g.Storage(a.Buffer)] = true, true
		}
	}
	b := NewBuilder(name)
	newID := make([]BufferID, len(buffers))
	for i := range buffers {
		switch buf := &buffers[i]; {
		case !used[i] && (others[i] || others[g.Storage(BufferID(i))] || !marked):
		case buf.ViewOf == None:
			newID[i] = b.Buffer(*buf)
		default:
			newID[i] = b.View(buf.Name, newID[buf.ViewOf], buf.Shape...)
		}
	}
	newTask := make([]TaskID, len(g.Tasks))
	for t := range g.Tasks {
		if marks[t] != marked {
			continue
		}
		task := g.Tasks[t]
		task.Accesses, task.After = slices.Clone(task.Accesses), nil
		for i := range task.Accesses {
			task.Accesses[i].Buffer = newID[task.Accesses[i].Buffer]
		}
		for _, p := range g.Tasks[t].After {
			if marks[p] == marked {
				task.After = append(task.After, newTask[p])
			}
		}
		newTask[t] = b.Task(task)
	}
	return b.Build()
}
