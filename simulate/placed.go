package simulate

import (
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// A plan on a platform whose copy engines are limited, or whose memories cannot hold
// everything at once, is simulated as it is executed: compiled by [schedule.Place] into
// a graph in which copies are tasks of lanes. The Engine replays it as if all were in
// one memory; what moves before the first step goes first on the engines, and holds the
// tasks that read it.

// mustPlace reports whether a plan has to be compiled for the platform.
func mustPlace(p *schedule.Problem) bool {
	if len(p.Platform.Memories) < 2 {
		return false
	}
	for i := range p.Platform.Devices {
		d := &p.Platform.Devices[i]
		if d.Memory != p.Platform.HostMemory() && (d.CopyEnginesIn > 0 || d.CopyEnginesOut > 0) {
			return true
		}
	}
	var total int64
	for b := range p.Graph.Buffers {
		if p.Graph.Buffers[b].ViewOf == dag.None {
			total += p.Graph.Buffers[b].Bytes()
		}
	}
	for m := range p.Platform.Memories {
		if limit := p.Platform.Memories[m].CapacityBytes; limit > 0 && total > limit {
			return true
		}
	}
	return false
}

// place compiles a plan, unless that was done, and returns the lists of the lanes.
func (s *simulation) place(plan *schedule.Plan) (*schedule.Plan, error) {
	g, placed := s.origin.Graph, s.opt.Placed
	if placed == nil {
		alone := *plan
		alone.Places = nil // they are those of a whole program, with scratch
		var err error
		placed, err = schedule.Place(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, s.origin.Platform,
			[]*schedule.Plan{&alone}, []*schedule.Costs{s.origin.Costs}, nil)
		if err != nil {
			return nil, err
		}
	}
	at := slices.IndexFunc(placed.Graphs, func(pg *schedule.PlacedGraph) bool { return pg.Origin == g })
	if at < 0 || placed.Platform != s.origin.Platform {
		return nil, fmt.Errorf("the placed program %q is of other graphs or for another platform", placed.Origin.Name)
	}
	s.p, s.lanes = placed.LaneProblem(at, s.origin), newLaneCopies(placed, placed.Graphs[at])
	return &schedule.Plan{Order: placed.Graphs[at].Order}, nil
}

// laneCopies is the state of the copies that are tasks.
type laneCopies struct {
	pg      *schedule.PlacedGraph
	workers int
	carries []carried // by copy that was started

	// What moves before the first step.
	entering [][]int32       // by lane: moves of Enter that it has not started
	after    [][]int32       // by move of Enter: those that go on with what it brings
	stages   []int32         // by move of Enter: those that bring what it goes on with, and have not ended
	readers  [][]dag.TaskID  // by move of Enter: tasks that read what it brings
	waits    []int32         // by task: moves of Enter that it waits for in the first step
	arrived  []time.Duration // by task: when the last of them ended

	entered  []schedule.Interval // by move of Enter
	entersOn []bool              // by lane: it makes a move of Enter
	held     []*schedule.Command // by lane: what it was given and cannot start
}

// carried is what a copy is: a task of a lane, or a move of Enter.
type carried struct {
	lane  platform.WorkerID
	task  schedule.Instance
	enter int32 // -1: a task
}

func newLaneCopies(placed *schedule.Placed, pg *schedule.PlacedGraph) *laneCopies {
	n, lanes := len(pg.Enter), len(placed.Lanes)
	c := &laneCopies{pg: pg, workers: len(placed.Platform.Workers), entering: make([][]int32, lanes), after: make([][]int32, n), stages: make([]int32, n),
		readers: make([][]dag.TaskID, n), waits: make([]int32, len(pg.Graph.Tasks)), arrived: make([]time.Duration, len(pg.Graph.Tasks)),
		entered: make([]schedule.Interval, n), entersOn: make([]bool, lanes), held: make([]*schedule.Command, lanes)}
	brought := map[arrival]int32{} // move of Enter by what it brings
	for i, m := range pg.Enter {
		if m.Anywhere {
			continue
		}
		c.enterBy(placed, int32(i), m)
		waitsFor := map[int32]bool{}
		for _, atom := range m.Atoms {
			if first, ok := brought[arrival{atom, m.From}]; ok && !waitsFor[first] {
				waitsFor[first] = true
				c.after[first] = append(c.after[first], int32(i))
				c.stages[i]++
			}
			brought[arrival{atom, m.To}] = int32(i)
		}
	}
	c.findReaders(placed, brought)
	return c
}

// arrival is an atom of the origin and a memory.
type arrival struct {
	atom   int32
	memory platform.MemoryID
}

// enterBy gives a move to the engine that reaches it and has the fewest, the last of
// several.
func (c *laneCopies) enterBy(placed *schedule.Placed, i int32, m *schedule.Move) {
	best := -1
	for l := c.workers; l < len(placed.Lanes); l++ {
		if placed.Reaches(l, m) && (best < 0 || len(c.entering[l]) <= len(c.entering[best])) {
			best = l
		}
	}
	c.entering[best] = append(c.entering[best], i)
}

// findReaders finds the tasks that wait for what moves before the first step.
func (c *laneCopies) findReaders(placed *schedule.Placed, brought map[arrival]int32) {
	g := c.pg.Origin
	for w, list := range c.pg.Order[:c.workers] {
		memory := placed.Lanes[w].Memory
		for _, t := range list {
			task := c.pg.TaskOf[t]
			waitsFor := map[int32]bool{}
			for i, a := range g.Tasks[task].Accesses {
				if !a.Mode.Reads() {
					continue
				}
				for _, atom := range g.Atoms(task, i) {
					if move, ok := brought[arrival{atom, memory}]; ok && !waitsFor[move] {
						waitsFor[move] = true
						c.readers[move] = append(c.readers[move], t)
						c.waits[t]++
					}
				}
			}
		}
	}
}

// holds keeps a command for later that cannot be obeyed yet.
func (c *laneCopies) holds(cmd schedule.Command) bool {
	w := cmd.Worker
	free := cmd.Instance.Step > 0 || c.waits[cmd.Instance.Task] == 0
	if int(w) >= c.workers {
		free = !c.entersOn[w] && len(c.entering[w]) == 0
	}
	if free {
		return false
	}
	c.held[w] = &cmd
	return true
}

// ready is when a task that was ready for the Engine had all it reads.
func (c *laneCopies) ready(i schedule.Instance, at time.Duration) time.Duration {
	return max(at, c.arrived[i.Task])
}

// release is the command that a lane holds, if it can be obeyed now.
func (c *laneCopies) release(lane platform.WorkerID) (schedule.Command, bool) {
	cmd := c.held[lane]
	if cmd == nil {
		return schedule.Command{}, false
	}
	c.held[lane] = nil
	return *cmd, !c.holds(*cmd)
}

// enter starts what can move before the first step on a lane.
func (s *simulation) enter(lane platform.WorkerID) {
	c := s.lanes
	if c.entersOn[lane] || len(c.entering[lane]) == 0 || c.stages[c.entering[lane][0]] > 0 {
		return
	}
	i := c.entering[lane][0]
	c.entering[lane] = c.entering[lane][1:]
	c.entersOn[lane] = true
	s.startMove(c.pg.Enter[i], 0, carried{lane: lane, enter: i})
}

// startCopyTask starts a copy that is a task of a lane.
func (s *simulation) startCopyTask(c schedule.Command) {
	m := s.lanes.pg.Moves[c.Instance.Task]
	s.startMove(m, m.StepOf(c.Instance.Step, s.origin.Steps), carried{c.Worker, c.Instance, -1})
}

func (s *simulation) startMove(m *schedule.Move, step int32, by carried) {
	s.lanes.carries = append(s.lanes.carries, by)
	s.transfer(int32(len(s.lanes.carries)-1), m.Transfer(step, schedule.Interval{Start: s.now}))
}

// copyTaskEnds goes on after a copy of a lane.
func (s *simulation) copyTaskEnds(id int32) {
	c := s.lanes
	by := c.carries[id]
	moved := &s.out.Transfers[s.transferOf[id]]
	if by.enter < 0 {
		s.out.Spans = append(s.out.Spans, schedule.Span{Task: by.task.Task, Step: by.task.Step, Worker: by.lane, Start: moved.Start, End: moved.End})
		s.obey(s.engine.Done(by.lane, s.cmds[:0]))
		return
	}
	c.entered[by.enter] = schedule.Interval{Start: moved.Start, End: moved.End}
	c.entersOn[by.lane] = false
	for _, next := range c.after[by.enter] {
		c.stages[next]--
	}
	for _, t := range c.readers[by.enter] {
		c.waits[t]--
		c.arrived[t] = s.now
	}
	for lane := range c.held {
		s.enter(platform.WorkerID(lane))
		if cmd, ok := c.release(platform.WorkerID(lane)); ok {
			s.startTask(cmd)
		}
	}
}

// startEntering begins with what moves before the first step.
func (s *simulation) startEntering() {
	for lane := range s.lanes.entering {
		s.enter(platform.WorkerID(lane))
	}
}
