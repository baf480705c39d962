package audit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// The audit of residency looks at one atom at a time. Program order and the steps give its
// versions: the contents before the run, and then the result of each write.
//
// A version is in its writer's memory from the end of the write. It is in another memory from the
// end of a transfer out of a memory that had it. It stays until it is evicted, and an eviction
// must leave it in some memory. It is gone when the next write starts. In a storage that does not
// keep its contents it is gone after the last use in the step.
//
// A storage of n versions holds the contents of n steps at once. Steps whose numbers differ by a multiple of n are
// then looked at by themselves, with the transfers for them. In a memory with fewer versions, m of them, the contents
// of a step are gone when those from m steps later arrive.
//
// Program order gives every read a version. The read must find that version until its end.
//
// Where transfers bring an atom in equal shares, each share is looked at by itself. Room for the
// atom is taken with its first share.

// use is one task's access to an atom, in program order.
type use struct {
	task          dag.TaskID
	reads, writes bool
}

// version is one state of an atom, with the spans that read it.
type version struct {
	step    int
	from    int // memory of its writer, or home; -1: there is none
	begins  time.Duration
	made    time.Duration
	readers []*schedule.Span
	hosts   []int // host memories of further nodes that have it, too
}

// balance is a change of the bytes live in a memory.
type balance struct {
	at     time.Duration
	memory int
	bytes  int64
}

const never = time.Duration(math.MaxInt64)

// stay is the time during which a version is in a memory.
type stay struct {
	memory   platform.MemoryID
	from, to time.Duration
}

// atomAudit is the state of the walk over one atom. Moves and drops are its transfers and
// evictions, by time, that no version has claimed yet.
type atomAudit struct {
	*audit
	id       dag.AtomID
	share    int32
	versions int     // of its storage
	all      []int32 // the transfers that bring the share
	moves    []int32
	drops    []int32
	open     []stay // by memory: stay of the current version; it ends when it is displaced, and begins at never if it is not in the memory
	stays    []stay // ended stays of the current version
}

func (c *audit) residency() error {
	for i := range c.s.Transfers {
		if err := c.transfer(i); err != nil {
			return err
		}
	}
	for i := range c.s.Evictions {
		if err := c.eviction(i); err != nil {
			return err
		}
	}
	g := c.p.Graph
	written := make([]bool, len(g.Buffers))
	for atom, uses := range c.uses {
		storage := g.AtomStorage(dag.AtomID(atom))
		written[storage] = written[storage] || slices.ContainsFunc(uses, func(u use) bool { return u.writes })
	}
	moves := c.byAtom(len(c.s.Transfers), func(i int32) (time.Duration, []int32) { return c.s.Transfers[i].Start, c.s.Transfers[i].Atoms })
	drops := c.byAtom(len(c.s.Evictions), func(i int32) (time.Duration, []int32) { return c.s.Evictions[i].At, c.s.Evictions[i].Atoms })
	a := &atomAudit{audit: c, open: make([]stay, len(c.p.Platform.Memories))}
	for atom, uses := range c.uses {
		storage := g.AtomStorage(dag.AtomID(atom))
		shares := int32(1)
		for _, i := range moves[atom] {
			shares = max(shares, c.s.Transfers[i].Share.Of)
		}
		for share := range shares {
			a.id, a.share, a.drops, a.versions = dag.AtomID(atom), share, drops[atom], c.versions(storage)
			err := a.movesOf(moves[atom], shares)
			if err == nil {
				err = a.walkInTurn(uses, written[storage])
			}
			if err != nil {
				return fmt.Errorf("buffer %q: %w", g.Buffers[storage].Name, err)
			}
		}
	}
	return c.peaks()
}

// movesOf keeps the transfers that bring the share, or all shares of the atom.
func (a *atomAudit) movesOf(all []int32, shares int32) error {
	a.all = all
	if shares == 1 {
		return nil
	}
	a.all = nil
	for _, i := range all {
		s := a.s.Transfers[i].Share
		if s.Of != 0 && s.Of != shares {
			return fmt.Errorf("transfer %d brings a share of %d, others of %d", i, s.Of, shares)
		}
		if s.Of == 0 || s.Part == a.share {
			a.all = append(a.all, i)
		}
	}
	return nil
}

// walkInTurn walks through the steps that use one version of the atom's storage, for each version.
func (a *atomAudit) walkInTurn(uses []use, written bool) error {
	for first := range a.versions {
		a.moves = slices.DeleteFunc(slices.Clone(a.all), func(i int32) bool { return int(a.s.Transfers[i].Step)%a.versions != first })
		if err := a.walk(uses, written, first); err != nil {
			return err
		}
	}
	return nil
}

// byAtom lists, for every atom, the transfers or evictions that concern it, by time.
func (c *audit) byAtom(n int, of func(i int32) (at time.Duration, atoms []int32)) [][]int32 {
	byTime := make([]int32, n)
	for i := range byTime {
		byTime[i] = int32(i)
	}
	slices.SortStableFunc(byTime, func(a, b int32) int {
		x, _ := of(a)
		y, _ := of(b)
		return cmp.Compare(x, y)
	})
	lists := make([][]int32, c.p.Graph.NumAtoms())
	for _, i := range byTime {
		_, atoms := of(i)
		for _, a := range atoms {
			lists[a] = append(lists[a], i)
		}
	}
	return lists
}

// walk goes through the states of the atom in steps that use one version of its storage, from the first on.
func (a *atomAudit) walk(uses []use, written bool, first int) error {
	storage := a.p.Graph.AtomStorage(a.id)
	home, everywhere, err := a.home(storage, written)
	if err != nil {
		return err
	}
	if everywhere {
		if len(a.moves)+len(a.drops) > 0 {
			return errors.New("it is everywhere, and a transfer or an eviction concerns it")
		}
		return nil
	}
	freed := written && !a.p.Graph.Carried(storage) && len(uses) > 0
	v := version{from: home}
	if home == int(a.p.Platform.HostMemory()) && (a.p.Graph.Buffers[storage].Home == "" || a.p.Graph.Buffers[storage].Home == "host") {
		v.hosts = a.hostsWith(storage, home)
	}
	for step := first; step < a.s.Steps; step += a.versions {
		var lastEnd time.Duration
		for _, u := range uses {
			span := a.span(int(u.task), step)
			lastEnd = max(lastEnd, span.End)
			if u.reads {
				v.readers = append(v.readers, span)
			}
			if u.writes {
				if err := a.close(&v, span.Start, span.End); err != nil {
					return err
				}
				v = version{step: step, from: int(a.p.Platform.MemoryOf(span.Worker)), begins: span.Start, made: span.End, readers: v.readers[:0]}
			}
		}
		if freed {
			if err := a.close(&v, lastEnd, lastEnd); err != nil {
				return err
			}
			v = version{from: -1, readers: v.readers[:0]}
		}
	}
	return a.close(&v, never, never)
}

// hostsWith lists the host memories, without one, from which a storage moves or is used by tasks there. Each node
// has made its contents there before the first step.
func (c *audit) hostsWith(storage dag.BufferID, except int) (hosts []int) {
	if len(c.p.Platform.Nodes) == 0 {
		return nil
	}
	if c.inHosts == nil {
		c.inHosts = map[dag.BufferID][]int{}
		note := func(b dag.BufferID, m platform.MemoryID) {
			if b = c.p.Graph.Storage(b); c.p.Platform.HostOf(m) == m && !slices.Contains(c.inHosts[b], int(m)) {
				c.inHosts[b] = append(c.inHosts[b], int(m))
			}
		}
		for i := range c.s.Spans {
			for _, access := range c.p.Graph.Tasks[c.s.Spans[i].Task].Accesses {
				note(access.Buffer, c.p.Platform.MemoryOf(c.s.Spans[i].Worker))
			}
		}
		for i := range c.s.Transfers {
			note(c.s.Transfers[i].Buffer, c.s.Transfers[i].From)
		}
	}
	for _, m := range c.inHosts[storage] {
		if m != except {
			hosts = append(hosts, m)
		}
	}
	return hosts
}

// close settles a version that was gone from a time on. It takes the version's transfers with a start before until,
// its evictions, its readers and its bytes.
func (a *atomAudit) close(v *version, gone, until time.Duration) error {
	for m := range a.open {
		a.open[m] = stay{platform.MemoryID(m), never, a.displaced(platform.MemoryID(m), v.step)}
	}
	a.stays = a.stays[:0]
	if v.from >= 0 {
		a.open[v.from].from = v.made
		a.takeRoom(v.from, v.begins, gone)
	}
	for _, m := range v.hosts {
		a.open[m].from = v.made
		a.takeRoom(m, v.begins, gone)
	}
	first := a.moves
	for {
		moves := len(a.moves) > 0 && a.s.Transfers[a.moves[0]].Start < until
		drops := len(a.drops) > 0 && a.s.Evictions[a.drops[0]].At <= gone
		var err error
		switch {
		case drops && (!moves || a.s.Evictions[a.drops[0]].At <= a.s.Transfers[a.moves[0]].Start):
			err = a.drop(a.drops[0], gone)
			a.drops = a.drops[1:]
		case moves:
			err = a.move(a.moves[0], gone)
			a.moves = a.moves[1:]
		default:
			return a.found(v, first[:len(first)-len(a.moves)], gone)
		}
		if err != nil {
			return err
		}
	}
}

// displaced is the time at which a later step's version takes the place of a step's, in a memory with fewer versions
// than another.
func (a *atomAudit) displaced(m platform.MemoryID, step int) time.Duration {
	at := never
	if a.versions == 1 || a.p.Versions == nil {
		return at
	}
	step += int(a.p.Versions[m][a.p.Graph.AtomStorage(a.id)])
	for _, u := range a.uses[a.id] {
		if step < a.s.Steps && u.writes && a.p.Platform.MemoryOf(a.span(int(u.task), step).Worker) == m {
			at = min(at, a.span(int(u.task), step).Start)
		}
	}
	for _, i := range a.all {
		if t := &a.s.Transfers[i]; t.To == m && int(t.Step) == step {
			at = min(at, t.Start)
		}
	}
	return at
}

// move brings the version to a memory by a transfer.
func (a *atomAudit) move(i int32, gone time.Duration) error {
	t := &a.s.Transfers[i]
	memories := a.p.Platform.Memories
	if a.open[t.From].from > t.Start || t.Start > gone {
		return fmt.Errorf("transfer %d takes it at %v from memory %q, where it is not", i, t.Start, memories[t.From].Name)
	}
	if a.open[t.To].from != never {
		return fmt.Errorf("transfer %d brings it to memory %q a second time", i, memories[t.To].Name)
	}
	a.open[t.To].from = t.End
	a.takeRoom(int(t.To), t.Start, gone)
	return nil
}

// drop ends the stay of the version in a memory and gives its bytes back.
func (a *atomAudit) drop(i int32, gone time.Duration) error {
	e := &a.s.Evictions[i]
	name := a.p.Platform.Memories[e.Memory].Name
	if a.open[e.Memory].from > e.At {
		return fmt.Errorf("eviction %d drops it at %v in memory %q, where it is not", i, e.At, name)
	}
	a.stays = append(a.stays, stay{e.Memory, a.open[e.Memory].from, e.At})
	a.open[e.Memory].from = never
	if !slices.ContainsFunc(a.open, func(s stay) bool { return s.from <= e.At }) {
		return fmt.Errorf("eviction %d drops it at %v in memory %q, and no other memory has it", i, e.At, name)
	}
	if a.share > 0 {
		return nil
	}
	bytes := a.p.Graph.AtomBytes(a.id)
	a.balance = append(a.balance, balance{e.At, int(e.Memory), -bytes})
	if gone != never {
		a.balance = append(a.balance, balance{gone, int(e.Memory), bytes}) // takeRoom gives the bytes back then
	}
	return nil
}

// found verifies that the readers of the version and the transfers out of a memory found it
// there, to their ends or until it was gone.
func (a *atomAudit) found(v *version, moves []int32, gone time.Duration) error {
	a.stays = append(a.stays, a.open...)
	is := func(m platform.MemoryID, from, to time.Duration) bool {
		return slices.ContainsFunc(a.stays, func(s stay) bool { return s.memory == m && s.from <= from && to <= s.to })
	}
	for _, span := range v.readers {
		if m := a.p.Platform.MemoryOf(span.Worker); !is(m, span.Start, span.End) {
			return fmt.Errorf("task %s reads it from %v to %v in memory %q, where it is not", a.name(span.Task, span.Step), span.Start, span.End, a.p.Platform.Memories[m].Name)
		}
	}
	for _, i := range moves {
		if t := &a.s.Transfers[i]; !is(t.From, t.Start, min(t.End, max(gone, t.Start))) {
			return fmt.Errorf("transfer %d takes it from memory %q, which drops it before %v", i, a.p.Platform.Memories[t.From].Name, t.End)
		}
	}
	return nil
}

// takeRoom counts the bytes of the atom in a memory for a time.
func (a *atomAudit) takeRoom(memory int, from, to time.Duration) {
	if a.share > 0 {
		return
	}
	bytes, to := a.p.Graph.AtomBytes(a.id), min(to, a.open[memory].to)
	a.balance = append(a.balance, balance{from, memory, bytes})
	if to != never {
		a.balance = append(a.balance, balance{to, memory, -bytes})
	}
}

// peaks adds up the live bytes after everything that happened at a time.
func (c *audit) peaks() error {
	slices.SortFunc(c.balance, func(a, b balance) int { return cmp.Compare(a.at, b.at) })
	live, peak := make([]int64, len(c.p.Platform.Memories)), make([]int64, len(c.p.Platform.Memories))
	for i, b := range c.balance {
		live[b.memory] += b.bytes
		if i+1 == len(c.balance) || c.balance[i+1].at > b.at {
			for m := range live {
				peak[m] = max(peak[m], live[m])
			}
		}
	}
	if !slices.Equal(peak, c.s.PeakBytes) {
		return fmt.Errorf("peaks of %d bytes by memory; the spans and transfers say %d", c.s.PeakBytes, peak)
	}
	recorded := make([]int64, len(peak))
	for _, o := range c.s.Memory {
		if o.Memory < 0 || int(o.Memory) >= len(peak) {
			return fmt.Errorf("occupancy of memory %d, which does not exist", o.Memory)
		}
		recorded[o.Memory] = max(recorded[o.Memory], o.Bytes)
	}
	if !slices.Equal(recorded, peak) {
		return fmt.Errorf("the recorded occupancy reaches %d bytes by memory; the spans and transfers say %d", recorded, peak)
	}
	for m, bytes := range peak {
		if mem := &c.p.Platform.Memories[m]; mem.CapacityBytes > 0 && bytes > mem.CapacityBytes {
			return fmt.Errorf("memory %q held %d bytes and has %d", mem.Name, bytes, mem.CapacityBytes)
		}
	}
	return nil
}
