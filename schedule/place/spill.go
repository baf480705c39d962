package place

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/layout"
)

// Where a memory cannot hold all that a step leaves in it, some contents leave it
// between two uses and come back before the second. The steps are:
//
//   - The order of the estimate becomes the order that gives the graph its meaning, and
//     so the sequence of uses in each memory.
//   - Whenever the memory is full, a walk along it drops the storage with the latest next use
//     (Belady, A study of replacement algorithms for a virtual-storage computer, IBM
//     Systems Journal 5(2), 1966). It knows the future because a step is like the next.
//   - Dropped contents with a later use go to the host memory once, as soon as they are written, unless another
//     transfer brings them there. They come back right before the next use, into a replica of their own.
//     So each replica lives for one residence,
//     and the layout can give its bytes to others.
//   - An item that takes room follows, by an edge, the items with room left before it in the walk.
//     Without these edges no order would let the replicas share bytes.
//
// A storage that keeps its contents from step to step is either in the memory all the
// time or comes there in every step: because it was chosen to leave, or because another memory
// writes it before it is read here. The walk gives the bytes of a storage that comes in every step to others, so the
// layout must do so too. A storage of several versions is there all the time, with all of them.
type spill struct {
	*traffic
	items  []stepItem
	memory platform.MemoryID
	limit  int64
	rows   map[location]dag.Range

	visits  map[location][]visit
	needs   map[location][][]int32 // after each visit: atoms whose contents are used again
	streams map[location]bool      // chosen to come back in every step
	dropped map[location][]bool    // after each visit
}

// visit is the use of a storage in the memory by an item: the atoms read, and written.
type visit struct {
	item          int32
	reads, writes []int32
}

// spillMemory returns the items with the evictions and reloads of a memory. streamed collects the storages that keep
// their contents and come there in every step.
func (t *traffic) spillMemory(items []stepItem, m platform.MemoryID, limit int64, streamed map[string]bool) ([]stepItem, error) {
	if err := t.routesToHost(); err != nil {
		return nil, err
	}
	s := &spill{traffic: t, items: items, memory: m, limit: limit, rows: t.rowsUsed(len(items), func(i int) (dag.TaskID, *Move) { return items[i].task, items[i].move }), visits: map[location][]visit{}, needs: map[location][][]int32{}, streams: map[location]bool{}}
	for i := range items {
		s.addVisits(int32(i))
	}
	for at := range s.visits {
		s.needs[at] = s.needed(at)
	}
	if err := s.choose(); err != nil {
		return nil, err
	}
	t.enter = slices.DeleteFunc(t.enter, func(m *Move) bool { return s.streams[location{m.Buffer, m.To}] })
	t.leave = slices.DeleteFunc(t.leave, func(m *Move) bool { return s.streams[location{m.Buffer, m.From}] })
	for at := range s.visits { // a storage with nothing to carry shares bytes anyhow
		if s.streams[at] || s.g.Carried(at.storage) && !s.stays(at) {
			streamed[s.replicaName(at)] = true
		}
	}
	return s.rewrite(), nil
}

// routesToHost refuses a platform without routes between some memory and the host memory, where evicted contents go.
func (t *traffic) routesToHost() error {
	p := t.p
	host := p.HostMemory()
	for m := range p.Memories {
		for _, pair := range [][2]platform.MemoryID{{platform.MemoryID(m), host}, {host, platform.MemoryID(m)}} {
			if _, ok := p.Route(pair[0], pair[1]); !ok {
				return fmt.Errorf("contents would have to leave a memory, and platform %q has no route from memory %q to %q", p.Name, p.Memories[pair[0]].Name, p.Memories[pair[1]].Name)
			}
		}
	}
	return nil
}

// addVisits notes the uses of an item.
func (s *spill) addVisits(i int32) {
	g, item := s.g, &s.items[i]
	if m := item.move; m != nil {
		if m.From == s.memory {
			at := location{m.Buffer, m.From}
			s.visits[at] = append(s.visits[at], visit{item: i, reads: m.Atoms})
		} else if m.To == s.memory {
			at := location{m.Buffer, m.To}
			s.visits[at] = append(s.visits[at], visit{item: i, writes: m.Atoms})
		}
		return
	}
	if s.memoryOf(item.task) != s.memory {
		return
	}
	for k, a := range g.Tasks[item.task].Accesses {
		at := location{g.Storage(a.Buffer), s.memory}
		list := s.visits[at]
		if n := len(list); n == 0 || list[n-1].item != i {
			list = append(list, visit{item: i})
		}
		v := &list[len(list)-1]
		atoms := g.Atoms(item.task, k)
		if a.Mode.Reads() {
			v.reads = append(v.reads[:len(v.reads):len(v.reads)], atoms...)
		}
		if a.Mode.Writes() {
			v.writes = append(v.writes[:len(v.writes):len(v.writes)], atoms...)
		}
		s.visits[at] = list
	}
}

// needed finds, for each gap between the visits of a storage, the one across the end of
// the step included, the atoms that are read next, before they are written. What leaves
// for home after the last step counts as read at the end of the step.
func (s *spill) needed(at location) [][]int32 {
	visits := s.visits[at]
	n := len(visits)
	needs := make([][]int32, n)
	readNext := map[int32]bool{}
	for j := 2*n - 1; j >= 0; j-- {
		if j%n == n-1 {
			for _, m := range s.leave {
				if m.Buffer == at.storage && m.From == at.memory {
					mark(readNext, m.Atoms, true)
				}
			}
		}
		if j < n {
			for a, read := range readNext {
				if read {
					needs[j] = append(needs[j], a)
				}
			}
			slices.Sort(needs[j])
		}
		mark(readNext, visits[j%n].writes, false)
		mark(readNext, visits[j%n].reads, true)
	}
	return needs
}

func mark(set map[int32]bool, atoms []int32, as bool) {
	for _, a := range atoms {
		set[a] = as
	}
}

// stays reports whether a storage is in the memory all the time. It is if it is at home here, or if the next step
// needs its contents and it was not chosen to leave.
func (s *spill) stays(at location) bool {
	needs := s.needs[at]
	return s.homes[at.storage] == s.memory || s.g.Versions(at.storage) > 1 || len(needs[len(needs)-1]) > 0 && !s.streams[at]
}

// bytes is the size of a storage in the memory.
func (s *spill) bytes(at location) int64 {
	buf, bytes := &s.g.Buffers[at.storage], s.g.Buffers[at.storage].Bytes()
	if r, ok := s.rows[at]; ok {
		bytes = bytes / int64(buf.Shape[0]) * int64(r.Len())
	}
	return layout.Align(bytes) * int64(s.versionsIn(at))
}

// choose walks along the items until it finds no further storage that has to come back
// in every step.
func (s *spill) choose() error {
	for {
		known := len(s.streams)
		if err := s.walk(); err != nil {
			return err
		}
		if len(s.streams) == known {
			return nil
		}
	}
}

// walk drops storages along one step.
func (s *spill) walk() error {
	s.dropped = map[location][]bool{}
	next := map[location]int{} // visit
	touched := make([][]location, len(s.items))
	var live int64
	resident := map[location]bool{}
	for at, visits := range s.visits {
		s.dropped[at] = make([]bool, len(visits))
		for _, v := range visits {
			touched[v.item] = append(touched[v.item], at)
		}
		if s.stays(at) {
			resident[at] = true
			live += s.bytes(at)
		}
	}
	for i, here := range touched {
		for _, at := range here {
			if !resident[at] {
				resident[at] = true
				live += s.bytes(at)
			}
		}
		for live > s.limit {
			victim, ok := s.farthest(resident, next, here)
			if !ok {
				return s.tooLarge(i, live)
			}
			delete(resident, victim)
			live -= s.bytes(victim)
			if needs := s.needs[victim]; len(needs[len(needs)-1]) > 0 {
				s.streams[victim] = true
			}
			if k := next[victim]; k > 0 {
				s.dropped[victim][k-1] = true
			}
		}
		for _, at := range here {
			k := next[at]
			next[at]++
			last := k == len(s.visits[at])-1
			if !s.stays(at) && (len(s.needs[at][k]) == 0 || last) {
				s.dropped[at][k] = true
				delete(resident, at)
				live -= s.bytes(at)
			}
		}
	}
	return nil
}

// farthest is the storage that is used again last; of several the first of the graph.
func (s *spill) farthest(resident map[location]bool, next map[location]int, here []location) (victim location, ok bool) {
	farthest := int32(-1)
	host := s.p.HostMemory()
	for at := range resident {
		if s.homes[at.storage] != host || s.g.Versions(at.storage) > 1 || slices.Contains(here, at) {
			continue
		}
		visits := s.visits[at]
		again := int32(len(s.items)) + visits[0].item
		if k := next[at]; k < len(visits) {
			again = visits[k].item
		}
		if again > farthest || again == farthest && at.storage < victim.storage {
			victim, farthest, ok = at, again, true
		}
	}
	return victim, ok
}

// tooLarge is the error of an item whose operands do not fit by themselves.
func (s *spill) tooLarge(i int, live int64) error {
	what := "the transfers at task "
	task := s.items[i].task
	if m := s.items[i].move; m != nil {
		task = m.For
	} else {
		what = "task "
	}
	mem := &s.p.Memories[s.memory]
	return &RoomError{mem.Name, fmt.Sprintf("%s%q: its operands and what cannot leave memory %q need %s of the %s that the memory has for them",
		what, s.g.Tasks[task].Name, mem.Name, platform.ShortBytes(live), platform.ShortBytes(max(0, s.limit)))}
}

// inOrder sorts the items as their tasks started, and puts moves to the host right behind their writers. So the
// contents are there for every later use.
func inOrder(items []stepItem, started []dag.TaskID, host platform.MemoryID) []stepItem {
	toHost := map[dag.TaskID][]stepItem{}
	for _, item := range items {
		if item.move != nil && item.move.To == host {
			toHost[item.move.Writer] = append(toHost[item.move.Writer], item)
		}
	}
	sorted := make([]stepItem, 0, len(items))
	for _, t := range started {
		item := items[t]
		if item.move != nil && item.move.To == host {
			continue
		}
		sorted = append(sorted, item)
		if item.move == nil {
			sorted = append(sorted, toHost[item.task]...)
		}
	}
	return sorted
}
