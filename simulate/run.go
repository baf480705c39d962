package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// Options selects the scheduler. Exactly one of Policy and Plan is set.
type Options struct {
	Policy schedule.Policy
	Name   string // of the policy, for the schedule
	Plan   *schedule.Plan

	// Placed is the program of which the plan's graph, p.Graph, is one, compiled for the
	// platform with its plans. Nil: the graph is placed by itself where that is needed.
	Placed *schedule.Placed

	// Scale multiplies what an instance takes on a worker, such as by a factor drawn
	// from a distribution; nil: 1.
	Scale func(i schedule.Instance, w platform.WorkerID) float64
	// Durations overrides the cost of an instance on a worker, such as with what
	// was measured; ok is false where the costs hold. Nil: they always hold.
	Durations func(i schedule.Instance, w platform.WorkerID) (d time.Duration, ok bool)
	// Moving does the same for transfers, whose times are not set yet. What it speaks of
	// takes no part in the sharing of links.
	Moving func(t *schedule.Transfer) (d time.Duration, ok bool)
}

// Run simulates all steps of a problem. It fails when the problem or the plan is
// not sound, when a memory is too small, when the policy leaves tasks behind, or
// when ctx ends.
func Run(ctx context.Context, p *schedule.Problem, opt Options) (*schedule.Schedule, error) {
	if (opt.Policy == nil) == (opt.Plan == nil) {
		return nil, errors.New("simulate: give a policy or a plan, and not both")
	}
	s, err := newSimulation(p, opt)
	if err == nil {
		err = s.run(ctx)
	}
	if err == nil {
		err = s.complete()
	}
	if err != nil {
		return nil, fmt.Errorf("simulate %q on %q: %w", p.Graph.Name, p.Platform.Name, err)
	}
	return s.out, nil
}

func newSimulation(p *schedule.Problem, opt Options) (*simulation, error) {
	s := &simulation{origin: p, p: p, opt: opt, network: newNetwork(p.Platform)}
	policy, name := opt.Policy, opt.Name
	if opt.Plan != nil {
		name = cmp.Or(name, opt.Plan.Policy, "replay")
		plan := opt.Plan
		if opt.Placed != nil || mustPlace(p) {
			var err error
			if plan, err = s.place(plan); err != nil {
				return nil, err
			}
		}
		policy = schedule.Replay(s.p, plan)
	}
	return s, s.prepare(policy, name)
}

// complete makes the schedule of the origin's problem.
func (s *simulation) complete() (err error) {
	if s.lanes == nil {
		return s.out.Complete(s.origin)
	}
	s.out, err = s.lanes.pg.ToOrigin(s.origin, s.out, s.lanes.entered)
	return err
}

// prepare makes ready to run a policy of a name on s.p.
func (s *simulation) prepare(policy schedule.Policy, name string) (err error) {
	s.pace, s.busy = schedule.NewPace(s.p), make([]time.Duration, len(s.p.Platform.Workers))
	s.out = &schedule.Schedule{World: schedule.Simulated, GraphHash: s.origin.Graph.Hash(), Policy: name, Steps: s.p.Steps,
		Spans: make([]schedule.Span, 0, s.p.Steps*len(s.origin.Graph.Tasks))}
	s.engine, err = schedule.NewEngine(s.p, policy, func() time.Duration { return s.now })
	return err
}

type simulation struct {
	origin  *schedule.Problem
	p       *schedule.Problem // that of the Engine: the origin's, or that of lanes
	lanes   *laneCopies       // nil: copies are the Engine's matter
	opt     Options
	engine  *schedule.Engine
	pace    *schedule.Pace
	busy    []time.Duration // by worker: until when
	network *network
	now     time.Duration
	events  heap[event]
	cmds    []schedule.Command
	out     *schedule.Schedule

	transferOf []int32 // by CopyID: index into out.Transfers
	atoms      []int32 // storage of the atom lists of all transfers
}

// event is something that happens at a moment. Copies that end come before tasks
// that end, so that a task does not wait for what has arrived.
type event struct {
	at   time.Duration
	kind eventKind
	step int32
	rank int32 // of the name of the task, or of the one that needs the copy
	id   int32 // worker, or copy
}

type eventKind uint8

const (
	copyEnds eventKind = iota
	taskEnds
	copyJoins // the latency has passed, bytes begin to move
)

// Before is the order of events; nothing else decides.
func (a event) Before(b event) bool {
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.kind != b.kind:
		return a.kind < b.kind
	case a.rank != b.rank:
		return a.rank < b.rank
	case a.step != b.step:
		return a.step < b.step
	}
	return a.id < b.id
}

// eventsPerLook is how many moments pass between two looks at the context.
const eventsPerLook = 4096

func (s *simulation) run(ctx context.Context) error {
	if err := s.loop(ctx); err != nil {
		return fmt.Errorf("at %v: %w", s.now, err)
	}
	return nil
}

func (s *simulation) loop(ctx context.Context) error {
	if s.lanes != nil {
		s.startEntering()
	}
	s.obey(s.engine.Start(s.cmds[:0]))
	for n := 1; s.engine.Err() == nil && s.advance(); n++ {
		if n%eventsPerLook == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.now > schedule.LongestRun {
			return errors.New("the run takes longer than a time.Duration can hold")
		}
		for len(s.events) > 0 && s.events[0].at == s.now && s.engine.Err() == nil {
			s.handle(s.events.pop())
		}
	}
	if err := s.engine.Err(); err != nil {
		return err
	}
	if !s.engine.Finished() {
		return s.leftBehind()
	}
	return nil
}

// advance moves to the next moment at which something happens; false: nothing will.
func (s *simulation) advance() bool {
	flowEnds, flowing := s.network.next()
	switch {
	case flowing && (len(s.events) == 0 || flowEnds <= s.events[0].at):
		s.now = flowEnds
	case len(s.events) > 0:
		s.now = s.events[0].at
	default:
		return false
	}
	if flowing {
		s.network.ended(s.now, func(copy int32) {
			t := &s.out.Transfers[s.transferOf[copy]]
			s.events.push(event{s.now, copyEnds, t.Step, s.origin.Graph.Rank(t.For), copy})
		})
	}
	return true
}

func (s *simulation) handle(e event) {
	switch e.kind {
	case taskEnds:
		s.obey(s.engine.Done(platform.WorkerID(e.id), s.cmds[:0]))
	case copyJoins:
		t := &s.out.Transfers[s.transferOf[e.id]]
		s.network.join(s.now, t.From, t.To, t.Bytes, e.id, int64(s.transferOf[e.id]))
	case copyEnds:
		s.out.Transfers[s.transferOf[e.id]].End = s.now
		if s.lanes != nil {
			s.copyTaskEnds(e.id)
			return
		}
		s.obey(s.engine.Copied(schedule.CopyID(e.id), s.cmds[:0]))
	}
}

// obey does what the engine commands.
func (s *simulation) obey(cmds []schedule.Command) {
	s.cmds = cmds
	for _, c := range cmds {
		switch c.Kind {
		case schedule.RunTask:
			s.startTask(c)
		case schedule.CopyRegion:
			s.startCopy(c.Copy)
		case schedule.EvictRegion:
			e := *s.engine.EvictionAt(c.Eviction)
			e.At = s.now
			s.out.Evictions = append(s.out.Evictions, e)
		}
	}
}

func (s *simulation) startTask(c schedule.Command) {
	i, ready := c.Instance, s.engine.ReadyAt(c.Instance)
	if s.lanes != nil {
		if s.lanes.holds(c) {
			return
		}
		if s.lanes.pg.Moves[i.Task] != nil {
			s.startCopyTask(c)
			return
		}
		ready = s.lanes.ready(i, ready)
	}
	start, takes := s.pace.Begin(i, c.Worker, max(s.now, s.busy[c.Worker]), ready)
	if s.lanes != nil {
		i.Task = s.lanes.pg.TaskOf[i.Task]
	}
	if s.opt.Scale != nil {
		takes = roundUp(float64(takes) * s.opt.Scale(i, c.Worker) / 1e9)
	}
	if s.opt.Durations != nil {
		if d, ok := s.opt.Durations(i, c.Worker); ok {
			takes = d
		}
	}
	s.pace.End(c.Worker, start+takes)
	s.busy[c.Worker] = start + takes
	s.out.Spans = append(s.out.Spans, schedule.Span{Task: c.Instance.Task, Step: i.Step, Worker: c.Worker,
		Ready: ready, Start: start, End: start + takes})
	s.events.push(event{start + takes, taskEnds, i.Step, s.origin.Graph.Rank(i.Task), int32(c.Worker)})
}

func (s *simulation) startCopy(id schedule.CopyID) {
	t := *s.engine.CopyAt(id)
	from := len(s.atoms)
	s.atoms = append(s.atoms, t.Atoms...)
	t.Atoms = s.atoms[from:len(s.atoms):len(s.atoms)]
	t.Start = s.now
	s.transfer(int32(id), t)
}

// transfer starts to move something.
func (s *simulation) transfer(id int32, t schedule.Transfer) {
	for int(id) >= len(s.transferOf) {
		s.transferOf = append(s.transferOf, 0)
	}
	s.transferOf[id] = int32(len(s.out.Transfers))
	s.out.Transfers = append(s.out.Transfers, t)
	if s.opt.Moving != nil {
		if d, ok := s.opt.Moving(&t); ok {
			s.events.push(event{s.now + d, copyEnds, t.Step, s.origin.Graph.Rank(t.For), id})
			return
		}
	}
	s.events.push(event{s.now + s.network.latency(t.From, t.To), copyJoins, t.Step, s.origin.Graph.Rank(t.For), id})
}

// leftBehind names a task that never ran.
func (s *simulation) leftBehind() error {
	ran := map[schedule.Instance]bool{}
	for _, span := range s.out.Spans {
		ran[schedule.Instance{Task: span.Task, Step: span.Step}] = true
	}
	g := s.origin.Graph
	byName := make([]dag.TaskID, len(g.Tasks))
	for t := range byName {
		byName[g.Rank(dag.TaskID(t))] = dag.TaskID(t)
	}
	for step := range int32(s.p.Steps) {
		if i := slices.IndexFunc(byName, func(t dag.TaskID) bool { return !ran[schedule.Instance{Task: t, Step: step}] }); i >= 0 {
			return fmt.Errorf("the policy left task %q of step %d waiting and every worker idle", g.Tasks[byName[i]].Name, step)
		}
	}
	return errors.New("every task ran, but the engine waits for more")
}
