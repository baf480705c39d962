package dag

import (
	"fmt"
	"slices"
)

// The time and memory of Build grow with the atoms of all storages and of all accesses. Both
// numbers are bounded, the former also by the number of accesses, so that a short file cannot ask
// for gigabytes.
const (
	maxAtoms       = 1 << 26
	maxAtomVisits  = 1 << 26
	freeAtoms      = 1 << 20
	atomsPerAccess = 64
)

// derive fills everything of the graph except Buffers and Tasks.
func (g *Graph) derive() error {
	if err := g.cut(nil); err != nil {
		return err
	}
	for i := range g.Buffers {
		if n := g.Buffers[i].Versions; n > 1 {
			if g.versions == nil {
				g.versions = slices.Repeat([]int32{1}, len(g.Buffers))
			}
			g.versions[i] = int32(n)
		}
	}
	g.Links, g.isCarried, g.isWritten = g.Body().Link()
	return g.checkVersions()
}

// cut finds the atoms of the graph and of its accesses to some storages, or to all if these are nil.
func (g *Graph) cut(only []bool) (err error) {
	if g.grids, err = g.cutStorages(only); err != nil {
		return err
	}
	if err := g.numberAtoms(g.grids); err != nil {
		return err
	}
	if err := g.coverAccesses(g.grids, only); err != nil {
		return err
	}
	return g.checkTaskAliases()
}

// cutStorages finds each storage's refinement and the boundaries of all regions, by storage. A storage without other refinements has no grid if all tasks use the whole of it.
func (g *Graph) cutStorages(only []bool) ([]*grid, error) {
	grids, err := g.refineViewed()
	if err != nil {
		return nil, err
	}
	for t := range g.Tasks {
		for _, a := range g.Tasks[t].Accesses {
			s := g.Storage(a.Buffer)
			if a.Box == nil || only != nil && !only[s] {
				continue
			}
			gr := grids[s]
			if gr == nil {
				gr = newGrid(withoutUnits(g.Buffers[s].Shape))
				grids[s] = gr
			}
			boxes, err := gr.boxesOf(g.Buffers[a.Buffer].Shape, a.Box)
			if err != nil {
				return nil, fmt.Errorf("task %q: buffer %q: %w", g.Tasks[t].Name, g.Buffers[a.Buffer].Name, err)
			}
			for _, box := range boxes {
				gr.addCuts(box)
			}
		}
	}
	return grids, nil
}

// refineViewed makes the grids of storages with views that refine them.
func (g *Graph) refineViewed() ([]*grid, error) {
	view, next := slices.Repeat([]BufferID{None}, len(g.Buffers)), make([]BufferID, len(g.Buffers)) // the first view of a storage, and the one behind a view
	for i := len(g.Buffers) - 1; i >= 0; i-- {
		if s := g.Buffers[i].ViewOf; s != None {
			next[i], view[s] = view[s], BufferID(i)
		}
	}
	grids := make([]*grid, len(g.Buffers))
	var shapes [][]int
	for i := range g.Buffers {
		if view[i] == None {
			continue
		}
		shapes = shapes[:0]
		for v := view[i]; v != None; v = next[v] {
			shapes = append(shapes, g.Buffers[v].Shape)
		}
		fine, err := refine(append(shapes, g.Buffers[i].Shape))
		if err != nil {
			return nil, fmt.Errorf("buffer %q and its views: %w", g.Buffers[i].Name, err)
		}
		if !slices.Equal(withoutUnits(g.Buffers[i].Shape), fine) {
			grids[i] = newGrid(fine)
		}
	}
	return grids, nil
}

// numberAtoms gives every storage a contiguous range of atoms.
func (g *Graph) numberAtoms(grids []*grid) error {
	g.storageAtom = make([]AtomID, 2*len(g.Buffers))
	limit := min(maxAtoms, freeAtoms+atomsPerAccess*g.countAccesses())
	for i, gr := range grids {
		if g.Buffers[i].ViewOf != None {
			continue
		}
		atoms, ok := 1, len(g.atomBytes) < limit
		if gr != nil {
			atoms, ok = gr.sortCuts(limit - len(g.atomBytes))
		}
		if !ok {
			return fmt.Errorf("the regions of buffer %q cut it, with the buffers before, into more than %d pieces; use fewer distinct splits", g.Buffers[i].Name, limit)
		}
		base := AtomID(len(g.atomBytes))
		g.storageAtom[2*i], g.storageAtom[2*i+1] = base, base+AtomID(atoms)
		if gr == nil {
			g.atomBytes = append(g.atomBytes, g.Buffers[i].Bytes())
		} else {
			gr.base = base
			g.atomBytes = gr.appendBytes(g.atomBytes, 0, g.Buffers[i].Type.SizeBytes())
		}
		for range atoms {
			g.atomStorage = append(g.atomStorage, BufferID(i))
		}
	}
	g.atomBytes, g.atomStorage = fit(g.atomBytes), fit(g.atomStorage)
	return nil
}

// checkTaskAliases refuses a task that names an atom twice and writes it at least once: kernels may take their
// operands to be disjoint.
func (g *Graph) checkTaskAliases() error {
	seenBy := make([]int32, g.NumAtoms()) // 1 + access row that covered the atom last
	for t := range g.Tasks {
		covers := g.Covers(TaskID(t))
		for i, a := range covers {
			for _, atom := range g.AtomsOf(a) {
				prev := seenBy[atom] - 1 - g.access[t]
				if prev >= 0 && (a.Mode.Writes() || covers[prev].Mode.Writes()) {
					task := &g.Tasks[t]
					return fmt.Errorf("task %q (%s): operands %d (%s of %q) and %d (%s of %q) overlap; write in place with one readwrite access",
						task.Name, task.Op, prev, task.Accesses[prev].Mode, g.Buffers[task.Accesses[prev].Buffer].Name,
						i, a.Mode, g.Buffers[task.Accesses[i].Buffer].Name)
				}
				seenBy[atom] = g.access[t] + int32(i) + 1
			}
		}
	}
	return nil
}

// Body is the graph as far as the order of its tasks depends on it.
func (g *Graph) Body() *Body {
	body := &Body{Tasks: len(g.Tasks), Atoms: g.NumAtoms(), Keeps: make([]bool, len(g.Buffers)), Versions: g.versions, Edges: g.expectedEdges(),
		Each: func(t TaskID, use Use) {
			for _, a := range g.Covers(t) {
				use(a.Storage, a.Mode, g.AtomsOf(a), 0)
			}
		},
		After: func(t TaskID, tasks []int32) []int32 {
			for _, p := range g.Tasks[t].After {
				tasks = append(tasks, int32(p))
			}
			return tasks
		}}
	for b := range body.Keeps {
		body.Keeps[b] = g.Buffers[b].Role == Parameter || g.Buffers[b].Role == State
	}
	return body
}

// expectedEdges is room for the edges of most graphs: one for each atom of an access.
func (g *Graph) expectedEdges() int {
	const most = 1 << 23
	n := 0
	for _, s := range g.covers {
		n += int(s.end - s.first)
	}
	return min(n, most)
}

// fit returns the list without the capacity that growing left over.
func fit[T any](list []T) []T {
	if cap(list)-len(list) <= len(list)/32 {
		return list
	}
	return append(make([]T, 0, len(list)), list...)
}
