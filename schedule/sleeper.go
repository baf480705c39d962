package schedule

import (
	"time"

	"dahl/platform"
)

// Sleeper is a unit or a link that goes to sleep when it idles, for a world without a real one. It needs no events:
// its sleep since its last work is known when the next work comes, or at the end.
type Sleeper struct {
	states []platform.SleepState
	of     Change // without kind, state and times: the unit or the link
	// Changes are those that it made, in order. Whoever drives it may take them.
	Changes []Change

	since time.Duration // the end of its last work
	in    int           // the state it is in or enters: 0 means awake, else its index plus 1
	from  time.Duration // when it is in that state
}

// NewSleeper makes one that is awake and idle. Its changes name a device's unit, -1 for all, or a link where the
// device is -1.
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

// Idle notes the end of its work. It sleeps from then on where a plan gives a state, as an index plus 1.
func (s *Sleeper) Idle(now time.Duration, planned int32) {
	s.since, s.from = now, now
	if planned > 0 {
		s.fall(int(planned)-1, now)
	}
}

// Rest adds the changes by idling until a time.
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
