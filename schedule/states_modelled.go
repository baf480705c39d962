package schedule

import (
	"cmp"
	"slices"
	"time"

	"dahl/platform"
)

// ModelStates adds to a measured schedule the changes of state of links, and of devices that are not emulated. dahl
// neither makes nor sees them. A unit has the clock of each task from its start on,
// as the plan says, whoever set it. It sleeps as its platform describes, in the gaps between its tasks. The measured
// times stand, so a sleep is left out if it could not have ended in time. [Problem.SleepModelled] names these devices
// and links.
func (s *Schedule) ModelStates(p *Problem) {
	pl := p.Platform
	works := s.Works(pl)
	for i, w := range pl.Workers {
		d := &pl.Devices[w.Device]
		if d.IsEmulated() {
			continue
		}
		unit := UnitOfChange(pl, platform.WorkerID(i))
		s.modelClocks(p, works[i], Change{Device: w.Device, Unit: unit, Link: -1, To: int32(d.AtClock)})
		if len(d.Sleeps) > 0 {
			s.modelSleep(p, works[i], NewSleeper(d.Sleeps, w.Device, unit, -1))
		}
	}
	for l := range pl.Links {
		if states := pl.Links[l].Sleeps; len(states) > 0 {
			s.modelSleep(p, works[len(pl.Workers)+l], NewSleeper(states, -1, -1, platform.LinkID(l)))
		}
	}
	sortChanges(s.Changes)
}

// modelClocks adds the clocks of a unit's tasks, from the one that was in force.
func (s *Schedule) modelClocks(p *Problem, works []Work, last Change) {
	if p.Clocks == nil {
		return
	}
	for _, w := range works { // by start
		if clock, _ := p.StatesOf(w.Span.Task, last.Device); int32(clock) != last.To {
			last.Kind, last.To, last.Start, last.End = SwitchClock, int32(clock), w.Start, w.Start
			s.Changes = append(s.Changes, last)
		}
	}
}

// modelSleep adds the sleep of one unit or link between its works.
func (s *Schedule) modelSleep(p *Problem, works []Work, awake Sleeper) {
	slices.SortStableFunc(works, func(a, b Work) int { return cmp.Compare(a.Start, b.Start) })
	var since time.Duration
	var planned int32
	nap := func(until time.Duration, wakes bool) {
		n := awake
		n.Idle(since, planned)
		n.Rest(until)
		if wakes && n.in > 0 {
			n.Wake(max(n.from, until-n.states[n.in-1].Leave.Takes))
		}
		if n.from <= until || !wakes {
			s.Changes = append(s.Changes, n.Changes...)
		}
	}
	for _, w := range works {
		if w.Start > since {
			nap(w.Start, true)
		}
		since = max(since, w.End)
		if w.Span != nil {
			_, planned = p.StatesOf(w.Span.Task, p.Platform.Workers[w.Span.Worker].Device)
		}
	}
	if since < s.Makespan {
		nap(s.Makespan, false)
	}
}

// SleepModelled names the devices and links with sleep by the platform's word in a measured schedule, since nobody
// sees it. Units that were not selected count too.
func (p *Problem) SleepModelled() (names []string) {
	for i := range p.Platform.Devices {
		if d := &p.Platform.Devices[i]; len(d.Sleeps) > 0 && !d.IsEmulated() {
			names = append(names, d.Name)
		}
	}
	for i := range p.Platform.Links {
		if l := &p.Platform.Links[i]; len(l.Sleeps) > 0 {
			names = append(names, l.Name)
		}
	}
	for _, name := range p.Platform.LeftAsleep {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Work is a time in which a unit or a link is busy.
type Work struct {
	Start, End time.Duration
	Span       *Span // nil means a transfer
}

// Works lists when each worker, and then each link, is busy.
func (s *Schedule) Works(p *platform.Platform) [][]Work {
	works := make([][]Work, len(p.Workers)+len(p.Links))
	for i := range s.Spans {
		v := &s.Spans[i]
		works[v.Worker] = append(works[v.Worker], Work{v.Start, v.End, v})
	}
	for i := range s.Transfers {
		v := &s.Transfers[i]
		for _, use := range p.LinkUses(v.From, v.To) {
			at := len(p.Workers) + int(use.Link)
			works[at] = append(works[at], Work{v.Start, v.End, nil})
		}
	}
	return works
}
