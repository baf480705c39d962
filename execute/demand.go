package execute

import (
	"fmt"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/layout"
	"dahl/schedule/place"
)

// bindOnDemand binds every task on every device worker that may run it, and the contents that
// each memory needs before a run. Nothing is left to bind when the policy decides.
func (r *Runner) bindOnDemand(c *compiledGraph) error {
	c.planes, c.rows = r.planesOf(c), rowsOf(c.graph)
	c.launches = make([][]launchID, len(r.lanes))
	return r.onDevices(func(d *device) (err error) {
		b := deviceBinder{Runner: r, compiledGraph: c, device: d, pace: paceOf(r.platform)}
		for _, l := range d.lanes {
			if l.queue == nil {
				l.queue = &orderQueue{}
			}
			if l.Worker < 0 {
				continue
			}
			if c.launches[l.id], err = b.bindAll(l); err != nil {
				return err
			}
		}
		c.enter = append(c.enter, r.constants(c, d)...)
		return nil
	})
}

// bindAll binds the tasks that may run on a lane; -1 for tasks that do nothing or run elsewhere.
func (b *deviceBinder) bindAll(l *deviceLane) (launches []launchID, err error) {
	launches = make([]launchID, len(b.graph.Tasks))
	for t := range launches {
		launches[t] = -1
		if k, _ := b.kernels.Lookup(b.graph.Tasks[t].Op); k == nil || k.Host || !b.runsHere(dag.TaskID(t), l) {
			continue
		}
		if launches[t], err = b.bindTask(dag.TaskID(t), int32(l.id), 0); err != nil {
			return nil, err
		}
	}
	return launches, nil
}

// runsHere reports whether a task has a cost on a lane's worker and places for all its operands.
func (b *deviceBinder) runsHere(t dag.TaskID, l *deviceLane) bool {
	_, ok := b.costOf(t, b.platform.Workers[l.Worker].Device)
	for _, a := range b.graph.Tasks[t].Accesses {
		ok = ok && b.compiledGraph.layouts[b.device.memory].Offset[a.Buffer] != layout.Elsewhere
	}
	return ok
}

// planesOf finds where every storage begins in every memory; zero where it has no place.
func (r *Runner) planesOf(c *compiledGraph) [][]plane {
	planes := make([][]plane, len(c.layouts))
	for m, l := range c.layouts {
		planes[m] = make([]plane, len(c.graph.Buffers))
		id := platform.MemoryID(m)
		if l == nil || id != r.platform.HostMemory() && r.devices[m] == nil {
			continue
		}
		for b := range planes[m] {
			if l.Offset[b] != layout.Elsewhere {
				planes[m][b] = r.planeOf(c, id, dag.BufferID(b), 0)
			}
		}
	}
	return planes
}

// constants are the contents that a device's memory needs before a run and the Engine does not
// bring there: storages that no task of the graph writes, and storages at home there. Between
// runs the host's memory has everything.
func (r *Runner) constants(c *compiledGraph, d *device) (moves []*boundMove) {
	g, p := c.graph, r.platform
	written := g.WrittenStorages()
	for i := range g.Buffers {
		b := &g.Buffers[i]
		constant := b.Home == "" && !written[i]
		if b.ViewOf != dag.None || c.layouts[d.memory].Offset[i] == layout.Elsewhere || !constant && b.Home != p.Memories[d.memory].Name {
			continue
		}
		whole := copyOfBytes(c.planes[d.memory][i], c.planes[p.HostMemory()][i], b.Bytes())
		moves = append(moves, &boundMove{device: d, copies: []deviceCopy{*whole}, Move: &place.Move{Buffer: dag.BufferID(i), Bytes: b.Bytes(),
			From: p.HostMemory(), To: d.memory, Anywhere: c.layouts[d.memory].Arena[i] == layout.DataArena}})
	}
	return moves
}

// leaveOnDemand moves storages home that keep their contents and that only devices have after a
// run. If the run was cut short, a task may have been about to write them.
func (r *Runner) leaveOnDemand(j *job) error {
	c, host := j.graph, r.platform.HostMemory()
	for d := range r.eachDevice {
		home := boundMove{device: d, Move: &place.Move{From: d.memory, To: host}}
		for i := range c.graph.Buffers {
			id := dag.BufferID(i)
			if c.graph.Buffers[i].ViewOf != dag.None || !c.graph.Carried(id) && c.graph.Buffers[i].Home == "" {
				continue
			}
			t := schedule.Transfer{Buffer: id, From: d.memory, To: host}
			for a, end := c.graph.StorageAtoms(id); a < end; a++ {
				if r.firstHolder(j, a) == t.From {
					t.Atoms = append(t.Atoms, int32(a))
					t.Bytes += c.graph.AtomBytes(a)
				}
			}
			home.copies = c.appendTransfer(home.copies, &t)
		}
		if len(home.copies) == 0 {
			continue
		}
		if _, err := home.do(j.now); err != nil {
			return &deviceError{d.name, fmt.Errorf("move what it holds home: %w", err)}
		}
	}
	return nil
}

// firstHolder is the host's memory if it has an atom, else the first memory that has it.
func (r *Runner) firstHolder(j *job, a dag.AtomID) platform.MemoryID {
	e, host := j.dynamic.engine, r.platform.HostMemory()
	if e.Holds(host, a) {
		return host
	}
	for d := range r.eachDevice {
		if e.Holds(d.memory, a) {
			return d.memory
		}
	}
	return host // no memory has it
}
