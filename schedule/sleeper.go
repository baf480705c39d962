package schedule

import (
	"cmp"
	"slices"
	"time"

	"dahl/platform"
)

// Sleeper is a unit or a link that goes to sleep when it idles, for a world that has to make it. It
// needs no events: what it did since its last work is known when the next comes, or at the end.
type Sleeper struct {
	states []platform.SleepState
	of     Change // without kind, state and times: what sleeps
	// Changes are those that it made, in order. Whoever drives it may take them.
	Changes []Change

	since time.Duration // the end of its last work
	in    int           // the state it is in or enters: 0: awake, else its index plus 1
	from  time.Duration // when it is in that state
}

// NewSleeper makes one that is awake and idle. Its changes are of a device's unit, -1 for all, or
// of a link where the device is -1.
func NewSleeper(states []platform.SleepState, d platform.DeviceID, unit int32, l platform.LinkID) Sleeper {
	return Sleeper{states: states, of: Change{Device: d, Unit: unit, Link: l}}
}

// UnitOfChange is the unit of a change of one unit: a device of one unit changes as a whole.
func UnitOfChange(p *platform.Platform, w platform.WorkerID) int32 {
	if p.Devices[p.Workers[w].Device].Count == 1 {
		return -1
	}
	return int32(p.Workers[w].Index)
}

// ModelSleep adds to a measured schedule the sleep of what nobody makes sleep or sees asleep, of
// devices that are not emulated and of links: that their platform describes, in the gaps between
// what they did. What they did took as long as it was measured, so a sleep that could not have ended
// in time is left out. [Problem.SleepModelled] names what it is about.
func (s *Schedule) ModelSleep(p *Problem) {
	pl := p.Platform
	works := make([][]work, len(pl.Workers)+len(pl.Links))
	for i := range s.Spans {
		v := &s.Spans[i]
		works[v.Worker] = append(works[v.Worker], work{v.Start, v.End, v})
	}
	for i := range s.Transfers {
		v := &s.Transfers[i]
		for _, use := range pl.LinkUses(v.From, v.To) {
			at := len(pl.Workers) + int(use.Link)
			works[at] = append(works[at], work{v.Start, v.End, nil})
		}
	}
	for i, w := range pl.Workers {
		if d := &pl.Devices[w.Device]; len(d.Sleeps) > 0 && !d.IsEmulated() {
			s.modelSleep(p, works[i], NewSleeper(d.Sleeps, w.Device, UnitOfChange(pl, platform.WorkerID(i)), -1))
		}
	}
	for l := range pl.Links {
		if states := pl.Links[l].Sleeps; len(states) > 0 {
			s.modelSleep(p, works[len(pl.Workers)+l], NewSleeper(states, -1, -1, platform.LinkID(l)))
		}
	}
	sortChanges(s.Changes)
}

// modelSleep adds the sleep of one unit or link between its works.
func (s *Schedule) modelSleep(p *Problem, works []work, awake Sleeper) {
	slices.SortStableFunc(works, func(a, b work) int { return cmp.Compare(a.start, b.start) })
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
		if w.start > since {
			nap(w.start, true)
		}
		since = max(since, w.end)
		if w.span != nil {
			_, planned = p.StatesOf(w.span.Task, p.Platform.Workers[w.span.Worker].Device)
		}
	}
	if since < s.Makespan {
		nap(s.Makespan, false)
	}
}

// SleepModelled names the devices and links whose sleep in a measured schedule is the platform's word
// and not seen.
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
	return names
}

// Idle notes that its work has ended, and that it sleeps from then on where a plan gives a state, as
// an index plus 1.
func (s *Sleeper) Idle(now time.Duration, planned int32) {
	s.since, s.from = now, now
	if planned > 0 {
		s.fall(int(planned)-1, now)
	}
}

// Rest adds what it did by itself until a time.
func (s *Sleeper) Rest(until time.Duration) {
	for k := s.in; k < len(s.states); k++ {
		at := max(s.since+s.states[k].After, s.from)
		if s.states[k].After > 0 && at < until {
			s.fall(k, at)
		}
	}
}

func (s *Sleeper) fall(state int, at time.Duration) {
	s.change(FallAsleep, state, at, s.states[state].Enter.Takes)
	s.in = state + 1
}

func (s *Sleeper) change(kind ChangeKind, state int, at, takes time.Duration) {
	c := s.of
	c.Kind, c.To, c.Start, c.End = kind, int32(state), at, at+takes
	s.Changes = append(s.Changes, c)
	s.from = c.End
}

// Wake ends its idle time, and returns when it can work. An entry that has begun is completed.
func (s *Sleeper) Wake(now time.Duration) time.Duration {
	s.Rest(now)
	if s.in == 0 {
		s.from = now
		return now
	}
	s.change(WakeUp, s.in-1, max(now, s.from), s.states[s.in-1].Leave.Takes)
	s.in = 0
	return s.from
}
