package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/schedule/ready"
)

// Options says how durations differ from the costs of tasks. The zero value changes nothing.
type Options struct {
	// Timed simulates steps whose tasks are timed, as in a recorded run.
	Timed bool
	// Scale multiplies the duration of an instance on a worker, for example by a factor drawn
	// from a distribution. Nil means 1.
	Scale func(i dag.Instance, w platform.WorkerID) float64
	// Durations replaces the cost of an instance on a worker, for example by a measured time.
	// Where ok is false, the cost holds. Nil: costs always hold.
	Durations func(i dag.Instance, w platform.WorkerID) (d time.Duration, ok bool)
	// Moving does the same for transfers; their times are not set yet. A transfer with such a
	// duration takes no part in the sharing of links.
	Moving func(t *schedule.Transfer) (d time.Duration, ok bool)
	// TimesOnly leaves out what memories hold and evict, if the run follows a plan. A search asks only for times and joules.
	TimesOnly bool
}

// Run simulates some steps of one graph of a decided program. It fails when a memory is too
// small, when the policy leaves tasks behind, or when ctx ends.
func Run(ctx context.Context, d *schedule.Decision, graph, steps int, opt Options) (*schedule.Schedule, error) {
	p := d.Problem(graph, steps, opt.Timed)
	s := &simulation{p: p, opt: opt, network: newNetwork(p.Platform), busy: make([]time.Duration, len(p.Platform.Workers))}
	s.out = &schedule.Schedule{World: schedule.Simulated, GraphHash: p.Graph.Hash(), Policy: d.PolicyName(graph), Steps: steps,
		Spans: make([]schedule.Span, 0, steps*len(p.Graph.Tasks))}
	s.states = newStates(s)
	var err error
	if d.Graphs[graph].Placed != nil {
		s.driver = newListRun(s, d, graph)
	} else {
		s.driver, err = newPolicyRun(s, d.Policy.(policy.Online).Start(p))
	}
	if err == nil {
		if err = s.run(ctx); err != nil {
			err = fmt.Errorf("at %v: %w", s.now, err)
		}
	}
	if err == nil {
		if s.states != nil {
			s.states.complete()
		}
		s.out, err = s.driver.complete()
	}
	if err != nil {
		return nil, fmt.Errorf("simulate %q on %q: %w", p.Graph.Name, p.Platform.Name, err)
	}
	return s.out, nil
}

// simulation is the state that both kinds of run have in common: the clock, the coming events,
// the links, and the schedule so far.
type simulation struct {
	p       *schedule.Problem
	opt     Options
	driver  driver
	pace    *schedule.Pace
	busy    []time.Duration // by worker: until when
	network *network
	states  *states // nil means nothing ever changes
	now     time.Duration
	events  ready.Heap[event]
	out     *schedule.Schedule

	moving []moving // by transfer of the run
}

// moving is where a transfer is in the schedule, and its route in the network.
type moving struct{ transfer, route int32 }

// driver starts tasks and transfers when others have ended.
type driver interface {
	start()
	taskEnds(worker int32)
	copyEnds(copy int32)
	err() error
	finished() bool
	complete() (*schedule.Schedule, error) // after the last event
}

// event happens at a moment. Ends of transfers come before ends of tasks, so that no task waits for contents that
// have arrived.
type event struct {
	at   time.Duration
	kind eventKind
	step int32
	rank int32 // of the name of the task, or of the transfer's reader
	id   int32 // worker, or transfer
}

type eventKind uint8

const (
	copyEnds eventKind = iota
	taskEnds
	copyJoins  // the latency has passed, bytes begin to move
	changeOver // a change may draw nothing any more
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
	s.driver.start()
	s.serve()
	for n := 1; s.driver.err() == nil && s.advance(); n++ {
		if n%eventsPerLook == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.now > schedule.LongestRun {
			return errors.New("the run takes longer than a time.Duration can hold")
		}
		for len(s.events) > 0 && s.events[0].at == s.now && s.driver.err() == nil {
			s.handle(s.events.Pop())
		}
	}
	if err := s.driver.err(); err != nil {
		return err
	}
	if s.states != nil && len(s.states.waiting) > 0 {
		return s.states.stuck()
	}
	if !s.driver.finished() {
		return s.leftBehind()
	}
	return nil
}

// advance moves to the next event; false: there is none.
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
			t := &s.out.Transfers[s.moving[copy].transfer]
			s.events.Push(event{s.now, copyEnds, t.Step, s.p.Graph.Rank(t.For), copy})
		})
	}
	return true
}

func (s *simulation) handle(e event) {
	switch e.kind {
	case taskEnds:
		if s.states != nil {
			s.states.taskEnded(platform.WorkerID(e.id))
		}
		s.driver.taskEnds(e.id)
	case copyJoins:
		of := s.moving[e.id]
		s.network.join(s.now, of.route, s.out.Transfers[of.transfer].Bytes, e.id, int64(of.transfer))
	case changeOver: // the requests below are served
	case copyEnds:
		t := &s.out.Transfers[s.moving[e.id].transfer]
		t.End = s.now
		if s.states != nil {
			s.states.transferEnded(e.id, t)
		}
		s.driver.copyEnds(e.id)
	}
	s.serve()
}

// serve starts tasks and transfers that waited for a change of state.
func (s *simulation) serve() {
	if s.states != nil {
		s.states.serve()
	}
}

// task starts an instance that became ready at some time. begun is the same instance as a task of
// the graph that the pace knows: the origin, or the placed graph.
func (s *simulation) task(i, begun dag.Instance, w platform.WorkerID, ready time.Duration) {
	if s.states != nil {
		s.states.waiting = append(s.states.waiting, request{worker: w, i: i, as: begun, ready: ready})
		return
	}
	s.begin(i, begun, w, ready, max(s.now, s.busy[w]))
}

// begin gives a worker a task at a time.
func (s *simulation) begin(i, begun dag.Instance, w platform.WorkerID, ready, from time.Duration) {
	start, takes := s.pace.Begin(begun, w, from, ready)
	if s.opt.Scale != nil {
		takes = roundUp(float64(takes) * s.opt.Scale(i, w) / 1e9)
	}
	if s.opt.Durations != nil {
		if d, ok := s.opt.Durations(i, w); ok {
			takes = d
		}
	}
	s.pace.End(w, start+takes)
	s.busy[w] = start + takes
	s.addSpan(schedule.Span{Task: i.Task, Step: i.Step, Worker: w, Ready: ready, Start: start, End: start + takes})
	s.events.Push(event{start + takes, taskEnds, i.Step, s.p.Graph.Rank(i.Task), int32(w)})
}

// addSpan keeps the spans in the order of a schedule. At most one span of each other worker is still to start.
func (s *simulation) addSpan(x schedule.Span) {
	s.out.Spans = append(s.out.Spans, x)
	at := len(s.out.Spans) - 1
	for ; at > 0 && x.Compare(&s.out.Spans[at-1]) < 0; at-- {
		s.out.Spans[at] = s.out.Spans[at-1]
	}
	s.out.Spans[at] = x
}

// transfer starts a movement.
func (s *simulation) transfer(id int32, t schedule.Transfer) {
	if s.states != nil {
		s.states.waiting = append(s.states.waiting, request{worker: -1, id: id, moves: t})
		return
	}
	s.move(id, t)
}

// move starts a movement at its start.
func (s *simulation) move(id int32, t schedule.Transfer) {
	for int(id) >= len(s.moving) {
		s.moving = append(s.moving, moving{})
	}
	route, latency := s.network.route(t.From, t.To)
	s.moving[id] = moving{int32(len(s.out.Transfers)), route}
	s.out.Transfers = append(s.out.Transfers, t)
	if s.opt.Moving != nil {
		if d, ok := s.opt.Moving(&s.out.Transfers[len(s.out.Transfers)-1]); ok {
			s.events.Push(event{t.Start + d, copyEnds, t.Step, s.p.Graph.Rank(t.For), id})
			return
		}
	}
	s.events.Push(event{t.Start + latency, copyJoins, t.Step, s.p.Graph.Rank(t.For), id})
}

// leftBehind names a task that never ran.
func (s *simulation) leftBehind() error {
	ran := map[dag.Instance]bool{}
	for _, span := range s.out.Spans {
		ran[dag.Instance{Task: span.Task, Step: span.Step}] = true
	}
	g := s.p.Graph
	byName := make([]dag.TaskID, len(g.Tasks))
	for t := range byName {
		byName[g.Rank(dag.TaskID(t))] = dag.TaskID(t)
	}
	for step := range int32(s.p.Steps) {
		if i := slices.IndexFunc(byName, func(t dag.TaskID) bool { return !ran[dag.Instance{Task: t, Step: step}] }); i >= 0 {
			return fmt.Errorf("the policy left task %q of step %d waiting and every worker idle", g.Tasks[byName[i]].Name, step)
		}
	}
	return errors.New("every task ran, but the engine waits for more")
}
