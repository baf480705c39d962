package improve

import (
	"slices"
	"time"

	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
)

// A plan may send a unit to sleep as soon as a task has ended ([schedule.States]). The unit falls asleep, and begins
// to wake when its next task could start, which the time to wake then holds up. So a sleep of g ns between two
// tasks, with t ns and e joules for the way in and f joules for the way out, saves
//
//	(idle watts − watts asleep)·(g − t) − e − f
//
// joules of the unit, and may cost all that the machine draws while a task is late. The first is known from the gaps of
// one step, the second only by simulation, since most tasks that are late hold up nobody.
//
// A worked example. A unit of 10 W idle and 1 W asleep waits for 100 ns, and falls asleep in 10 ns with 20 nJ more than
// idle and wakes in 5 ns with 30 nJ: it saves 9·90 − 50 = 760 nJ. If the step is 5 ns longer for that, and the machine draws
// 20 W while everything idles, 100 nJ of them are lost.

// sleep puts units to sleep in a plan after tasks with a saving, if the simulator says that the plan is better.
func (s *search) sleep(found judged) judged {
	if !slices.ContainsFunc(s.priced.Platform.Devices, func(d platform.Device) bool { return len(d.Sleeps) > 0 }) {
		return found
	}
	naps, err := s.naps(found.Evaluated)
	if err != nil {
		return found
	}
	all := 0.0
	for _, n := range naps {
		all += n.forms[0].saves
	}
	if s.score(found.Time, found.Joules-all) >= found.score {
		return found // there are none, or the objective does not count joules
	}
	return s.tryHalves(found, naps)
}

// naps lists the sleeps with savings after the tasks of a step of a plan, alone or in the middle of some steps, the largest saving first.
func (s *search) naps(e *plan.Evaluated) (all []change, err error) {
	steps := 1
	if s.options.Steady {
		steps = fewSteps
	}
	run, err := e.Simulate(s.ctx, 0, steps, false)
	if err != nil {
		return nil, err
	}
	ran, p := run.Schedule, e.Decision.Problem(0, steps, false)
	next := make([]*schedule.Span, len(p.Platform.Workers)) // by worker: the span after the one at hand
	for i := range slices.Backward(ran.Spans) {             // of each worker in the order of time
		span := &ran.Spans[i]
		after := next[span.Worker]
		next[span.Worker] = span
		if int(span.Step) != (steps-1)/2 {
			continue
		}
		id := p.Platform.Workers[span.Worker].Device
		clock, planned := p.StatesOf(span.Task, id)
		r := rest{device: &p.Platform.Devices[id], clock: clock, takes: ran.Makespan - span.End}
		if after != nil {
			r.takes, r.wakes = after.Ready-span.End, true
		}
		if n := (change{task: span.Task, forms: r.pays()}); planned == 0 && len(n.forms) > 0 {
			all = append(all, n)
		}
	}
	sortChanges(all)
	return all, nil
}

// rest is a time in which a unit has nothing to do.
type rest struct {
	device *platform.Device
	clock  platform.ClockID // of the task before
	takes  time.Duration
	wakes  bool // a task follows
}

// pays lists the states in which the unit saves more than it does by itself.
func (r *rest) pays() (states []form) {
	for k := range r.device.Sleeps {
		state := int32(k) + 1
		if saves := r.saves(state) - r.saves(0); saves > 0 {
			states = append(states, form{sleeps: state, saves: saves})
		}
	}
	return states
}

// saves is how many joules less the unit draws than idle if it enters a state at once, as an index plus 1; zero means if it does
// what it does by itself.
func (r *rest) saves(planned int32) (joules float64) {
	if r.takes <= 0 {
		return 0
	}
	unit := schedule.NewSleeper(r.device.Sleeps, 0, -1, -1)
	unit.Idle(0, planned)
	if r.wakes {
		unit.Wake(r.takes)
	} else {
		unit.Rest(r.takes)
	}
	for i, c := range unit.Changes {
		state, until := &r.device.Sleeps[c.To], r.takes
		if c.Kind == schedule.WakeUp {
			joules -= state.Leave.Joules
			continue
		}
		if i+1 < len(unit.Changes) {
			until = unit.Changes[i+1].Start
		}
		joules += float64((r.device.ClockAt(r.clock).Idle-state.Watts)*max(0, until-c.End).Seconds()) - state.Enter.Joules
	}
	return joules
}
