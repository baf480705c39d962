package schedule

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"dahl/dag"
)

// The audit of residency looks at one atom at a time. Program order and the
// steps give the sequence of its versions: what it holds before the run, and then
// what each write leaves. A version is in the memory of its writer from the end
// of the write, and in another from the end of a transfer out of a memory where
// it was; it is gone when the next write starts, or, in a storage that does not
// keep its contents, after the last use in the step. Every read must find the
// version that program order gives it.

// use is one task's access to an atom, in program order.
type use struct {
	task          dag.TaskID
	reads, writes bool
}

// version is one state of an atom, with those who read it.
type version struct {
	from    int // memory of its writer, or home; -1: there is none
	begins  time.Duration
	made    time.Duration
	readers []*Span
}

// balance is a change of the bytes live in a memory.
type balance struct {
	at     time.Duration
	memory int
	bytes  int64
}

const never = time.Duration(math.MaxInt64)

// atomAudit is the state of the walk over one atom.
type atomAudit struct {
	*audit
	id    dag.AtomID
	moves []int32         // transfers of the atom that no version has claimed, by start
	since []time.Duration // by memory: when the version at hand arrived
}

func (c *audit) residency() error {
	for i := range c.s.Transfers {
		if err := c.transfer(i); err != nil {
			return err
		}
	}
	g := c.p.Graph
	uses, moves := make([][]use, g.NumAtoms()), make([][]int32, g.NumAtoms())
	written := make([]bool, len(g.Buffers))
	for t := range g.Tasks {
		for i, a := range g.Tasks[t].Accesses {
			u := use{dag.TaskID(t), a.Mode != dag.Write, a.Mode != dag.Read}
			written[g.Storage(a.Buffer)] = written[g.Storage(a.Buffer)] || u.writes
			for _, atom := range g.Atoms(dag.TaskID(t), i) {
				uses[atom] = append(uses[atom], u)
			}
		}
	}
	byStart := make([]int32, len(c.s.Transfers))
	for i := range byStart {
		byStart[i] = int32(i)
	}
	slices.SortStableFunc(byStart, func(a, b int32) int { return cmp.Compare(c.s.Transfers[a].Start, c.s.Transfers[b].Start) })
	for _, i := range byStart {
		for _, a := range c.s.Transfers[i].Atoms {
			moves[a] = append(moves[a], i)
		}
	}
	since := make([]time.Duration, len(c.p.Platform.Memories))
	for atom := range uses {
		storage := g.AtomStorage(dag.AtomID(atom))
		a := &atomAudit{c, dag.AtomID(atom), moves[atom], since}
		if err := a.walk(uses[atom], written[storage]); err != nil {
			return fmt.Errorf("buffer %q: %w", g.Buffers[storage].Name, err)
		}
	}
	return c.peaks()
}

// walk goes through the versions of the atom.
func (a *atomAudit) walk(uses []use, written bool) error {
	storage := a.p.Graph.AtomStorage(a.id)
	home, everywhere, err := a.home(storage, written)
	if err != nil {
		return err
	}
	if everywhere {
		if len(a.moves) > 0 {
			return fmt.Errorf("transfer %d moves what is everywhere", a.moves[0])
		}
		return nil
	}
	freed := written && !a.p.Graph.Carried(storage) && len(uses) > 0
	v := version{from: home}
	for step := range a.s.Steps {
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
				v = version{from: int(a.p.memoryOf(span.Worker)), begins: span.Start, made: span.End, readers: v.readers[:0]}
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

// close settles a version that was gone from a time on: its transfers, those
// that started before until, its readers, and the room it took.
func (a *atomAudit) close(v *version, gone, until time.Duration) error {
	for m := range a.since {
		a.since[m] = never
	}
	if v.from >= 0 {
		a.since[v.from] = v.made
		a.takeRoom(v.from, v.begins, gone)
	}
	for len(a.moves) > 0 && a.s.Transfers[a.moves[0]].Start < until {
		t := &a.s.Transfers[a.moves[0]]
		if a.since[t.From] > t.Start || t.Start > gone {
			return fmt.Errorf("transfer %d takes it at %v from memory %q, where it is not", a.moves[0], t.Start, a.p.Platform.Memories[t.From].Name)
		}
		if a.since[t.To] != never {
			return fmt.Errorf("transfer %d brings it to memory %q a second time", a.moves[0], a.p.Platform.Memories[t.To].Name)
		}
		a.since[t.To] = t.End
		a.takeRoom(int(t.To), t.Start, gone)
		a.moves = a.moves[1:]
	}
	for _, span := range v.readers {
		if m := a.p.memoryOf(span.Worker); a.since[m] > span.Start {
			return fmt.Errorf("task %s reads it at %v in memory %q, where it is not", a.name(span.Task, span.Step), span.Start, a.p.Platform.Memories[m].Name)
		}
	}
	return nil
}

func (a *atomAudit) takeRoom(memory int, from, to time.Duration) {
	bytes := a.p.Graph.AtomBytes(a.id)
	a.balance = append(a.balance, balance{from, memory, bytes})
	if to != never {
		a.balance = append(a.balance, balance{to, memory, -bytes})
	}
}

// peaks adds up what was live after everything that happened at a time.
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
