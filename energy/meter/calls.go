package meter

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Repeat says how long MeasureCalls measures.
type Repeat struct {
	Busy  time.Duration // of calls, at least
	Idle  time.Duration // without calls, before and after together
	Every time.Duration // between samples; zero means 100 ms
}

// CallEnergy is the energy of one call above idle.
type CallEnergy struct {
	Joules float64 `json:"joules"`
	// ErrorJoules bounds the error of the method: the meter's lag at both ends of each window,
	// and half of the difference between idling before and after.
	ErrorJoules float64 `json:"error_joules"`
	Calls       int     `json:"calls"`
	Seconds     float64 `json:"seconds"`    // of all calls
	Watts       float64 `json:"watts"`      // mean while calls ran, idle power included
	IdleWatts   float64 `json:"idle_watts"` // mean without calls
	Meter       string  `json:"meter"`
}

// MeasureCalls finds the joules of one call of a kernel or a step by repeating it, since
// sensors are far slower than calls:
//
//	(W_busy − W_idle)·T / n
//
// Here n calls ran back to back for T ≥ Repeat.Busy. W_busy is the mean power of that time, and W_idle
// the mean of two idle windows around it. So a drift of the device, as while it warms up, falls out to
// first order. Each window begins twice the meter's lag after its state does. So a late reading still
// belongs to that state.
//
// With the lag u of the meter (Meter.Update), the mean power W of a window of length T is off by
// at most W·u/T.
//
// calls runs its work so often that its own overhead does not matter. It returns when the work
// has ended, and says how often it ran. A call that takes longer than Repeat.Busy is measured
// once.
func MeasureCalls(ctx context.Context, m Meter, r Repeat, calls func() (int, error)) (CallEnergy, error) {
	if r.Busy <= 0 || r.Idle <= 0 {
		return CallEnergy{}, errors.New("energy of calls: the times to measure are not positive")
	}
	settle := 2 * m.Update()
	window := func() *sampler { return startSampler(r.Every, newWatched("a device", m)) }
	idle := func() (float64, time.Duration, error) {
		if err := sleep(ctx, settle); err != nil {
			return 0, 0, err
		}
		s := window()
		return s.meanWatts(sleep(ctx, r.Idle/2))
	}
	before, idleTime, err := idle()
	if err != nil {
		return CallEnergy{}, fmt.Errorf("energy of calls: idle: %w", err)
	}
	if _, err := repeatCalls(ctx, settle, calls); err != nil {
		return CallEnergy{}, fmt.Errorf("energy of calls: %w", err)
	}
	s := window()
	n, err := repeatCalls(ctx, r.Busy, calls)
	busy, busyTime, err := s.meanWatts(err)
	if err != nil {
		return CallEnergy{}, fmt.Errorf("energy of calls: %w", err)
	}
	after, _, err := idle()
	if err != nil {
		return CallEnergy{}, fmt.Errorf("energy of calls: idle: %w", err)
	}
	if n == 0 {
		return CallEnergy{}, errors.New("energy of calls: nothing was called")
	}
	idleWatts := (before + after) / 2
	lag := m.Update().Seconds()
	errorWatts := lag*busy/busyTime.Seconds() + lag*idleWatts/idleTime.Seconds() + max(after-before, before-after)/2
	perWatt := busyTime.Seconds() / float64(n)
	return CallEnergy{
		Joules: (busy - idleWatts) * perWatt, ErrorJoules: errorWatts * perWatt,
		Calls: n, Seconds: busyTime.Seconds(), Watts: busy, IdleWatts: idleWatts, Meter: s.name(),
	}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// repeatCalls calls for at least a time and returns the number of calls.
func repeatCalls(ctx context.Context, least time.Duration, calls func() (int, error)) (int, error) {
	n := 0
	for begin := time.Now(); time.Since(begin) < least; {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		k, err := calls()
		if err != nil {
			return n, err
		}
		n += k
	}
	return n, nil
}

// meanWatts is the mean power of a window of one meter that has ended, with or without an error.
func (s *sampler) meanWatts(err error) (watts float64, over time.Duration, _ error) {
	s.end()
	w := s.meters[0]
	c := s.count(w)
	over = w.at.Sub(w.tallies[0].begin)
	switch {
	case err != nil || w.err != nil:
		err = errors.Join(err, w.err)
	case over <= 0:
		err = errors.New("the window of the meter is empty")
	case c.doubt() != nil:
		err = &ImplausibleError{c.doubt()}
	}
	return c.joules / over.Seconds(), over, err
}

// name names the counters of the only meter of a window.
func (s *sampler) name() string { return s.meters[0].Name(s.count(s.meters[0]).counted) }
