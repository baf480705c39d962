package audit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/place"
)

// Check derives a schedule again from the graph and the platform alone, and verifies:
//
//   - every instance ran once, after all its predecessors, on an eligible worker, one task at a time
//   - no task overwrote a version of a buffer in use by an earlier step
//   - each read found valid contents in its memory, and contents moved there once, and once more
//     after each eviction
//   - no memory held more than its capacity, two storages that share bytes, or more transfers in progress than it has
//     engines
//   - clocks change and units and links sleep as plan and platform say, and nothing works meanwhile
//   - makespan, first step, period and peaks agree with the spans
//
// Check shares nothing with the Engine.
func Check(s *schedule.Schedule, p *schedule.Problem) error {
	c := &audit{p: p, s: s, n: len(p.Graph.Tasks)}
	for _, verify := range []func() error{c.instances, c.placement, c.dependences, c.rewrites, c.exclusive, c.times, c.residency, c.copyEngines, c.states} {
		if err := verify(); err != nil {
			return fmt.Errorf("schedule of graph %q: %w", p.Graph.Name, err)
		}
	}
	return nil
}

// audit is one check in progress.
type audit struct {
	p      *schedule.Problem
	s      *schedule.Schedule
	n      int
	spanOf []int32 // by step and task

	uses    [][]use                // by atom, in program order
	balance []balance              // changes of the live bytes
	inHosts map[dag.BufferID][]int // by storage: see hostsWith
}

func (c *audit) span(t, step int) *schedule.Span { return &c.s.Spans[c.spanOf[step*c.n+t]] }

// name writes an instance for an error.
func (c *audit) name(t dag.TaskID, step int32) string {
	return fmt.Sprintf("%q of step %d", c.p.Graph.Tasks[t].Name, step)
}

func (c *audit) instances() error {
	if c.s.Steps != c.p.Steps || len(c.s.Spans) != c.n*c.s.Steps {
		return fmt.Errorf("%d spans of %d steps, want %d tasks in %d steps", len(c.s.Spans), c.s.Steps, c.n, c.p.Steps)
	}
	c.spanOf = slices.Repeat([]int32{-1}, len(c.s.Spans))
	for i := range c.s.Spans {
		span := &c.s.Spans[i]
		if span.Task < 0 || int(span.Task) >= c.n || span.Step < 0 || int(span.Step) >= c.s.Steps ||
			span.Worker < 0 || int(span.Worker) >= len(c.p.Platform.Workers) {
			return fmt.Errorf("span %d is of task %d, step %d, worker %d, which do not exist", i, span.Task, span.Step, span.Worker)
		}
		at := &c.spanOf[int(span.Step)*c.n+int(span.Task)]
		if *at >= 0 {
			return fmt.Errorf("task %s ran twice", c.name(span.Task, span.Step))
		}
		*at = int32(i)
		if span.Start < 0 || span.End < span.Start || span.Ready > span.Start {
			return fmt.Errorf("task %s was ready at %v, started at %v and ended at %v", c.name(span.Task, span.Step), span.Ready, span.Start, span.End)
		}
		if i > 0 && c.s.Spans[i-1].Start > span.Start {
			return fmt.Errorf("span %d starts before the one listed before it", i)
		}
	}
	return nil
}

func (c *audit) placement() error {
	together := map[string]platform.WorkerID{}
	for i := range c.s.Spans {
		span := &c.s.Spans[i]
		worker := c.p.Platform.Workers[span.Worker]
		device := c.p.Platform.Devices[worker.Device]
		if cost, ok := c.p.Costs.Of(span.Task, worker.Device); !ok || cost.Duration < 0 {
			return fmt.Errorf("task %s ran on %q, where it cannot run", c.name(span.Task, span.Step), worker.Name)
		}
		where := c.p.Graph.Tasks[span.Task].Placement
		if where == nil {
			continue
		}
		if d := where.Device; d != "" && d != worker.Name && d != device.Name && d != device.Kind {
			return fmt.Errorf("task %s ran on %q and is placed on %q", c.name(span.Task, span.Step), worker.Name, d)
		}
		if key := where.Colocate; key != "" {
			if other, ok := together[key]; ok && other != span.Worker {
				return fmt.Errorf("task %s ran on %q, others of %q on %q", c.name(span.Task, span.Step), worker.Name, key, c.p.Platform.Workers[other].Name)
			}
			together[key] = span.Worker
		}
	}
	return nil
}

func (c *audit) dependences() error {
	g := c.p.Graph
	follows := func(first, then, step, distance int) error {
		if step < distance {
			return nil
		}
		a, b := c.span(first, step-distance), c.span(then, step)
		if a.End > b.Start {
			return fmt.Errorf("task %s started at %v, before %s, which it follows, ended at %v", c.name(b.Task, b.Step), b.Start, c.name(a.Task, a.Step), a.End)
		}
		return nil
	}
	for step := range c.s.Steps {
		for t := range c.n {
			id := dag.TaskID(t)
			for distance, preds := range [][]int32{g.Preds(id), g.CarriedPreds(id)} {
				for _, pred := range preds {
					if err := follows(int(pred), t, step, distance); err != nil {
						return err
					}
				}
			}
		}
		for distance, edges := range [][]dag.Edge{c.p.Reuse, c.p.ReuseNext} {
			for _, e := range edges {
				if err := follows(int(e.From), int(e.To), step, distance); err != nil {
					return fmt.Errorf("reuse of memory: %w", err)
				}
			}
		}
	}
	return nil
}

// versions is the greatest number of versions of a storage in any memory, by the plan or by the graph.
func (c *audit) versions(storage dag.BufferID) (most int) {
	if c.p.Versions == nil {
		return int(c.p.Graph.Versions(storage))
	}
	for _, here := range c.p.Versions {
		most = max(most, int(here[storage]))
	}
	return most
}

// rewrites verifies the first write of an atom in a step. It starts after all uses of the atom in the last step with
// the same version. Carried storages have edges.
func (c *audit) rewrites() error {
	g := c.p.Graph
	c.uses = make([][]use, g.NumAtoms())
	for t := range g.Tasks {
		for i, a := range g.Tasks[t].Accesses {
			for _, atom := range g.Atoms(dag.TaskID(t), i) {
				c.uses[atom] = append(c.uses[atom], use{dag.TaskID(t), a.Mode != dag.Write, a.Mode != dag.Read})
			}
		}
	}
	for atom, uses := range c.uses {
		storage := g.AtomStorage(dag.AtomID(atom))
		if len(uses) == 0 || !uses[0].writes || g.Carried(storage) {
			continue
		}
		for step := c.versions(storage); step < c.s.Steps; step++ {
			writer := c.span(int(uses[0].task), step)
			for _, u := range uses {
				if user := c.span(int(u.task), step-c.versions(storage)); user.End > writer.Start {
					return fmt.Errorf("task %s overwrites buffer %q at %v, where %s uses it until %v", c.name(writer.Task, writer.Step),
						g.Buffers[storage].Name, writer.Start, c.name(user.Task, user.Step), user.End)
				}
			}
		}
	}
	return nil
}

// exclusive verifies that a worker runs one task at a time.
func (c *audit) exclusive() error {
	until := make([]*schedule.Span, len(c.p.Platform.Workers))
	byStart := slices.Clone(c.s.Spans)
	slices.SortStableFunc(byStart, func(a, b schedule.Span) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	for i := range byStart {
		span := &byStart[i]
		if last := until[span.Worker]; last != nil && last.End > span.Start {
			return fmt.Errorf("worker %q ran %s until %v and %s from %v", c.p.Platform.Workers[span.Worker].Name,
				c.name(last.Task, last.Step), last.End, c.name(span.Task, span.Step), span.Start)
		}
		until[span.Worker] = span
	}
	return nil
}

func (c *audit) times() error {
	lastEnd := func(step int) time.Duration {
		var end time.Duration
		for t := range c.n {
			end = max(end, c.span(t, step).End)
		}
		return end
	}
	var makespan time.Duration
	for step := range c.s.Steps {
		makespan = max(makespan, lastEnd(step))
	}
	period := c.period(makespan)
	if first := lastEnd(0); c.s.Makespan != makespan || c.s.FirstStep != first || c.s.Period != period {
		return fmt.Errorf("makespan %v, first step %v, period %v; the spans say %v, %v, %v",
			c.s.Makespan, c.s.FirstStep, c.s.Period, makespan, first, period)
	}
	return nil
}

// period is the mean distance between the ends of rounds of all tasks in their later half, or by plan the work of a worker in a round.
func (c *audit) period(makespan time.Duration) time.Duration {
	n, lags := c.s.Steps, make([]int32, c.n)
	if c.p.Plan != nil {
		copy(lags, c.p.Plan.Lags)
	}
	full := int(slices.Max(append([]int32{0}, lags...))) // the first round of all tasks
	if n == 1 {
		return 0
	}
	if full >= n-1 {
		return makespan / time.Duration(n)
	}
	middle := full + (n-1-full)/2
	ends := make([]time.Duration, n)
	work := map[platform.WorkerID]time.Duration{}
	for t := range c.n {
		for round := int(lags[t]); round < n; round++ {
			of := c.span(t, round-int(lags[t]))
			if ends[round] = max(ends[round], of.End); round > middle && c.p.Plan != nil {
				work[of.Worker] += of.End - of.Start
			}
		}
	}
	longest := slices.Max(ends) - slices.Max(ends[:middle+1])
	for _, busy := range work {
		longest = max(longest, busy)
	}
	return longest / time.Duration(n-1-middle)
}

// transfer verifies a single transfer.
func (c *audit) transfer(i int) error {
	t := &c.s.Transfers[i]
	memories := len(c.p.Platform.Memories)
	if t.From < 0 || t.To < 0 || int(t.From) >= memories || int(t.To) >= memories || t.From == t.To ||
		t.Start < 0 || t.End < t.Start || t.Buffer < 0 || int(t.Buffer) >= len(c.p.Graph.Buffers) {
		return fmt.Errorf("transfer %d of buffer %d goes from memory %d to %d, from %v to %v", i, t.Buffer, t.From, t.To, t.Start, t.End)
	}
	whole := t.Bytes
	if s := t.Share; s != (place.Share{}) {
		if whole *= int64(s.Of); len(t.Atoms) != 1 || s.Part < 0 || s.Part >= s.Of {
			return fmt.Errorf("transfer %d of buffer %d is of share %d of %d of %d pieces", i, t.Buffer, s.Part, s.Of, len(t.Atoms))
		}
	}
	if err := c.pieces("transfer", i, t.Buffer, t.Atoms, whole); err != nil {
		return err
	}
	if c.s.World == schedule.Simulated {
		if _, ok := c.p.Platform.Route(t.From, t.To); !ok {
			return fmt.Errorf("transfer %d of buffer %q has no route", i, c.p.Graph.Buffers[t.Buffer].Name)
		}
		if least := c.p.Platform.RouteTime(t.From, t.To, t.Bytes); t.End-t.Start < least-1 {
			return fmt.Errorf("transfer %d of buffer %q took %v, its route needs %v", i, c.p.Graph.Buffers[t.Buffer].Name, t.End-t.Start, least)
		}
	}
	return nil
}

// eviction verifies a single eviction.
func (c *audit) eviction(i int) error {
	e := &c.s.Evictions[i]
	if e.Memory < 0 || int(e.Memory) >= len(c.p.Platform.Memories) || e.At < 0 || e.Buffer < 0 || int(e.Buffer) >= len(c.p.Graph.Buffers) {
		return fmt.Errorf("eviction %d of buffer %d is from memory %d, at %v", i, e.Buffer, e.Memory, e.At)
	}
	if m := &c.p.Platform.Memories[e.Memory]; m.CapacityBytes == 0 {
		return fmt.Errorf("eviction %d is from memory %q, which has room for everything", i, m.Name)
	}
	return c.pieces("eviction", i, e.Buffer, e.Atoms, e.Bytes)
}

// pieces verifies that atoms belong to a buffer and add up to a number of bytes.
func (c *audit) pieces(what string, i int, buffer dag.BufferID, atoms []int32, want int64) error {
	g, bytes := c.p.Graph, int64(0)
	for _, a := range atoms {
		if a < 0 || int(a) >= g.NumAtoms() || g.AtomStorage(dag.AtomID(a)) != g.Storage(buffer) {
			return fmt.Errorf("%s %d: it names piece %d, which is not of buffer %q", what, i, a, g.Buffers[buffer].Name)
		}
		bytes += g.AtomBytes(dag.AtomID(a))
	}
	if bytes != want {
		return fmt.Errorf("%s %d of buffer %q is of %d bytes, its pieces have %d", what, i, g.Buffers[buffer].Name, want, bytes)
	}
	return nil
}

// home is the memory that has a storage before the first step; -1 means all memories or none. In a cluster the host memories of the
// other nodes have what the first one's has.
func (c *audit) home(storage dag.BufferID, written bool) (memory int, everywhere bool, err error) {
	b := &c.p.Graph.Buffers[storage]
	name := b.Home
	if name == "" && !written {
		return -1, true, nil
	}
	if name == "" && !c.p.Graph.Carried(storage) {
		return -1, false, nil
	}
	if name == "" || name == "host" {
		return int(c.p.Platform.HostMemory()), false, nil
	}
	for m := range c.p.Platform.Memories {
		if c.p.Platform.Memories[m].Name == name {
			return m, false, nil
		}
	}
	return -1, false, fmt.Errorf("buffer %q has home %q, which is no memory", b.Name, name)
}
