package dag

import (
	"fmt"
	"math"
	"slices"
)

// maxAtomVisits bounds the atoms visited by one pass over the tasks, and with it
// the time and memory of Build.
const maxAtomVisits = 1 << 28

// grid cuts one storage into atoms: the cells between neighbouring cuts of each
// dimension of its refinement.
type grid struct {
	fine []int
	cuts [][]int // per dimension, ascending, from 0 to the extent
	base AtomID
}

// derive fills everything of the graph but Buffers and Tasks.
func (g *Graph) derive() error {
	grids, err := g.cutStorages()
	if err != nil {
		return err
	}
	if err := g.coverAccesses(grids); err != nil {
		return err
	}
	if err := g.checkTaskAliases(); err != nil {
		return err
	}
	g.findCarried()
	g.deriveEdges()
	g.rankNames()
	return nil
}

// cutStorages finds each storage's refinement and the boundaries of all regions.
func (g *Graph) cutStorages() ([]*grid, error) {
	shapes := make(map[BufferID][][]int)
	for i := range g.Buffers {
		s := g.Storage(BufferID(i))
		shapes[s] = append(shapes[s], g.Buffers[i].Shape)
	}
	grids := make([]*grid, len(g.Buffers))
	for i := range g.Buffers {
		id := BufferID(i)
		if s := g.Storage(id); s != id {
			grids[i] = grids[s] // owners come before their views
			continue
		}
		fine, err := refine(shapes[id])
		if err != nil {
			return nil, fmt.Errorf("buffer %q and its views: %w", g.Buffers[i].Name, err)
		}
		grids[i] = &grid{fine: fine, cuts: make([][]int, len(fine))}
		for d, e := range fine {
			grids[i].cuts[d] = []int{0, e}
		}
	}
	for t := range g.Tasks {
		for _, a := range g.Tasks[t].Accesses {
			if a.Box == nil {
				continue
			}
			gr := grids[a.Buffer]
			for _, box := range toFine(g.Buffers[a.Buffer].Shape, gr.fine, a.Box) {
				gr.addCuts(box)
			}
		}
	}
	return grids, g.numberAtoms(grids)
}

// addCuts notes the boundaries of a box. The lists are compacted whenever they
// are full, so they stay proportional to the number of distinct cuts.
func (gr *grid) addCuts(box Box) {
	for d, r := range box {
		if r.Lo == 0 && r.Hi == gr.fine[d] {
			continue
		}
		c := gr.cuts[d]
		if len(c)+2 > cap(c) {
			slices.Sort(c)
			c = slices.Compact(c)
			c = slices.Grow(c, len(c)+2)
		}
		c = append(c, r.Lo, r.Hi)
		gr.cuts[d] = c
	}
}

// numberAtoms gives every storage a contiguous range of atoms.
func (g *Graph) numberAtoms(grids []*grid) error {
	g.storageAtom = make([]AtomID, 2*len(g.Buffers))
	for i, gr := range grids {
		if g.Storage(BufferID(i)) != BufferID(i) {
			continue
		}
		atoms := 1
		for d := range gr.cuts {
			slices.Sort(gr.cuts[d])
			gr.cuts[d] = slices.Compact(gr.cuts[d])
			atoms *= len(gr.cuts[d]) - 1
			if atoms > maxAtomVisits-len(g.atomStorage) {
				return fmt.Errorf("the regions of buffer %q cut it into more than %d pieces; use fewer distinct splits", g.Buffers[i].Name, maxAtomVisits)
			}
		}
		gr.base = AtomID(len(g.atomStorage))
		g.storageAtom[2*i], g.storageAtom[2*i+1] = gr.base, gr.base+AtomID(atoms)
		gr.eachCell(gr.all(), func(_ int, elems int64) {
			g.atomStorage = append(g.atomStorage, BufferID(i))
			g.atomElems = append(g.atomElems, elems)
		})
	}
	return nil
}

// all is the cell range of the whole storage.
func (gr *grid) all() Box {
	cells := make(Box, len(gr.cuts))
	for d := range gr.cuts {
		cells[d] = Range{0, len(gr.cuts[d]) - 1}
	}
	return cells
}

// cells turns a box over the refinement into a box of cell indices.
func (gr *grid) cells(box Box) Box {
	cells := make(Box, len(box))
	for d, r := range box {
		lo, _ := slices.BinarySearch(gr.cuts[d], r.Lo)
		hi, _ := slices.BinarySearch(gr.cuts[d], r.Hi)
		cells[d] = Range{lo, hi}
	}
	return cells
}

// eachCell visits the cells of a cell box in row-major order with their index
// within the storage and their size in elements.
func (gr *grid) eachCell(cells Box, visit func(index int, elems int64)) {
	var walk func(d, index int, elems int64)
	walk = func(d, index int, elems int64) {
		if d == len(cells) {
			visit(index, elems)
			return
		}
		n := len(gr.cuts[d]) - 1
		for c := cells[d].Lo; c < cells[d].Hi; c++ {
			walk(d+1, index*n+c, elems*int64(gr.cuts[d][c+1]-gr.cuts[d][c]))
		}
	}
	walk(0, 0, 1)
}

// coverAccesses lists the atoms of every access.
func (g *Graph) coverAccesses(grids []*grid) error {
	g.access = make([]int32, len(g.Tasks)+1)
	g.atoms.start = append(g.atoms.start, 0)
	for t := range g.Tasks {
		for _, a := range g.Tasks[t].Accesses {
			gr := grids[a.Buffer]
			if first, end := g.StorageAtoms(a.Buffer); end-first == 1 {
				g.atoms.to = append(g.atoms.to, int32(first))
			} else {
				for _, box := range toFine(g.Buffers[a.Buffer].Shape, gr.fine, a.Box) {
					gr.eachCell(gr.cells(box), func(index int, _ int64) {
						g.atoms.to = append(g.atoms.to, int32(gr.base)+int32(index))
					})
				}
			}
			if len(g.atoms.to) > maxAtomVisits {
				return fmt.Errorf("task %q: the accesses so far cover more than %d pieces of their buffers; use fewer or coarser splits", g.Tasks[t].Name, maxAtomVisits)
			}
			g.atoms.start = append(g.atoms.start, int32(len(g.atoms.to)))
		}
		g.access[t+1] = int32(len(g.atoms.start) - 1)
	}
	return nil
}

// checkTaskAliases refuses a task that names an atom twice with a write among
// the two: kernels may assume that their operands do not overlap.
func (g *Graph) checkTaskAliases() error {
	seenBy := make([]int32, g.NumAtoms()) // 1 + access row that covered the atom last
	for t := range g.Tasks {
		task := &g.Tasks[t]
		for i, a := range task.Accesses {
			for _, atom := range g.Atoms(TaskID(t), i) {
				prev := seenBy[atom] - 1 - g.access[t]
				if prev >= 0 && (a.Mode.Writes() || task.Accesses[prev].Mode.Writes()) {
					return fmt.Errorf("task %q (%s): operands %d (%s of %q) and %d (%s of %q) overlap; write in place with one readwrite access",
						task.Name, task.Op, prev, task.Accesses[prev].Mode, g.Buffers[task.Accesses[prev].Buffer].Name,
						i, a.Mode, g.Buffers[a.Buffer].Name)
				}
				seenBy[atom] = g.access[t] + int32(i) + 1
			}
		}
	}
	return nil
}

// findCarried marks the storages that keep their contents from step to step.
func (g *Graph) findCarried() {
	g.isCarried = make([]bool, len(g.Buffers))
	readFirst := make([]bool, len(g.Buffers))
	written := make([]bool, g.NumAtoms())
	anyWrite := make([]bool, len(g.Buffers))
	for t := range g.Tasks {
		for i, a := range g.Tasks[t].Accesses {
			s := g.Storage(a.Buffer)
			anyWrite[s] = anyWrite[s] || a.Mode.Writes()
			for _, atom := range g.Atoms(TaskID(t), i) {
				// A Reduce starts from nothing, so it does not read what the last step left.
				if !written[atom] && (a.Mode == Read || a.Mode == ReadWrite) {
					readFirst[s] = true
				}
				written[atom] = written[atom] || a.Mode.Writes()
			}
		}
	}
	for i := range g.Buffers {
		role := g.Buffers[i].Role
		g.isCarried[i] = role == Parameter || role == State || readFirst[i] && anyWrite[i]
	}
}

// hazards is the state of the pass over the tasks: per atom the last writer and
// the readers since, as linked lists in one pool.
type hazards struct {
	writer  []int32 // -1: none
	readers []int32 // head of the list in pool, -1: empty
	pool    []reader
	free    int32
}

type reader struct{ task, next int32 }

func newHazards(atoms int) *hazards {
	h := &hazards{writer: make([]int32, atoms), readers: make([]int32, atoms), free: -1}
	for i := range atoms {
		h.writer[i], h.readers[i] = -1, -1
	}
	return h
}

// visit reports the tasks that the access must follow and records it.
func (h *hazards) visit(task, atom int32, mode Mode, follow func(int32)) {
	if w := h.writer[atom]; w >= 0 {
		follow(w)
	}
	if !mode.Writes() {
		h.addReader(task, atom)
		return
	}
	for r := h.readers[atom]; r >= 0; {
		follow(h.pool[r].task)
		next := h.pool[r].next
		h.pool[r].next, h.free = h.free, r
		r = next
	}
	h.writer[atom], h.readers[atom] = task, -1
}

func (h *hazards) addReader(task, atom int32) {
	node := reader{task, h.readers[atom]}
	if h.free >= 0 {
		h.readers[atom] = h.free
		h.free = h.pool[h.free].next
		h.pool[h.readers[atom]] = node
		return
	}
	h.pool = append(h.pool, node)
	h.readers[atom] = int32(len(h.pool) - 1)
}

// deriveEdges runs over two consecutive steps. Edges within the first are the
// graph's; edges from the first into the second are carried, or, for storages
// that are rewritten in every step, order the reuse of one instance.
func (g *Graph) deriveEdges() {
	n := int32(len(g.Tasks))
	h := newHazards(g.NumAtoms())
	met := make([]int32, n) // the last row in which a task was noted
	for i := range met {
		met[i] = math.MinInt32
	}
	row := int32(0)
	note := func(e *edges, p int32) {
		if met[p] != row {
			met[p] = row
			e.to = append(e.to, p)
		}
	}
	closeRow := func(e *edges) {
		slices.Sort(e.to[e.start[len(e.start)-1]:])
		e.start = append(e.start, int32(len(e.to)))
		row++
	}
	for _, e := range []*edges{&g.preds, &g.carried, &g.reuse} {
		e.start = append(make([]int32, 0, n+1), 0)
	}

	for t := range n {
		for i, a := range g.Tasks[t].Accesses {
			for _, atom := range g.Atoms(TaskID(t), i) {
				h.visit(t, atom, a.Mode, func(p int32) {
					if p != t {
						note(&g.preds, p)
					}
				})
			}
		}
		for _, p := range g.Tasks[t].After {
			note(&g.preds, int32(p))
		}
		closeRow(&g.preds)
	}
	for t := range n {
		for _, pass := range []struct {
			e       *edges
			carried bool
		}{{&g.carried, true}, {&g.reuse, false}} {
			for i, a := range g.Tasks[t].Accesses {
				if g.isCarried[g.Storage(a.Buffer)] != pass.carried {
					continue
				}
				for _, atom := range g.Atoms(TaskID(t), i) {
					h.visit(n+t, atom, a.Mode, func(p int32) {
						if p < n {
							note(pass.e, p)
						}
					})
				}
			}
			closeRow(pass.e)
		}
	}
	g.succs = g.preds.transpose(int(n))
	g.carriedSuccs = g.carried.transpose(int(n))
	g.reuseSuccs = g.reuse.transpose(int(n))
}
