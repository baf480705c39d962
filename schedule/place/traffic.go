package place

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// traffic is the moves of a plan between memories in a steady step.
//
// A *version* of an atom is its contents after one write, or before the run. A memory
// needs a version if one of its tasks reads it: in the same step, or in the next one for the last
// version of a storage that keeps its contents. The version goes there once, as soon as it is
// written. Everything of one storage, one writer and one first reader goes together, and what later readers need as well while it is little ([Joins]).
type traffic struct {
	g        *dag.Graph
	p        *platform.Platform
	lanes    []Lane
	plan     *Input
	maxLag   int32
	worker   []platform.WorkerID // by task
	position []int32             // by task: in the list of its worker
	homes    []platform.MemoryID // by storage: where its contents are after a run, and before it unless eachHost has it
	eachHost []bool              // by storage: the host memory of every node has its contents before a run
	versions [][]int32           // by memory and storage: the number of versions, where the plan says so
	listed   map[string]bool     // the names of transfers, see [Written.listed]

	// The tasks in program order, each followed by the moves after its end. With evictions the order is an
	// estimate's. Nil means that nothing moves, and nothing is used or at home outside the host memory.
	taskOf []dag.TaskID // -1: a move
	moves  []*Move      // nil means a task
	at     []int32      // by task: where it is
	spills []itemSpill  // nil without evictions

	evicted map[evicted]int32 // evictions to the host memory

	enter, leave []*Move

	host      platform.MemoryID
	partBytes int64            // size of the parts of a staged move; zero means whole
	reached   platform.FewSets // by atom in distribution: memories besides the source
	spare     spareMoves
}

// newTraffic derives the movements of a plan that fits its problem. partBytes is the size of the parts of a staged
// move. Zero means whole.
func newTraffic(g *dag.Graph, p *platform.Platform, lanes []Lane, plan *Input, partBytes int64) (*traffic, error) {
	n := len(g.Tasks)
	t := &traffic{g: g, p: p, lanes: lanes, plan: plan, host: p.HostMemory(), partBytes: partBytes, evicted: map[evicted]int32{}, at: make([]int32, n)}
	t.worker, t.position = plan.placement(n)
	for _, lag := range plan.Lags {
		t.maxLag = max(t.maxLag, lag)
	}
	t.listed = plan.listed()
	var err error
	if t.versions, err = plan.VersionsIn(g, p); err != nil {
		return nil, err
	}
	if err := t.findHomes(); err != nil {
		return nil, err
	}
	if t.nothingMoves() {
		return t, nil
	}
	pushes := t.findPushes()
	t.reached = p.NewFewSets(g.NumAtoms())
	expected := n + len(pushes.all) // mostly no more: what several readers need is moved once
	t.taskOf, t.moves = make([]dag.TaskID, 0, expected), make([]*Move, 0, expected)
	for writer := range n {
		t.at[writer] = int32(len(t.moves))
		t.moves = append(t.moves, nil)
		if t.moves, err = t.distribute(t.moves, pushes.byWriter(writer), Move{Writer: dag.TaskID(writer), Reason: ReasonPrefetch}); err != nil {
			return nil, err
		}
		t.taskOf = append(t.taskOf, dag.TaskID(writer))
		for len(t.taskOf) < len(t.moves) {
			t.taskOf = append(t.taskOf, -1)
		}
	}
	if t.enter, err = t.distribute(nil, pushes.byWriter(n), Move{Writer: -1, Reason: ReasonEnter}); err != nil {
		return nil, err
	}
	t.reached = platform.FewSets{}
	return t, t.bringHome()
}

// nothingMoves reports whether everything is used, and is at home, in the host memory.
func (t *traffic) nothingMoves() bool {
	for task := range t.worker {
		if t.memoryOf(dag.TaskID(task)) != t.host && len(t.g.Tasks[task].Accesses) > 0 {
			return false
		}
	}
	return !slices.ContainsFunc(t.homes, func(m platform.MemoryID) bool { return m != t.host })
}

func (t *traffic) memoryOf(task dag.TaskID) platform.MemoryID { return t.p.MemoryOf(t.worker[task]) }

// versionsIn is the number of versions of a storage in a memory.
func (t *traffic) versionsIn(at location) int32 {
	if t.versions == nil {
		return t.g.Versions(at.storage)
	}
	return t.versions[at.memory][at.storage]
}

// findHomes finds where the contents of every storage are kept between runs.
func (t *traffic) findHomes() (err error) {
	t.homes, t.eachHost = make([]platform.MemoryID, len(t.g.Buffers)), make([]bool, len(t.g.Buffers))
	for b := range t.homes {
		t.eachHost[b] = AtEachHost(&t.g.Buffers[b])
		if t.homes[b], err = Home(t.p, &t.g.Buffers[b]); err != nil {
			return err
		}
	}
	return nil
}

// AtEachHost reports whether the contents of a storage are in the host memory of every node before a run.
func AtEachHost(b *dag.Buffer) bool { return b.Home == "" || b.Home == dag.HostHome }

// startsIn is the memory that has a storage's contents before a run, for a reader in some memory.
func (t *traffic) startsIn(storage dag.BufferID, reader platform.MemoryID) platform.MemoryID {
	if t.eachHost[storage] {
		return t.p.HostOf(reader)
	}
	return t.homes[storage]
}

// Home is the memory where the contents of a storage are kept between runs: the host's where the
// storage does not say, of the first node of a cluster.
func Home(p *platform.Platform, b *dag.Buffer) (platform.MemoryID, error) {
	if b.Home == "" || b.Home == dag.HostHome {
		return p.HostMemory(), nil
	}
	m, ok := p.MemoryByName(b.Home)
	if !ok {
		return 0, fmt.Errorf("buffer %q: its home %q is not a memory of platform %q; write one, or %q", b.Name, b.Home, p.Name, dag.HostHome)
	}
	return m, nil
}

// distribute sends the versions of one writer to their readers, in the order of the pushes. like has the writer and
// the reason.
func (t *traffic) distribute(moves []*Move, to []push, like Move) ([]*Move, error) {
	for _, p := range to {
		t.reached.Clear(p.atom)
	}
	staged := t.staged(to, like.Writer)
	var passedOn *relays
	if like.Writer >= 0 && len(to) > 0 {
		passedOn = t.relay(to, t.memoryOf(like.Writer))
	}
	for begin := len(moves); len(to) > 0; {
		first, order := len(moves), to[0].order // moves for this reader
		like.For, like.NextStep = to[0].reader, order&nextStep != 0
		for ; len(to) > 0 && to[0].order == order; to = to[1:] {
			atom := to[0].atom
			like.Buffer = t.g.AtomStorage(dag.AtomID(atom))
			like.From = t.startsIn(like.Buffer, t.memoryOf(like.For))
			if like.Writer >= 0 {
				like.From = t.memoryOf(like.Writer)
			}
			if passedOn != nil {
				like.From = passedOn.source(atom, t.memoryOf(like.For))
			}
			hops, err := t.hops(like.Buffer, like.From, t.memoryOf(like.For))
			if err != nil {
				return nil, fmt.Errorf("task %q: %w", t.g.Tasks[like.For].Name, err)
			}
			for _, like.To = range hops {
				if !t.reached.Has(atom, like.To) {
					t.reached.Add(atom, like.To)
					if m := t.joined(moves[begin:first], &like, atom); m != nil && staged == nil && len(hops) == 1 {
						m.add(atom, t.g.AtomBytes(dag.AtomID(atom)))
					} else {
						moves = t.load(moves, first, &like, atom)
					}
				}
				like.From = like.To
			}
		}
		t.sortStages(moves[first:], func(m *Move) platform.MemoryID { return t.memoryOf(m.For) })
		if staged != nil {
			moves = append(moves[:first], t.inParts(moves[first:], staged)...)
		}
	}
	return moves, nil
}

// load adds an atom to the move like the given one among those from first on, or to
// that one as a further move.
func (t *traffic) load(moves []*Move, first int, like *Move, atom int32) []*Move {
	at := len(moves) - 1 // mostly the last one
	for at >= first && (moves[at].Buffer != like.Buffer || moves[at].From != like.From || moves[at].To != like.To) {
		at--
	}
	if at < first {
		m := t.spare.take(like, atom)
		m.Anywhere = !t.g.WrittenStorages()[like.Buffer] && t.g.Buffers[like.Buffer].Home == ""
		m.Bytes = t.g.AtomBytes(dag.AtomID(atom))
		return append(moves, m)
	}
	moves[at].add(atom, t.g.AtomBytes(dag.AtomID(atom)))
	return moves
}

// add adds an atom to a move, unless it has that already.
func (m *Move) add(atom int32, bytes int64) {
	if k, found := slices.BinarySearch(m.Atoms, atom); !found {
		m.Atoms = slices.Insert(m.Atoms, k, atom)
		m.Bytes += bytes
	}
}

// joinedPart bounds what goes together for several readers: its bytes keep the links of its way busy for such a part of the latency at most. A copy for each reader
// would keep an engine for a latency more, and the first reader hardly waits.
const joinedPart = 4

// joined is the last move of the same contents, for earlier readers, that has room for an atom; nil means there is none. The names of the
// transfers decide that in a plan with a list of them.
func (t *traffic) joined(moves []*Move, like *Move, atom int32) *Move {
	if like.Writer < 0 || like.From != t.memoryOf(like.Writer) {
		return nil
	}
	for _, m := range slices.Backward(moves) {
		if m.Buffer != like.Buffer || m.To != like.To {
			continue
		}
		joins := m.From == like.From && m.NextStep == like.NextStep
		if joins && t.listed != nil {
			joins = !t.listed[like.name(t.g, t.p)]
		} else if joins {
			joins = Joins(t.p, m.From, m.To, m.Bytes+t.g.AtomBytes(dag.AtomID(atom)))
		}
		if joins {
			return m
		}
		return nil
	}
	return nil
}

// Joins reports whether the bytes of several readers are few enough to go together.
func Joins(p *platform.Platform, from, to platform.MemoryID, bytes int64) bool {
	latency := p.RouteTime(from, to, 0)
	return p.RouteTime(from, to, bytes) <= latency+latency/joinedPart
}

// spareMoves is room for moves, which are many and small.
type spareMoves struct {
	moves []Move
	atoms []int32
}

// take is a move like another one, of one atom.
func (s *spareMoves) take(like *Move, atom int32) *Move {
	if last := len(s.moves); last == cap(s.moves) {
		const least, most = 16, 1024
		n := min(max(2*last, least), most)
		s.moves, s.atoms = make([]Move, 0, n), make([]int32, 0, n)
	}
	s.moves, s.atoms = append(s.moves, *like), append(s.atoms, atom)
	last := len(s.moves)
	m := &s.moves[last-1]
	m.Atoms = s.atoms[last-1 : last : last]
	return m
}

// sortStages puts each hop of staged moves before the next ones: those with more hops to come go first.
func (t *traffic) sortStages(moves []*Move, last func(*Move) platform.MemoryID) {
	left := func(m *Move) int { return len(t.p.Stops(m.To, last(m))) }
	slices.SortStableFunc(moves, func(a, b *Move) int { return left(b) - left(a) })
}

// hops are the memories through which a storage goes, the last one included. A move between two other memories by way
// of a host memory is staged there, since no engine reaches further. There are none within one memory.
func (t *traffic) hops(storage dag.BufferID, from, to platform.MemoryID) ([]platform.MemoryID, error) {
	if from == to {
		return nil, nil
	}
	pl := t.p
	stops := pl.Stops(from, to)
	if len(stops) == 0 {
		return nil, fmt.Errorf("buffer %q has to move from memory %q to %q, and platform %q has no route between them",
			t.g.Buffers[storage].Name, pl.Memories[from].Name, pl.Memories[to].Name, pl.Name)
	}
	return stops, nil
}

// bringHome finds the kept contents that are not valid at home after a step.
func (t *traffic) bringHome() error {
	g := t.g
	last := make([]dag.TaskID, g.NumAtoms()) // 1 + the task that writes it last
	for task := range g.Tasks {
		for _, a := range g.Covers(dag.TaskID(task)) {
			for _, atom := range g.AtomsOf(a) {
				if a.Mode.Writes() {
					last[atom] = dag.TaskID(task) + 1
				}
			}
		}
	}
	for atom, writer := range last {
		storage := g.AtomStorage(dag.AtomID(atom))
		if writer == 0 || !g.Carried(storage) || t.reaches(writer-1, int32(atom), t.homes[storage]) {
			continue
		}
		like := Move{Buffer: storage, From: t.memoryOf(writer - 1), For: -1, Writer: writer - 1, Reason: ReasonLeave}
		hops, err := t.hops(storage, like.From, t.homes[storage])
		if err != nil {
			return err
		}
		for _, like.To = range hops {
			t.leave = t.load(t.leave, 0, &like, int32(atom))
			like.From = like.To
		}
	}
	t.sortStages(t.leave, func(m *Move) platform.MemoryID { return t.homes[m.Buffer] })
	return nil
}

// reaches reports whether the result of a task is in a memory once the moves after the task have arrived.
func (t *traffic) reaches(writer dag.TaskID, atom int32, m platform.MemoryID) bool {
	if t.memoryOf(writer) == m {
		return true
	}
	for _, move := range t.moves[t.at[writer]+1:] {
		if move == nil {
			break // the next task
		}
		if _, has := slices.BinarySearch(move.Atoms, atom); has && move.To == m {
			return true
		}
	}
	return false
}
