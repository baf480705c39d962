package place

import (
	"maps"
	"sort"

	"dahl/dag"
)

// rewriting is the items in the making.
type rewriting struct {
	*spill
	out       []stepItem
	at        []int32   // by old item: where it is now; -1: left out
	replica   []int32   // by storage
	visited   []int32   // by storage: its visits so far
	users     [][]int32 // by storage: of the present replica
	begun     []int32   // by storage: first user of the first replica
	ended     [][]int32 // by storage: users of the last replica that has ended
	freed     []int32   // users of replicas that have ended since room was taken
	lastTaken int32     // item that took room; -1: none
	writeBack map[dag.TaskID][]*Move
}

// rewrite inserts the transfers of dropped contents to the host and back.
func (s *spill) rewrite() []stepItem {
	n := len(s.visits)
	r := &rewriting{spill: s, at: make([]int32, len(s.items)), replica: make([]int32, n), visited: make([]int32, n),
		users: make([][]int32, n), begun: make([]int32, n), ended: make([][]int32, n), lastTaken: -1, writeBack: s.writeBacks()}
	for i := range s.items {
		r.copyItem(int32(i))
	}
	for i, item := range s.items {
		if now := r.at[i]; now >= 0 {
			r.out[now].afterLast = r.follow(item.afterLast)
		}
	}
	for b, n := range r.replica {
		if n > 1 { // else it is one buffer, and the graph orders its uses
			first := &r.out[r.begun[b]]
			first.afterLast = append(first.afterLast, r.ended[b]...)
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
	here := r.touched[i]
	if m := item.move; m != nil && m.To == r.memory && r.pointless(here[0]) {
		r.at[i] = -1
		r.leaveRoom(here)
		return
	}
	for _, b := range here {
		r.bringBack(b)
	}
	r.at[i] = r.emit(item, here)
	for _, m := range r.writeBack[item.task] { // a move has none
		var from []dag.BufferID
		if m.From == r.memory {
			from = []dag.BufferID{m.Buffer}
		}
		r.emit(stepItem{task: -1, move: m, itemSpill: itemSpill{uses: item.uses, again: r.evictedBefore(m)}}, from)
	}
	r.leaveRoom(here)
}

// begins reports whether the next visit of a storage is the first of a residence.
func (r *rewriting) begins(b dag.BufferID) bool {
	k := r.visited[b]
	return !r.stays(b) && (k == 0 || r.dropped[b][k-1])
}

// pointless reports whether the contents of the next visit leave again unused.
func (r *rewriting) pointless(b dag.BufferID) bool {
	return r.begins(b) && r.dropped[b][r.visited[b]] && r.needs[b][r.visited[b]] > 0
}

// bringBack adds the reload of a residence that begins: the atoms that it reads before a write.
func (r *rewriting) bringBack(b dag.BufferID) {
	if !r.begins(b) {
		return
	}
	visits := r.visits[b]
	like := Move{Buffer: b, From: r.p.HostOf(r.memory), To: r.memory, Writer: -1, Reason: ReasonReload}
	var moves []*Move // at most one
	for k := int(r.visited[b]); k < len(visits); k++ {
		like.For = r.reader(visits[k].item)
		for _, a := range visits[k].reads {
			if !r.set.has(a) {
				moves = r.load(moves, 0, &like, a)
			}
		}
		r.set.add(visits[k].reads)
		r.set.add(visits[k].writes)
		if r.dropped[b][k] {
			break
		}
	}
	r.set.clear()
	if len(moves) == 0 {
		return
	}
	r.emit(stepItem{task: -1, move: moves[0], itemSpill: itemSpill{again: r.replica[b]}}, []dag.BufferID{b})
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
func (r *rewriting) emit(item stepItem, here []dag.BufferID) int32 {
	id := int32(len(r.out))
	shared := true // with other items
	for _, b := range here {
		if n := r.replica[b]; n > 0 {
			if shared {
				item.uses, shared = maps.Clone(item.uses), false
			}
			if item.uses == nil {
				item.uses = map[location]int32{}
			}
			item.uses[location{b, r.memory}] = n
		}
		if r.stays(b) {
			continue
		}
		if users := r.users[b]; len(users) > 0 {
			item.after = append(item.after, users[0])
		} else {
			item.after = append(item.after, r.freed...)
			if r.lastTaken >= 0 && r.lastTaken != id {
				item.after = append(item.after, r.lastTaken)
			}
			r.freed, r.lastTaken = nil, id
			if r.replica[b] == 0 {
				r.begun[b] = id
			}
		}
		r.users[b] = append(r.users[b], id)
	}
	r.out = append(r.out, item)
	return id
}

// leaveRoom ends the residences of which an item was the last visit.
func (r *rewriting) leaveRoom(here []dag.BufferID) {
	for _, b := range here {
		k := r.visited[b]
		r.visited[b]++
		if r.stays(b) || !r.dropped[b][k] {
			continue
		}
		if len(r.users[b]) > 0 {
			r.freed = append(r.freed, r.users[b]...)
			r.ended[b], r.users[b] = r.users[b], nil
			r.replica[b]++
		}
	}
}

// writeBacks finds the transfers to the host of contents that will be dropped, by writer.
func (s *spill) writeBacks() map[dag.TaskID][]*Move {
	writers, onHost := s.writers(), s.onHost()
	back := map[dag.TaskID][]*Move{}
	for _, b := range s.used {
		if s.stays(b) {
			continue
		}
		s.needed(b, func(k int, atoms []int32) {
			if !s.dropped[b][k] {
				return
			}
			for _, a := range atoms {
				if w, ok := lastWriter(writers[a], s.visits[b][k].item); ok && s.memoryOf(w) != s.p.HostOf(s.memory) && !onHost[written{w, a}] {
					s.sendHome(back, w, a)
				}
			}
		})
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
	after := sort.Search(len(writers), func(k int) bool { return writers[k].item > item })
	if after == 0 {
		after = len(writers)
	}
	return writers[after-1].task, true
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
		if m := s.items[i].move; m != nil && m.To == s.p.HostOf(s.memory) {
			for _, a := range m.Atoms {
				has[written{m.Writer, a}] = true
			}
		}
	}
	return has
}

// sendHome adds an atom to the evictions after its writer.
func (s *spill) sendHome(back map[dag.TaskID][]*Move, writer dag.TaskID, atom int32) {
	back[writer] = s.load(back[writer], 0, &Move{Buffer: s.g.AtomStorage(dag.AtomID(atom)), From: s.memoryOf(writer), To: s.p.HostOf(s.memory),
		For: writer, Writer: writer, Reason: ReasonEvict}, atom)
}
