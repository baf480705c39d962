package dag

import (
	"fmt"
	"slices"
)

// Check derives the invariants of the graph again, by other means than Build, and reports the
// first that does not hold: names, boxes, atoms, carried storages, and every edge, which must
// exist exactly when an atom or After calls for it. It is an oracle for tests and for graphs of
// doubtful origin. It takes a few times the time and memory of Build.
func (g *Graph) Check() error {
	for _, check := range []func() error{g.checkNames, g.checkBuffers, g.checkAtoms, g.checkEdges, g.checkCarried} {
		if err := check(); err != nil {
			return fmt.Errorf("graph %q: %w", g.Name, err)
		}
	}
	return nil
}

func (g *Graph) checkNames() error {
	buffers := make(map[string]bool, len(g.Buffers))
	for i := range g.Buffers {
		if buffers[g.Buffers[i].Name] {
			return fmt.Errorf("two buffers are named %q", g.Buffers[i].Name)
		}
		buffers[g.Buffers[i].Name] = true
	}
	names := g.names()
	if len(names.byName) != len(g.Tasks) || len(names.rank) != len(g.Tasks) {
		return fmt.Errorf("%d names in order for %d tasks", len(names.byName), len(g.Tasks))
	}
	for r, t := range names.byName {
		if names.rank[t] != int32(r) {
			return fmt.Errorf("task %q has rank %d, not %d", g.Tasks[t].Name, names.rank[t], r)
		}
		if r > 0 && g.Tasks[names.byName[r-1]].Name >= g.Tasks[t].Name {
			return fmt.Errorf("tasks %q and %q: the order of names is not strict", g.Tasks[names.byName[r-1]].Name, g.Tasks[t].Name)
		}
	}
	return nil
}

func (g *Graph) checkBuffers() error {
	if err := g.checkVersions(); err != nil {
		return err
	}
	for i := range g.Buffers {
		b := &g.Buffers[i]
		for _, e := range b.Shape {
			if e < 1 {
				return fmt.Errorf("buffer %q has shape %v", b.Name, b.Shape)
			}
		}
		if b.ViewOf == None {
			continue
		}
		if b.ViewOf < 0 || int(b.ViewOf) >= i {
			return fmt.Errorf("view %q of buffer %d, which is not before it", b.Name, b.ViewOf)
		}
		if o := &g.Buffers[b.ViewOf]; o.ViewOf != None || o.Elems() != b.Elems() || o.Type != b.Type {
			return fmt.Errorf("view %q does not fit its owner %q", b.Name, o.Name)
		}
	}
	return nil
}

// checkAtoms verifies that atoms divide each storage. The atoms of an access have to be distinct and to add up to its
// box.
func (g *Graph) checkAtoms() error {
	bytes := make([]int64, len(g.Buffers))
	for a, s := range g.atomStorage {
		bytes[s] += g.atomBytes[a]
	}
	for i := range g.Buffers {
		if b := &g.Buffers[i]; b.ViewOf == None && bytes[i] != b.Bytes() {
			return fmt.Errorf("the atoms of %q hold %d bytes, not %d", b.Name, bytes[i], b.Bytes())
		}
	}
	for t := range g.Tasks {
		for i := range g.Tasks[t].Accesses {
			if err := g.checkAccessAtoms(TaskID(t), i); err != nil {
				return fmt.Errorf("task %q: %w", g.Tasks[t].Name, err)
			}
		}
	}
	return nil
}

func (g *Graph) checkAccessAtoms(t TaskID, i int) error {
	a := &g.Tasks[t].Accesses[i]
	b := &g.Buffers[a.Buffer]
	if a.Box != nil && len(a.Box) != len(b.Shape) {
		return fmt.Errorf("box %v on shape %v", a.Box, b.Shape)
	}
	for d, r := range a.Box {
		if r.Lo < 0 || r.Lo >= r.Hi || r.Hi > b.Shape[d] {
			return fmt.Errorf("box %v outside shape %v", a.Box, b.Shape)
		}
	}
	atoms := slices.Clone(g.Atoms(t, i))
	slices.Sort(atoms)
	bytes := int64(0)
	for k, atom := range atoms {
		if k > 0 && atom == atoms[k-1] || g.atomStorage[atom] != g.Storage(a.Buffer) {
			return fmt.Errorf("access to %s covers atom %d twice or of another storage", g.regionName(t, i), atom)
		}
		bytes += g.atomBytes[atom]
	}
	if bytes != g.RegionBytes(t, i) {
		return fmt.Errorf("access to %s covers %d bytes", g.regionName(t, i), bytes)
	}
	return nil
}

// edgeKey packs an edge so that sorting gives rows in order.
func edgeKey(to, from int32) uint64 { return uint64(to)<<32 | uint64(from) }

// checkEdges lists, for each atom on its own, the accesses of two steps with one version of it, one after the other,
// and from them all edges that must exist.
func (g *Graph) checkEdges() error {
	users := g.atomUsers()
	var within, carried []uint64
	reuse := make([][]uint64, g.Reach())
	n := int32(len(g.Tasks))
	for a := range users.start[:g.NumAtoms()] {
		across := &carried
		if storage := g.atomStorage[a]; !g.isCarried[storage] {
			across = &reuse[g.Versions(storage)-1]
		}
		writer := int32(-1)
		var readers []int32
		row := users.Row(int32(a))
		for k := range 2 * len(row) {
			task, writes := row[k%len(row)]>>1, row[k%len(row)]&1 == 1
			at := task + n*int32(k/len(row))
			preds := []int32{writer}
			if writes {
				preds = append(preds, readers...)
				writer, readers = at, nil
			} else {
				readers = append(readers, at)
			}
			for _, p := range preds {
				switch {
				case p < 0 || p == at:
				case at < n:
					within = append(within, edgeKey(at, p))
				case p < n:
					*across = append(*across, edgeKey(task, p))
				}
			}
		}
	}
	for t := range g.Tasks {
		for _, p := range g.Tasks[t].After {
			within = append(within, edgeKey(int32(t), int32(p)))
		}
	}
	type check struct {
		what         string
		want         []uint64
		preds, succs Rows
	}
	checks := []check{{"within a step", within, g.preds, g.succs}, {"carried", carried, g.across().carried, g.across().carriedSuccs}}
	for i := range reuse {
		checks = append(checks, check{fmt.Sprintf("of reuse after %d steps", i+1), reuse[i], g.across().reuse[i], g.across().reuseSuccs[i]})
	}
	for _, c := range checks {
		slices.Sort(c.want)
		if err := g.compareEdges(slices.Compact(c.want), c.preds, c.succs); err != nil {
			return fmt.Errorf("edges %s: %w", c.what, err)
		}
	}
	return nil
}

// atomUsers lists, for each atom in program order, 2·task, plus 1 for a write.
func (g *Graph) atomUsers() Rows {
	u := Rows{start: make([]int32, g.NumAtoms()+1)}
	for t := range g.Tasks {
		for i := range g.Tasks[t].Accesses {
			for _, a := range g.Atoms(TaskID(t), i) {
				u.start[a+1]++
			}
		}
	}
	for a := range g.NumAtoms() {
		u.start[a+1] += u.start[a]
	}
	u.to = make([]int32, u.start[g.NumAtoms()])
	next := slices.Clone(u.start)
	for t := range g.Tasks {
		for i, access := range g.Tasks[t].Accesses {
			user := int32(t) << 1
			if access.Mode.Writes() {
				user |= 1
			}
			for _, a := range g.Atoms(TaskID(t), i) {
				u.to[next[a]] = user
				next[a]++
			}
		}
	}
	return u
}

func (g *Graph) compareEdges(want []uint64, preds, succs Rows) error {
	var backward []uint64
	for t := range g.Tasks {
		for _, s := range succs.Row(int32(t)) {
			backward = append(backward, edgeKey(s, int32(t)))
		}
	}
	slices.Sort(backward)
	k := 0
	for t := range g.Tasks {
		for _, p := range preds.Row(int32(t)) {
			if k == len(want) || want[k] != edgeKey(int32(t), p) {
				return fmt.Errorf("task %q need not follow %q, or one that it must follow is missing", g.Tasks[t].Name, g.Tasks[p].Name)
			}
			k++
		}
	}
	if k < len(want) {
		return fmt.Errorf("task %q does not follow %q", g.Tasks[want[k]>>32].Name, g.Tasks[uint32(want[k])].Name)
	}
	if !slices.Equal(backward, want) {
		return fmt.Errorf("successors are not the reverse of predecessors")
	}
	return nil
}

// checkCarried derives anew which storages keep their contents between steps.
func (g *Graph) checkCarried() error {
	users := g.atomUsers()
	carried := make([]bool, len(g.Buffers))
	written := make([]bool, len(g.Buffers))
	for _, t := range g.Tasks {
		for _, a := range t.Accesses {
			written[g.Storage(a.Buffer)] = written[g.Storage(a.Buffer)] || a.Mode.Writes()
		}
	}
	for a, s := range g.atomStorage {
		row := users.Row(int32(a))
		if len(row) == 0 || !written[s] {
			continue
		}
		for i, access := range g.Tasks[row[0]>>1].Accesses {
			if access.Mode.Reads() && access.Mode != Reduce && slices.Contains(g.Atoms(TaskID(row[0]>>1), i), int32(a)) {
				carried[s] = true
			}
		}
	}
	for i := range g.Buffers {
		b := &g.Buffers[i]
		want := b.Role == Parameter || b.Role == State || carried[i]
		if b.ViewOf == None && g.isCarried[i] != want {
			return fmt.Errorf("buffer %q: carried is %v, not %v", b.Name, g.isCarried[i], want)
		}
	}
	return nil
}
