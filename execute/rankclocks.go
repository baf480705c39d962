package execute

import (
	"slices"
	"time"

	"dahl/schedule"
)

// clockRounds is how many round trips find the difference of two clocks.
const clockRounds = 32

// moment is a time on rank 0's clock.
func (n *Ranks) moment(at time.Duration) time.Time { return n.origin.Add(at - n.ahead) }

// alignClocks finds, at rank 0, how far the clocks of the others are behind its own, and tells them. The answer to a
// question was given between its sending and its coming, so that half a round trip bounds the error. The shortest of several round
// trips counts.
func (n *Ranks) alignClocks() error {
	if n.Rank > 0 {
		return nil
	}
	n.ClockError = 0
	return n.do(func() error {
		for p := range n.others {
			var behind, off time.Duration
			for round := range clockRounds {
				asked := time.Since(n.origin)
				n.pong = entry{}
				p.send(entry{Kind: entryPing, At: int64(asked)})
				if err := n.flush(p, n.turned); err != nil {
					return err
				}
				if err := n.until(func() (bool, error) { return n.pong.Kind == entryPong, nil }); err != nil {
					return err
				}
				heard := time.Since(n.origin)
				if half := (heard - asked) / 2; round == 0 || half < off {
					behind, off = asked+half-time.Duration(n.pong.At), half
				}
			}
			p.send(entry{Kind: entryClock, Value: int64(behind), At: int64(off)})
			n.ClockError = max(n.ClockError, off)
		}
		return nil
	})
}

// settle moves tasks that seem to start before the end of a predecessor. The clocks of ranks agree only to some error. A
// moved task takes as long as before. note sets when each task was ready.
func settle(s *schedule.Schedule, workers int, note func()) {
	for moved := true; moved; {
		moved = false
		note()
		ended := make([]time.Duration, workers)
		for i := range s.Spans {
			sp := &s.Spans[i]
			from := sp.Ready
			if w := int(sp.Worker); w < workers {
				from = max(from, ended[w])
			}
			if sp.Start < from {
				sp.Start, sp.End, moved = from, from+sp.End-sp.Start, true
			}
			if w := int(sp.Worker); w < workers {
				ended[w] = sp.End
			}
		}
	}
	slices.SortStableFunc(s.Spans, func(a, b schedule.Span) int { return a.Compare(&b) })
}
