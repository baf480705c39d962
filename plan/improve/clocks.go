package improve

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"dahl/dag"
	"dahl/plan/clocks"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
)

// Clocked is a plan with other clocks. Its tasks stay where they are, in their order.
type Clocked struct {
	*Result
	Bound float64   // by no clocks is the value less; infinite where none keep the deadline
	Front []*Result // plans by other clocks
}

const (
	corrections = 4  // of a deadline, at most, where the simulator says that a step takes longer than estimated
	frontPlans  = 20 // of a front, at most
)

// Clocks chooses the clocks of a plan. The result is no worse than the plan.
func Clocks(ctx context.Context, priced *schedule.Priced, from *schedule.Plan, o Options) (*Clocked, error) {
	s, err := newSearch(ctx, priced, from, o)
	if err != nil {
		return nil, err
	}
	found, err := s.judge(from, steadySteps)
	if err != nil {
		return nil, fmt.Errorf("the plan whose clocks are chosen: %w", err)
	}
	x := s.start
	if _, err := s.look(x); err != nil {
		return nil, err
	}
	bound := 0.0
	for range corrections {
		chosen, better := s.openClocks(x, o.Moves)
		if chosen != nil {
			bound = chosen.Bound
		}
		if !better {
			break
		}
		now, err := s.look(x)
		if err != nil {
			return nil, err
		}
		if now, err = s.judge(now.Plan(), steadySteps); err != nil {
			return nil, err
		}
		if now.score < found.score {
			found = now
		}
		if o.Deadline == 0 || now.Time <= o.Deadline {
			break
		}
	}
	c := &Clocked{Result: s.resultOf(found)}
	if s.reclaim(x, c.Result) {
		if now, err := s.judge(s.separateBuffers(s.planOf(x)), steadySteps); err == nil && now.score < found.score {
			c.Result = s.resultOf(now)
		}
	}
	if c.Bound, err = s.clockBound(ctx, x, bound); err == nil {
		err = s.addFront(ctx, c, x)
	}
	if ctx.Err() != nil {
		err = nil
	}
	return c, err
}

func (s *search) resultOf(found judged) *Result {
	return &Result{Evaluated: found.Evaluated, Step: found.Step, Value: s.options.Of(found.Time, found.Joules)}
}

// addFront adds plans from the shortest step to the least joules.
func (s *search) addFront(ctx context.Context, c *Clocked, x *point) error {
	of, err := clocks.New(s.clockGraph(x, false))
	if err != nil {
		return err
	}
	front, err := of.Front(ctx, frontPlans, s.options.Moves/8)
	for _, is := range front {
		s.setClocks(x, is)
		now, err := s.judge(s.separateBuffers(s.planOf(x)), steadySteps)
		if err != nil {
			return err
		}
		c.Front = append(c.Front, s.resultOf(now))
	}
	return err
}

// clockBound is a value that no clocks of the tasks of a point are below. Chosen is the bound of the last choice, which holds where nothing
// is estimated.
func (s *search) clockBound(ctx context.Context, x *point, chosen float64) (float64, error) {
	g := s.clockGraph(x, true)
	if chosen > 0 && s.factors.span == 1 && reflect.DeepEqual(g, s.clockGraph(x, false)) {
		return chosen, nil
	}
	of, err := clocks.New(g)
	if err != nil {
		return 0, err
	}
	return of.Bound(ctx, s.options.Aim)
}

// openClocks chooses the clocks of the tasks of a point by a linear program, and gives them to it if they are better by the estimate. Nil
// means that there is nothing to choose from.
func (s *search) openClocks(x *point, tries int) (is *clocks.Choice, better bool) {
	if !s.manyClocks {
		return nil, false
	}
	g := s.clockGraph(x, false)
	if !slices.ContainsFunc(g.Tasks, func(t clocks.Task) bool { return len(t.Options) > 1 }) {
		return nil, false
	}
	of, err := clocks.New(g)
	if err != nil {
		return nil, false
	}
	aim := s.options.Aim
	if aim.Deadline = time.Duration(float64(aim.Deadline) / s.factors.span); aim.Deadline == 0 && s.options.Deadline > 0 {
		return nil, false
	}
	if is, err = of.Choose(s.searching, aim, tries); is == nil || err != nil {
		return nil, false
	}
	before, was := s.estimate(x), slices.Clone(x.clock)
	s.setClocks(x, is)
	if better = s.estimate(x) < before; !better {
		copy(x.clock, was)
	}
	return is, better
}

func (s *search) setClocks(x *point, is *clocks.Choice) {
	for t := range x.clock {
		x.clock[t] = platform.ClockID(is.Clock[t])
	}
}

// sharesClock reports whether units of a device change their clock together.
func sharesClock(d *platform.Device) bool { return !d.UnitClocks && d.Count > 1 }

// clockGraph is a point whose clocks are open. Transfers take as long as in the last estimate, and units with a common clock keep the clocks
// of the point. Least: nothing takes longer or draws more than it does by any clocks in a run. Then all clocks are open, transfers take no time, and
// nobody learns of an end late.
func (s *search) clockGraph(x *point, least bool) *clocks.Graph {
	e := s.evaluator
	e.worth(x)
	g := &clocks.Graph{Watts: s.restWatts(x, least)}
	for t := range int32(e.tasks) {
		g.Tasks = append(g.Tasks, s.clockTask(x, t, least))
		for _, w := range e.waits.of[e.waits.start[t]:e.waits.start[t+1]] {
			g.Waits = append(g.Waits, clocks.Wait{From: w.task, To: t, Delay: s.learns(x, w.task, t, least), Back: w.back})
		}
	}
	first, last := make([]int32, len(e.workers)), make([]int32, len(e.workers))
	for i := range last {
		last[i] = -1
	}
	for _, t := range x.sequence {
		w := x.worker[t]
		if last[w] < 0 {
			first[w] = t
		} else {
			g.Waits = append(g.Waits, clocks.Wait{From: last[w], To: t})
		}
		last[w] = t
	}
	for w, t := range last {
		if t >= 0 && e.steady {
			g.Waits = append(g.Waits, clocks.Wait{From: t, To: first[w], Back: 1})
		}
	}
	begin := int32(-1)
	if !e.steady {
		begin = g.Step()
	}
	if !least && e.transfers != nil {
		s.addArrivals(g, x, begin)
	}
	return g
}

// restWatts is the power of the machine without its tasks.
func (s *search) restWatts(x *point, least bool) float64 {
	e, used := s.evaluator, make([]bool, len(s.evaluator.devices))
	for _, w := range x.worker {
		used[e.workers[w].device] = true
	}
	watts := e.rest
	if least {
		watts = e.platform.HostWatts().Value
		for i := range e.platform.Links {
			watts += platform.LeastWatts(e.platform.Links[i].IdleWatts, e.platform.Links[i].Sleeps)
		}
	}
	for i := range e.devices {
		if d := &e.devices[i]; d.MayBeOff && !used[i] && (least || !e.reached(d.Memory)) {
			watts += d.OffWatts
		} else {
			watts += d.count * s.idleWatts(i, least)
		}
	}
	return watts
}

// idleWatts is the power of an idle unit. Joules of tasks are counted above it.
func (s *search) idleWatts(device int, least bool) float64 {
	d := &s.evaluator.devices[device]
	if least {
		return problem.RestWatts(d.Device, s.clocks[device])
	}
	watts := d.idle[s.clocks[device][0]]
	for _, c := range s.clocks[device] {
		watts = min(watts, d.idle[c])
	}
	return watts
}

// clockTask is a task with its clocks. What the first busy unit of a device draws beyond the others is shared as if all were busy.
func (s *search) clockTask(x *point, t int32, least bool) (task clocks.Task) {
	e := s.evaluator
	device := e.workers[x.worker[t]].device
	d := &e.devices[device]
	open := s.clocks[device]
	if !least && sharesClock(d.Device) {
		open = x.clock[t : t+1]
	}
	for _, c := range open {
		call := &e.calls[e.slot[device]+int32(c)][e.class[t]]
		takes := call.takes
		if !e.steady {
			takes = call.first
		}
		if least {
			cost, _ := s.problem.AtClock[c].Of(dag.TaskID(t), platform.DeviceID(device))
			takes = int64(cost.Least())
		}
		watts := d.idle[c] - s.idleWatts(int(device), least)
		joules := call.joules
		if call.shared {
			_, each := d.BusyWatts(c)
			joules = 0
			shared := d.first[c] / d.count
			if least {
				shared = min(shared, d.first[c])
			}
			watts += each + shared
		}
		task.Options = append(task.Options, clocks.Option{Nanos: int64(d.Dispatch) + takes, Joules: joules + float64(watts*float64(takes))/1e9, Clock: int(c)})
	}
	return task
}

// learns is the time until the unit of a waiting task knows the end of another one.
func (s *search) learns(x *point, from, to int32, least bool) int64 {
	e := s.evaluator
	d := &e.devices[e.workers[x.worker[to]].device]
	switch {
	case least || x.worker[from] == x.worker[to]:
		return 0
	case d.toCPU > 0 && e.devices[e.workers[x.worker[from]].device].toCPU == 0:
		return d.toCPU
	}
	return int64(d.Handoff)
}

// addArrivals adds the waits for data from another memory. Begin is the task at which a step begins; -1 means steps go on and on.
func (s *search) addArrivals(g *clocks.Graph, x *point, begin int32) {
	e, c := s.evaluator, s.evaluator.transfers
	for t := range int32(e.tasks) {
		for _, r := range c.Reads[t] {
			p := &c.Pieces[r.Of]
			before := int(p.Writer) == e.tasks
			if c.memory(p) == e.in[t] || r.Back > e.step || before && begin < 0 {
				continue
			}
			d := &e.devices[e.workers[x.worker[t]].device]
			w := clocks.Wait{From: begin, To: t, Delay: c.at[c.before(c.entry(r.Of, e.in[t]), r.Back)] + max(d.toCPU, int64(d.Handoff)), Back: r.Back}
			if !before {
				w.From = p.Writer
				w.Delay -= e.end[(e.step-r.Back)*int32(e.tasks)+p.Writer]
			}
			g.Waits = append(g.Waits, w)
		}
	}
}
