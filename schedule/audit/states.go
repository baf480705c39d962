package audit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// states verifies the changes of clocks and of sleep. The platform and the plan know each of them. Nothing runs or
// moves during one or in sleep. Every task runs at its clock. In a simulation everything falls asleep when it has to.
func (c *audit) states() error {
	p := c.p.Platform
	if len(c.s.Changes) == 0 && c.p.Clocks == nil && c.p.Sleeps == nil && !p.HasStates() {
		return nil
	}
	for i := range c.s.Changes {
		if err := c.change(&c.s.Changes[i]); err != nil {
			return fmt.Errorf("change %d, of %s: %w", i, c.s.Changes[i].Of(p), err)
		}
	}
	works := c.s.Works(p)
	for i, w := range p.Workers {
		of := func(ch *schedule.Change) bool { return ch.Device >= 0 && ch.Covers(w.Device, w.Index) }
		if err := c.history(works[i], p.Devices[w.Device].AtClock, p.Devices[w.Device].Sleeps, of); err != nil {
			return fmt.Errorf("unit %q: %w", w.Name, err)
		}
	}
	for l := range p.Links {
		of := func(ch *schedule.Change) bool { return ch.Device < 0 && int(ch.Link) == l }
		if err := c.history(works[len(p.Workers)+l], 0, p.Links[l].Sleeps, of); err != nil {
			return fmt.Errorf("link %q: %w", p.Links[l].Name, err)
		}
	}
	return nil
}

// change verifies one change by itself.
func (c *audit) change(ch *schedule.Change) error {
	p := c.p.Platform
	if ch.Start < 0 || ch.End < ch.Start {
		return fmt.Errorf("it lasts from %v to %v", ch.Start, ch.End)
	}
	if ch.Device >= 0 {
		d := &p.Devices[ch.Device]
		seen := c.s.World == schedule.Simulated || d.IsEmulated() // else see ModelStates
		ofUnit := d.Count > 1 && (ch.Kind != schedule.SwitchClock || d.UnitClocks || !seen)
		if ofUnit != (ch.Unit >= 0) || int(ch.Unit) >= d.Count {
			return fmt.Errorf("%s changes for unit %d, of %d", ch.Kind, ch.Unit, d.Count)
		}
	}
	if takes := ch.Transition(p).Takes; c.s.World == schedule.Simulated && ch.End-ch.Start != takes {
		return fmt.Errorf("%s %s took %v, the platform says %v", ch.Kind, ch.StateName(p), ch.End-ch.Start, takes)
	}
	return nil
}

// unitHistory is the state of one unit or link while its history is replayed.
type unitHistory struct {
	clock     platform.ClockID
	sleep     int // 0 means awake, else the state plus 1
	since     time.Duration
	settled   time.Duration // the end of its last change
	planned   int32         // the sleep state that the plan wants now, plus 1
	simulated bool
	states    []platform.SleepState
}

// history replays what one unit or link did, with its changes, in the order of time.
func (c *audit) history(works []schedule.Work, clock platform.ClockID, states []platform.SleepState, of func(*schedule.Change) bool) error {
	slices.SortStableFunc(works, func(a, b schedule.Work) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	r := &unitHistory{clock: clock, simulated: c.s.World == schedule.Simulated, states: states}
	next := 0
	for i := range c.s.Changes {
		ch := &c.s.Changes[i]
		if !of(ch) {
			continue
		}
		// A task of no duration at the moment of such a change was before it if it fits the clock.
		clock := func(span *schedule.Span) platform.ClockID {
			clock, _ := c.statesOf(span)
			return clock
		}
		before := func(w *schedule.Work) bool {
			return w.Start < ch.End || w.End <= ch.Start && (w.Span == nil || clock(w.Span) == r.clock)
		}
		for next < len(works) && before(&works[next]) {
			if works[next].End > ch.Start {
				return fmt.Errorf("it works from %v to %v and changes from %v to %v", works[next].Start, works[next].End, ch.Start, ch.End)
			}
			if err := c.works(r, &works[next]); err != nil {
				return err
			}
			next++
		}
		if err := r.turn(ch); err != nil {
			return err
		}
	}
	for ; next < len(works); next++ {
		if err := c.works(r, &works[next]); err != nil {
			return err
		}
	}
	return r.asleepBy(c.s.Makespan)
}

// turn takes a change.
func (r *unitHistory) turn(ch *schedule.Change) error {
	switch ch.Kind {
	case schedule.SwitchClock:
		if platform.ClockID(ch.To) == r.clock {
			return fmt.Errorf("at %v it changes to the clock that it has", ch.Start)
		}
		r.clock = platform.ClockID(ch.To)
		return nil // another unit of the domain may have asked for it while this one slept
	case schedule.WakeUp:
		if r.sleep != int(ch.To)+1 {
			return fmt.Errorf("at %v it wakes from a state that it is not in", ch.Start)
		}
		if err := r.asleepBy(ch.Start); err != nil {
			return err
		}
		r.sleep = 0
	case schedule.FallAsleep:
		state := &r.states[ch.To]
		rule := state.After > 0 && ch.Start == max(r.since+state.After, r.settled)
		if r.simulated && !rule && (r.planned != ch.To+1 || ch.Start != r.since) {
			return fmt.Errorf("at %v it falls asleep, idle since %v, which neither the plan nor the platform says", ch.Start, r.since)
		}
		if int(ch.To) < r.sleep {
			return fmt.Errorf("at %v it falls into a lighter sleep", ch.Start)
		}
		r.sleep, r.planned = int(ch.To)+1, 0
	}
	if ch.Start < r.settled {
		return fmt.Errorf("it changes at %v, before the change until %v is over", ch.Start, r.settled)
	}
	r.settled = ch.End
	return nil
}

// works takes a task or a transfer.
func (c *audit) works(r *unitHistory, w *schedule.Work) error {
	if r.sleep > 0 {
		return fmt.Errorf("it works at %v, asleep", w.Start)
	}
	if w.Span != nil {
		if err := r.asleepBy(w.Span.Ready); err != nil {
			return err
		}
		if want, _ := c.statesOf(w.Span); want != r.clock {
			return fmt.Errorf("task %s ran at clock %d, the plan says %d", c.name(w.Span.Task, w.Span.Step), r.clock, want)
		}
		_, r.planned = c.statesOf(w.Span)
	}
	r.since = max(r.since, w.End)
	return nil
}

func (c *audit) statesOf(span *schedule.Span) (clock platform.ClockID, sleeps int32) {
	return c.p.StatesOf(span.Task, c.p.Platform.Workers[span.Worker].Device)
}

// asleepBy verifies that an idle unit or link of a simulation is in the right sleep state at a time.
func (r *unitHistory) asleepBy(at time.Duration) error {
	if !r.simulated {
		return nil
	}
	for k := r.sleep; k < len(r.states); k++ {
		if after := r.states[k].After; after > 0 && max(r.since+after, r.settled) < at {
			return fmt.Errorf("idle since %v it is not in sleep state %q at %v", r.since, r.states[k].Name, at)
		}
	}
	if r.planned > 0 && r.since < at {
		return fmt.Errorf("the plan lets it sleep from %v on, and it does not", r.since)
	}
	return nil
}
