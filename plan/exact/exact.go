package exact

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
)

// MaxTasks bounds the graphs that can be searched.
const MaxTasks = 64

// Options say what to look for, and how far.
type Options struct {
	Objective problem.Objective
	// Nodes bounds the search: the parts of plans to look at. A simulated plan counts as 16, since it takes about that much longer.
	Nodes int
	// Clocks lists by device the clocks that tasks may run at; nil, or a nil entry: all.
	Clocks [][]platform.ClockID
}

// Result is the best plan found.
type Result struct {
	Plan     *schedule.Plan
	Makespan time.Duration
	Joules   float64
	Value    float64 // of the objective, as simulated
	Bound    float64 // no plan has a lower value
	Proven   bool    // there is none
	Nodes    int
}

// Gap is how far the value may be above the least, relative to that.
func (r *Result) Gap() float64 {
	switch {
	case r.Proven || r.Value == r.Bound:
		return 0
	case r.Bound <= 0:
		return math.Inf(1)
	}
	return r.Value/r.Bound - 1
}

// tolerance is a relative difference of joules that counts as none.
const tolerance = 1e-12

// Search finds the plan of least value for a step of the one graph of a priced program. Where its nodes
// are spent, or ctx has ended, it returns the best plan so far with a bound. It fails where nothing can run the
// graph.
func Search(ctx context.Context, priced *schedule.Priced, o Options) (*Result, error) {
	if err := check(priced, o); err != nil {
		return nil, err
	}
	m, err := newModel(priced, o)
	if err != nil {
		return nil, err
	}
	s := &search{model: m, ctx: ctx, priced: priced, left: o.Nodes, best: math.Inf(1)}
	s.tryHEFT()
	s.inModel = true
	lowest := s.part(newDominance(m))
	s.inModel = false
	if !s.stopped && lowest < s.cut() {
		if all := s.part(newPrefixes(m)); !m.maySleep() && !m.varied {
			lowest = max(lowest, all)
		}
	}
	switch {
	case s.result.Plan == nil && s.refused != nil:
		return nil, fmt.Errorf("no plan of graph %q that was tried can run: %w", m.graph.Name, s.refused)
	case s.result.Plan == nil:
		return nil, fmt.Errorf("%d nodes do not reach a plan of the %d tasks of graph %q; allow more", o.Nodes-s.left, len(m.tasks), m.graph.Name)
	}
	s.result.Nodes, s.result.Proven = o.Nodes-s.left, lowest >= s.cut()
	s.result.Bound = m.shown(lowest)
	if s.result.Proven {
		s.result.Bound = s.result.Value
	}
	return &s.result, nil
}

func check(priced *schedule.Priced, o Options) error {
	graphs, p := priced.Program.Graphs, priced.Platform
	switch {
	case len(graphs) != 1:
		return fmt.Errorf("a program of %d graphs; search for plans of one", len(graphs))
	case len(graphs[0].Tasks) > MaxTasks:
		return fmt.Errorf("graph %q has %d tasks; a search looks at all plans of up to %d", graphs[0].Name, len(graphs[0].Tasks), MaxTasks)
	case len(p.Nodes) > 0:
		return fmt.Errorf("platform %q is a cluster; a search that looks at all plans knows one machine", p.Name)
	case len(p.Memories) > 64:
		return fmt.Errorf("platform %q has %d memories; such a search knows up to 64", p.Name, len(p.Memories))
	case len(p.Devices) > 64:
		return fmt.Errorf("platform %q has %d devices; select up to 64", p.Name, len(p.Devices))
	case !slices.Contains(problem.Objectives(), string(o.Objective)):
		return fmt.Errorf("objective %q; write %s", o.Objective, strings.Join(problem.Objectives(), ", "))
	case o.Nodes < 1:
		return fmt.Errorf("%d nodes; allow at least 1", o.Nodes)
	}
	for i := range p.Devices {
		if d := &p.Devices[i]; o.Objective != problem.Time && d.PowerSource == "" {
			return fmt.Errorf("objective %s: the power of device %q of platform %q is not known; add power = { … }", o.Objective, d.Name, p.Name)
		}
	}
	return nil
}

// search goes depth first through parts of plans.
type search struct {
	*model
	ctx    context.Context
	priced *schedule.Priced
	left   int // nodes

	inModel bool // what has been seen is known to be no better in the model, and not as simulated

	frames  []frame // by depth
	seen    seen
	lowest  float64 // of what is not known to be no less than best: nodes left open, plans that came out above their value in the model
	best    float64 // as the model counts
	result  Result
	refused error // why the first plan that cannot run cannot
	stopped bool  // the nodes are spent, or the context has ended
}

// frame is one level of the search.
type frame struct {
	state state
	view  view
	next  []child
}

// child is a part of a plan with one task more.
type child struct {
	step  step
	bound float64
	end   int64 // of the task
}

// seen knows what has been looked at.
type seen interface {
	// covers reports whether nothing better can come of a part of a plan than of those before.
	covers(x *state, v *view) bool
	// equivalent reports whether two units of a device that are free are as good as one another.
	equivalent(x *state, a, b platform.WorkerID) bool
	// twin reports whether a device is as good as one before it.
	twin(x *state, id platform.DeviceID) bool
}

// part searches with one kind of memory, and returns a value that no plan goes below.
func (s *search) part(memory seen) float64 {
	s.seen, s.lowest = memory, math.Inf(1)
	s.frames = make([]frame, len(s.tasks)+1)
	for i := range s.frames {
		s.frames[i] = frame{state: s.newState(), view: s.newView()}
	}
	s.visit(0, s.lower(&s.frames[0].state, &s.frames[0].view))
	return min(s.lowest, s.best)
}

// cut is the value from which on nothing is looked at: it is no better than the best. In the model a plan above its value there
// has ended the hope for a proof above that value. Such a value cuts, too.
func (s *search) cut() float64 {
	cut := s.best
	if s.inModel {
		cut = min(cut, s.lowest)
	}
	if s.objective == problem.Time {
		return cut
	}
	return float64(cut * (1 - tolerance))
}

// nodesPerPlan is the price of a simulated plan.
const nodesPerPlan = 16

// nodesPerLook is how many nodes pass between two looks at the context.
const nodesPerLook = 1024

// visit looks at the part of a plan at a depth, whose bound is known.
func (s *search) visit(depth int, bound float64) {
	if bound >= s.cut() {
		return
	}
	f, costs, complete := &s.frames[depth], 1, depth == len(s.tasks)
	if complete {
		costs = nodesPerPlan
	}
	if s.left < costs {
		s.left, s.stopped = 0, true
	} else if (complete || s.left%nodesPerLook == 0) && s.ctx.Err() != nil {
		s.stopped = true
	}
	if s.stopped {
		s.lowest = min(s.lowest, bound)
		return
	}
	s.left -= costs
	if complete {
		s.leaf(&f.state)
		return
	}
	s.lower(&f.state, &f.view)
	if s.seen.covers(&f.state, &f.view) {
		return
	}
	s.branch(f, &s.frames[depth+1])
	for _, c := range f.next {
		if c.bound >= s.cut() {
			break // they are in the order of their bounds
		}
		next := &s.frames[depth+1]
		next.state.copy(&f.state)
		s.assign(&next.state, c.step)
		s.visit(depth+1, c.bound)
	}
}

// branch lists what can come next, in the order of bounds. Of equal ones the tasks with the most behind
// them are the first, where they end first.
func (s *search) branch(f, scratch *frame) {
	f.next = f.next[:0]
	for t := range s.tasks {
		if !f.state.isReady(s.tasks, t) {
			continue
		}
		for setting, of := range s.tasks[t].settings {
			d := &s.devices[of.device]
			if s.arrival(&f.state, t, d.memory) >= noWay || s.seen.twin(&f.state, of.device) {
				continue
			}
			for i, w := range d.workers {
				if !s.allows(&f.state, t, w) || slices.ContainsFunc(d.workers[:i], func(o platform.WorkerID) bool { return s.seen.equivalent(&f.state, o, w) }) {
					continue
				}
				c := child{step: step{int32(t), int32(setting), w}}
				scratch.state.copy(&f.state)
				s.assign(&scratch.state, c.step)
				c.end = scratch.state.end[t]
				if c.bound = s.lower(&scratch.state, &scratch.view); c.bound < s.cut() {
					f.next = append(f.next, c)
				}
			}
		}
	}
	slices.SortStableFunc(f.next, func(a, b child) int {
		return cmp.Or(cmp.Compare(a.bound, b.bound), cmp.Compare(s.ranks[b.step.task], s.ranks[a.step.task]), cmp.Compare(a.end, b.end))
	})
}
