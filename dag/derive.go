package dag

import (
	"fmt"
	"slices"
	"sync"
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

// derive fills everything of the graph except Buffers and Tasks. A second core can meanwhile find
// the order of names, which depends on nothing else.
func (g *Graph) derive() error {
	var ranked sync.WaitGroup
	ranked.Go(g.rankNames)
	defer ranked.Wait()
	grids, err := g.cutStorages()
	if err != nil {
		return err
	}
	if err := g.numberAtoms(grids); err != nil {
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
	return nil
}

// cutStorages finds each storage's refinement and the boundaries of all regions.
func (g *Graph) cutStorages() ([]*grid, error) {
	views := make(map[BufferID][][]int) // their shapes, by storage
	for i := range g.Buffers {
		if s := g.Buffers[i].ViewOf; s != None {
			views[s] = append(views[s], g.Buffers[i].Shape)
		}
	}
	grids := make([]*grid, len(g.Buffers))
	for i := range g.Buffers {
		id := BufferID(i)
		if s := g.Storage(id); s != id {
			grids[i] = grids[s] // owners come before their views
			continue
		}
		fine, err := refine(append(views[id], g.Buffers[i].Shape))
		if err != nil {
			return nil, fmt.Errorf("buffer %q and its views: %w", g.Buffers[i].Name, err)
		}
		grids[i] = newGrid(fine)
	}
	for t := range g.Tasks {
		for _, a := range g.Tasks[t].Accesses {
			if a.Box == nil {
				continue
			}
			gr := grids[a.Buffer]
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

// numberAtoms gives every storage a contiguous range of atoms.
func (g *Graph) numberAtoms(grids []*grid) error {
	g.storageAtom = make([]AtomID, 2*len(g.Buffers))
	limit := min(maxAtoms, freeAtoms+atomsPerAccess*g.countAccesses())
	for i, gr := range grids {
		if g.Storage(BufferID(i)) != BufferID(i) {
			continue
		}
		atoms, ok := gr.sortCuts(limit - len(g.atomElems))
		if !ok {
			return fmt.Errorf("the regions of buffer %q cut it, with the buffers before, into more than %d pieces; use fewer distinct splits", g.Buffers[i].Name, limit)
		}
		gr.base = AtomID(len(g.atomElems))
		g.storageAtom[2*i], g.storageAtom[2*i+1] = gr.base, gr.base+AtomID(atoms)
		g.atomElems = gr.appendElems(g.atomElems, 0, 1)
		for range atoms {
			g.atomStorage = append(g.atomStorage, BufferID(i))
		}
	}
	g.atomElems, g.atomStorage = fit(g.atomElems), fit(g.atomStorage)
	return nil
}

// checkTaskAliases refuses a task that names an atom twice and writes it at least once, since
// kernels may assume that their operands do not overlap.
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
				// A Reduce starts from nothing, so it does not read the contents of the last
				// step.
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

// hazards is the state of the pass over the tasks: per atom the last writer and the readers
// since, as linked lists in one pool. The pool is in chunks, since it can outgrow the graph and
// growing one list would copy it.
type hazards struct {
	writer  []int32 // -1: none
	readers []int32 // head of the list in pool, -1: empty
	pool    []*[readerChunk]reader
	used    int32 // of the pool
	free    int32 // head of the list of entries to use again, -1: empty
}

type reader struct{ task, next int32 }

const readerChunk = 1 << 13

func (h *hazards) reader(r int32) *reader { return &h.pool[r/readerChunk][r%readerChunk] }

func newHazards(atoms int) *hazards {
	h := &hazards{writer: make([]int32, atoms), readers: make([]int32, atoms), free: -1}
	for i := range atoms {
		h.writer[i], h.readers[i] = -1, -1
	}
	return h
}

// visit appends the tasks that the access must follow, and records it.
func (h *hazards) visit(follow []int32, task, atom int32, mode Mode) []int32 {
	if w := h.writer[atom]; w >= 0 {
		follow = append(follow, w)
	}
	if !mode.Writes() {
		h.addReader(task, atom)
		return follow
	}
	for r := h.readers[atom]; r >= 0; {
		is := h.reader(r)
		follow = append(follow, is.task)
		next := is.next
		is.next, h.free = h.free, r
		r = next
	}
	h.writer[atom], h.readers[atom] = task, -1
	return follow
}

func (h *hazards) addReader(task, atom int32) {
	r := h.free
	switch {
	case r >= 0:
		h.free = h.reader(r).next
	case h.used%readerChunk == 0:
		h.pool = append(h.pool, new([readerChunk]reader))
		fallthrough
	default:
		r = h.used
		h.used++
	}
	*h.reader(r) = reader{task, h.readers[atom]}
	h.readers[atom] = r
}

// deriveEdges runs over two consecutive steps. Edges within the first step are the graph's. Edges
// from the first step into the second are carried, or, for storages rewritten in every step,
// order the reuse of one instance.
func (g *Graph) deriveEdges() {
	n := int32(len(g.Tasks))
	h := newHazards(g.NumAtoms())
	for _, e := range []*edges{&g.preds, &g.carried, &g.reuse} {
		e.start = append(make([]int32, 0, n+1), 0)
	}
	g.preds.to = make([]int32, 0, g.expectedEdges())
	for t := range n {
		for i, a := range g.Tasks[t].Accesses {
			for _, atom := range g.Atoms(TaskID(t), i) {
				g.preds.to = h.visit(g.preds.to, t, atom, a.Mode)
			}
		}
		for _, p := range g.Tasks[t].After {
			g.preds.to = append(g.preds.to, int32(p))
		}
		g.preds.closeRow(t)
	}
	g.carried.to, g.reuse.to = make([]int32, 0, len(g.preds.to)/2), make([]int32, 0, len(g.preds.to)/2)
	for t := range n {
		for i, a := range g.Tasks[t].Accesses {
			across := &g.reuse
			if g.isCarried[g.Storage(a.Buffer)] {
				across = &g.carried
			}
			for _, atom := range g.Atoms(TaskID(t), i) {
				across.to = h.visit(across.to, n+t, atom, a.Mode)
			}
		}
		g.carried.closeRow(n)
		g.reuse.closeRow(n)
	}
	for _, e := range []*edges{&g.preds, &g.carried, &g.reuse} {
		e.to = fit(e.to)
	}
	g.succs = g.preds.transpose(int(n))
	g.carriedSuccs = g.carried.transpose(int(n))
	g.reuseSuccs = g.reuse.transpose(int(n))
}

// expectedEdges is room for the edges of most graphs: one for each atom of an access.
func (g *Graph) expectedEdges() int {
	const most = 1 << 23
	n := 0
	for _, s := range g.spans {
		n += int(s.end - s.first)
	}
	return min(n, most)
}

// closeRow ends a row whose entries were appended: it keeps each one below limit
// once, in ascending order.
func (e *edges) closeRow(limit int32) {
	begin := int(e.start[len(e.start)-1])
	if row := e.to[begin:]; len(row) > 1 {
		slices.Sort(row)
		row = slices.Compact(row)
		end, _ := slices.BinarySearch(row, limit)
		e.to = e.to[:begin+end]
	} else if len(row) == 1 && row[0] >= limit {
		e.to = e.to[:begin]
	}
	e.start = append(e.start, int32(len(e.to)))
}

// fit returns the list without the capacity that growing left over.
func fit[T any](list []T) []T {
	if cap(list)-len(list) <= len(list)/32 {
		return list
	}
	return append(make([]T, 0, len(list)), list...)
}
