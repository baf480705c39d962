package place

import (
	"cmp"
	"maps"
	"slices"

	"dahl/dag"
)

// rewriting is the items in the making.
type rewriting struct {
	*spill
	out       []stepItem
	at        []int32 // by old item: where it is now; -1: left out
	replica   map[location]int32
	visited   map[location]int
	users     map[location][]int32 // of the present replica
	begun     map[location]int32   // first user of the first replica
	ended     map[location][]int32 // users of the last replica that has ended
	freed     []int32              // users of replicas that have ended since room was taken
	lastTaken int32                // item that took room; -1: none
	writeBack map[dag.TaskID][]*Move
}

// rewrite inserts the transfers of dropped contents to the host and back.
func (s *spill) rewrite() []stepItem {
	r := &rewriting{spill: s, at: make([]int32, len(s.items)), replica: map[location]int32{}, visited: map[location]int{},
		users: map[location][]int32{}, begun: map[location]int32{}, ended: map[location][]int32{}, lastTaken: -1, writeBack: s.writeBacks()}
	for i := range s.items {
		r.copyItem(int32(i))
	}
	for i, item := range s.items {
		if now := r.at[i]; now >= 0 {
			r.out[now].afterLast = r.follow(item.afterLast)
		}
	}
	for at, n := range r.replica {
		if n > 1 { // else it is one buffer, and the graph orders its uses
			first := &r.out[r.begun[at]]
			first.afterLast = append(first.afterLast, r.ended[at]...)
		}
	}
	return r.out
}

// follow finds where items are now.
func (r *rewriting) follow(items []int32) []int32 {
	var now []int32
	for _, i := range items {
		if r.at[i] >= 0 {
			now = append(now, r.at[i])
		}
	}
	return now
}

// copyItem adds an item, the reloads before it and the evictions to the host right after it.
func (r *rewriting) copyItem(i int32) {
	item := r.items[i]
	item.after = r.follow(item.after)
	here := r.here(i)
	if m := item.move; m != nil && m.To == r.memory && r.pointless(here[0]) {
		r.at[i] = -1
		r.leaveRoom(here)
		return
	}
	for _, at := range here {
		r.bringBack(at)
	}
	r.at[i] = r.emit(item, here)
	for _, m := range r.writeBack[item.task] { // a move has none
		var from []location
		if m.From == r.memory {
			from = []location{{m.Buffer, m.From}}
		}
		r.emit(stepItem{task: -1, move: m, itemSpill: itemSpill{uses: item.uses, again: r.evictedBefore(m)}}, from)
	}
	r.leaveRoom(here)
}

// here is the storages that an item uses in the memory.
func (r *rewriting) here(i int32) []location {
	var here []location
	item := &r.items[i]
	add := func(at location) {
		if at.memory == r.memory && !slices.Contains(here, at) {
			here = append(here, at)
		}
	}
	if m := item.move; m != nil {
		add(location{m.Buffer, m.From})
		add(location{m.Buffer, m.To})
		return here
	}
	for _, a := range r.g.Tasks[item.task].Accesses {
		add(location{r.g.Storage(a.Buffer), r.memoryOf(item.task)})
	}
	return here
}

// begins reports whether the next visit of a storage is the first of a residence.
func (r *rewriting) begins(at location) bool {
	k := r.visited[at]
	return !r.stays(at) && (k == 0 || r.dropped[at][k-1])
}

// pointless reports whether the contents of the next visit leave again unused.
func (r *rewriting) pointless(at location) bool {
	return r.begins(at) && r.dropped[at][r.visited[at]] && len(r.needs[at][r.visited[at]]) > 0
}

// bringBack adds the reload of a residence that begins: the atoms that it reads before a write.
func (r *rewriting) bringBack(at location) {
	if !r.begins(at) {
		return
	}
	visits := r.visits[at]
	like := Move{Buffer: at.storage, From: r.p.HostMemory(), To: at.memory, Writer: -1, Reason: ReasonReload}
	var moves []*Move // at most one
	seen := map[int32]bool{}
	for k := r.visited[at]; k < len(visits); k++ {
		for _, a := range visits[k].reads {
			if seen[a] {
				continue
			}
			seen[a], like.For = true, r.reader(visits[k].item)
			moves = r.load(moves, 0, &like, a)
		}
		mark(seen, visits[k].writes, true)
		if r.dropped[at][k] {
			break
		}
	}
	if len(moves) == 0 {
		return
	}
	r.emit(stepItem{task: -1, move: moves[0], itemSpill: itemSpill{again: r.replica[at]}}, []location{at})
}

// evictedBefore counts the evictions of a storage after the same writer, from other memories.
func (t *traffic) evictedBefore(m *Move) int32 {
	n := t.evicted[evicted{m.Buffer, m.Writer}]
	t.evicted[evicted{m.Buffer, m.Writer}]++
	return n
}

// evicted is a storage and the writer of its evicted contents.
type evicted struct {
	storage dag.BufferID
	writer  dag.TaskID
}

// reader is the task for which an item reads.
func (r *rewriting) reader(i int32) dag.TaskID {
	if m := r.items[i].move; m != nil {
		return m.For
	}
	return r.items[i].task
}

// emit adds an item that uses storages in the memory. The first item of a residence follows the items that left room,
// and the last one to take some. The others follow the first.
func (r *rewriting) emit(item stepItem, here []location) int32 {
	id := int32(len(r.out))
	uses := map[location]int32{}
	maps.Copy(uses, item.uses)
	for _, at := range here {
		uses[at] = r.replica[at]
		if r.stays(at) {
			continue
		}
		if users := r.users[at]; len(users) > 0 {
			item.after = append(item.after, users[0])
		} else {
			item.after = append(item.after, r.freed...)
			if r.lastTaken >= 0 && r.lastTaken != id {
				item.after = append(item.after, r.lastTaken)
			}
			r.freed, r.lastTaken = nil, id
			if r.replica[at] == 0 {
				r.begun[at] = id
			}
		}
		r.users[at] = append(r.users[at], id)
	}
	item.uses = uses
	r.out = append(r.out, item)
	return id
}

// leaveRoom ends the residences of which an item was the last visit.
func (r *rewriting) leaveRoom(here []location) {
	for _, at := range here {
		k := r.visited[at]
		r.visited[at]++
		if r.stays(at) || !r.dropped[at][k] {
			continue
		}
		if len(r.users[at]) > 0 {
			r.freed = append(r.freed, r.users[at]...)
			r.ended[at], r.users[at] = r.users[at], nil
			r.replica[at]++
		}
	}
}

// writeBacks finds the transfers to the host of contents that will be dropped, by writer.
func (s *spill) writeBacks() map[dag.TaskID][]*Move {
	writers, onHost := s.writers(), s.onHost()
	back := map[dag.TaskID][]*Move{}
	for _, at := range slices.SortedFunc(maps.Keys(s.visits), func(a, b location) int { return cmp.Compare(a.storage, b.storage) }) {
		if s.stays(at) {
			continue
		}
		for k, v := range s.visits[at] {
			if !s.dropped[at][k] {
				continue
			}
			for _, a := range s.needs[at][k] {
				if w, ok := lastWriter(writers[a], v.item); ok && s.memoryOf(w) != s.p.HostMemory() && !onHost[written{w, a}] {
					s.sendHome(back, w, a)
				}
			}
		}
	}
	return back
}

// writing is an item that writes an atom.
type writing struct {
	item int32
	task dag.TaskID
}

// writers are the tasks that write each atom, in the order of the items.
func (s *spill) writers() [][]writing {
	g := s.g
	writers := make([][]writing, g.NumAtoms())
	for i := range s.items {
		task := s.items[i].task
		if task < 0 {
			continue
		}
		for k, a := range g.Tasks[task].Accesses {
			if !a.Mode.Writes() {
				continue
			}
			for _, atom := range g.Atoms(task, k) {
				writers[atom] = append(writers[atom], writing{int32(i), task})
			}
		}
	}
	return writers
}

// lastWriter is the writer of the contents of an atom after an item, or the last of the step before if this step has
// none yet.
func lastWriter(writers []writing, item int32) (dag.TaskID, bool) {
	if len(writers) == 0 {
		return 0, false
	}
	last := writers[len(writers)-1].task
	for _, w := range writers {
		if w.item <= item {
			last = w.task
		}
	}
	return last, true
}

// written is an atom that a task wrote.
type written struct {
	writer dag.TaskID
	atom   int32
}

// onHost lists the atoms that other transfers bring to the host.
func (s *spill) onHost() map[written]bool {
	has := map[written]bool{}
	for i := range s.items {
		if m := s.items[i].move; m != nil && m.To == s.p.HostMemory() {
			for _, a := range m.Atoms {
				has[written{m.Writer, a}] = true
			}
		}
	}
	return has
}

// sendHome adds an atom to the evictions after its writer.
func (s *spill) sendHome(back map[dag.TaskID][]*Move, writer dag.TaskID, atom int32) {
	back[writer] = s.load(back[writer], 0, &Move{Buffer: s.g.AtomStorage(dag.AtomID(atom)), From: s.memoryOf(writer), To: s.p.HostMemory(),
		For: writer, Writer: writer, Reason: ReasonEvict}, atom)
}
