package layout

import (
	"fmt"
	"maps"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// OnDemand places storages in every memory but the host's, for policies that decide at run
// time which contents are there. A memory gets a place for every storage of a task that may run
// there. No arena is larger than the memory. The result is by graph and memory; nil for the
// host's memory.
//
// Inputs that no task of any graph writes go to the data arena, at equal places for all graphs.
// All other storages go to the step arena: one beside the other if all fit. If not, storages
// share bytes, and whoever decides lets only one of them be there at a time. Storages that one task
// names never share bytes, and inputs never do, since they stay all the time. As every storage
// has one place, no gaps arise: whatever is admitted has its bytes. A storage without a
// place is Elsewhere, and its tasks run at other memories.
//
// CanRun says which devices can run a task. Scratch is the bytes of kernel workspace by graph and
// memory. OnDemand fails when a memory cannot hold the workspace or a storage whose home it is.
func OnDemand(prog *dag.Program, p *platform.Platform, canRun CanRun, scratch [][]int64) ([][]*Layout, error) {
	layouts := make([][]*Layout, len(prog.Graphs))
	for i := range layouts {
		layouts[i] = make([]*Layout, len(p.Memories))
	}
	for m := range p.Memories {
		if platform.MemoryID(m) == p.HostMemory() {
			continue
		}
		d, err := newDemand(prog, p, platform.MemoryID(m), canRun, scratch)
		if err != nil {
			return nil, fmt.Errorf("memory %q: %w", p.Memories[m].Name, err)
		}
		for i := range prog.Graphs {
			if layouts[i][m], err = d.layOut(i); err != nil {
				return nil, fmt.Errorf("memory %q, graph %q: %w", p.Memories[m].Name, prog.Graphs[i].Name, err)
			}
		}
	}
	return layouts, nil
}

// demand is the storages that may be wanted in one memory.
type demand struct {
	prog    *dag.Program
	p       *platform.Platform
	memory  platform.MemoryID
	wanted  [][]bool         // by graph and storage
	inputs  map[string]int64 // by name: offset in the data arena
	scratch []int64          // by graph
	data    int64            // bytes of the data arena
	room    int64            // bytes for the step arena; < 0: unlimited
}

// CanRun reports whether a device can run a task of a graph.
type CanRun func(graph int, t dag.TaskID, d platform.DeviceID) bool

func newDemand(prog *dag.Program, p *platform.Platform, m platform.MemoryID, canRun CanRun, scratch [][]int64) (*demand, error) {
	d := &demand{prog: prog, p: p, memory: m, inputs: map[string]int64{}, room: -1, scratch: make([]int64, len(prog.Graphs))}
	most := int64(0)
	for i := range prog.Graphs {
		d.wanted = append(d.wanted, d.wantedOf(i, canRun))
		d.scratch[i] = Align(scratch[i][m])
		most = max(most, d.scratch[i])
	}
	limit := p.Memories[m].CapacityBytes
	if limit > 0 && most > limit {
		return nil, fmt.Errorf("the workspace of its kernels has %s, the memory %s", platform.ShortBytes(most), platform.ShortBytes(limit))
	}
	if limit > 0 {
		d.room = limit - most
	}
	d.placeInputs()
	return d, nil
}

// wantedOf marks the storages of the tasks that can run at the memory, and the storages whose
// home it is.
func (d *demand) wantedOf(graph int, canRun CanRun) []bool {
	g := d.prog.Graphs[graph]
	wanted := make([]bool, len(g.Buffers))
	for b := range g.Buffers {
		wanted[b] = g.Buffers[b].ViewOf == dag.None && g.Buffers[b].Home == d.p.Memories[d.memory].Name
	}
	for t := range g.Tasks {
		for i := range d.p.Devices {
			if d.p.Devices[i].Memory != d.memory || !canRun(graph, dag.TaskID(t), platform.DeviceID(i)) {
				continue
			}
			for _, a := range g.Tasks[t].Accesses {
				wanted[g.Storage(a.Buffer)] = true
			}
		}
	}
	return wanted
}

// placeInputs fills the data arena in the order of names. It leaves out inputs that do not fit.
func (d *demand) placeInputs() {
	sizes, written := map[string]int64{}, map[string]bool{}
	for i, g := range d.prog.Graphs {
		isWritten := g.WrittenStorages()
		for b := range g.Buffers {
			buf := &g.Buffers[b]
			written[buf.Name] = written[buf.Name] || isWritten[b] || buf.Home != ""
			if d.wanted[i][b] && buf.Role == dag.Input {
				sizes[buf.Name] = Align(buf.Bytes())
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		if written[name] {
			continue
		}
		d.inputs[name] = Elsewhere
		if d.room < 0 || sizes[name] <= d.room {
			d.inputs[name] = d.data
			d.data += sizes[name]
			if d.room >= 0 {
				d.room -= sizes[name]
			}
		}
	}
}

// layOut places the storages of one graph.
func (d *demand) layOut(graph int) (*Layout, error) {
	g := d.prog.Graphs[graph]
	l := &Layout{Arena: make([]Arena, len(g.Buffers)), Offset: make([]int64, len(g.Buffers))}
	l.ArenaBytes[DataArena], l.ArenaBytes[ScratchArena] = d.data, d.scratch[graph]
	var step []dag.BufferID
	total := int64(0)
	for b := range g.Buffers {
		l.Arena[b], l.Offset[b] = StepArena, Elsewhere
		if !d.wanted[graph][b] {
			continue
		}
		if at, ok := d.inputs[g.Buffers[b].Name]; ok {
			l.Arena[b], l.Offset[b] = DataArena, at
			continue
		}
		step = append(step, dag.BufferID(b))
		l.Offset[b] = total // one beside the other
		total += Align(g.Buffers[b].Bytes())
	}
	if d.room >= 0 && total > d.room {
		if err := l.overlay(g, step, d.room&^(Alignment-1), d.p.Memories[d.memory].Name); err != nil {
			return nil, err
		}
	}
	for _, b := range step {
		if l.Offset[b] == Elsewhere && g.Buffers[b].Home == d.p.Memories[d.memory].Name {
			return nil, fmt.Errorf("buffer %q of %s, which is at home there, has no place in %s", g.Buffers[b].Name, platform.ShortBytes(g.Buffers[b].Bytes()), platform.ShortBytes(d.room))
		}
		if l.Offset[b] != Elsewhere {
			l.ArenaBytes[StepArena] = max(l.ArenaBytes[StepArena], l.Offset[b]+Align(g.Buffers[b].Bytes()))
		}
	}
	for b := range g.Buffers {
		owner := g.Storage(dag.BufferID(b))
		l.Arena[b], l.Offset[b] = l.Arena[owner], l.Offset[owner]
	}
	return l, nil
}
