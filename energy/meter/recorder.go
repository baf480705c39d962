package meter

import (
	"cmp"
	"errors"
	"math"
	"time"
)

// Metered is a consumer with one or two meters for its joules, or why it has none.
type Metered struct {
	Of     string // the consumer: a device of the platform, or what the meter covers
	Meter  Meter  // nil means none, with the reason in Err
	Second Meter  // another method for the same joules; nil means none
	Every  time.Duration
	Err    error
	Unused bool // no device of the platform has it, so that nothing lacks its joules

	Celsius func() (float64, error) // the present temperature; nil without a sensor
}

// Reading is the joules of one consumer over a run.
type Reading struct {
	Of      string  `json:"of"`
	Meter   string  `json:"meter"`
	Joules  float64 `json:"joules"`
	Seconds float64 `json:"seconds"`
	// ErrorJoules bounds the error at the two ends of the run: the mean power, the greater one of
	// two methods, times the lag of the meter. It does not contain the sensor's own accuracy.
	ErrorJoules float64 `json:"error_joules"`
	// Second is the result of another method at the same time; nil without one.
	Second *SecondReading `json:"second,omitempty"`
}

// SecondReading is the joules of the same consumer and run by another method.
type SecondReading struct {
	Meter       string  `json:"meter"`
	Joules      float64 `json:"joules"`
	ErrorJoules float64 `json:"error_joules"`
	// DisagreementPercent is how far the first method lies above the second.
	DisagreementPercent float64 `json:"disagreement_percent"`
}

// Recorder samples the meters of several consumers during a run.
type Recorder struct {
	metered []Metered
	sampler *sampler
	methods [][]*watched // of each consumer: one or two, or none
}

// Record begins to sample. Nobody else may use the meters until Stop.
func Record(metered []Metered) *Recorder {
	r := &Recorder{metered: metered}
	var all []*watched
	every := time.Duration(math.MaxInt64)
	for _, m := range metered {
		var methods []*watched
		for _, meter := range []Meter{m.Meter, m.Second} {
			if meter != nil {
				methods = append(methods, newWatched(m.Of, meter))
			}
		}
		if methods != nil {
			every = min(every, cmp.Or(m.Every, sampleInterval))
		}
		r.methods, all = append(r.methods, methods), append(all, methods...)
	}
	r.sampler = startSampler(every, all...)
	return r
}

// Empty reports whether there is no meter.
func (r *Recorder) Empty() bool { return len(r.sampler.meters) == 0 }

// Counted is the last reading of a consumer's meter.
type Counted struct {
	Of      string
	At      time.Time
	Joules  float64
	Celsius float64 // now; zero means unknown
}

// Now returns the last readings. It may be called until Stop.
func (r *Recorder) Now() []Counted {
	var all []Counted
	for i, m := range r.metered {
		if m.Meter == nil {
			continue
		}
		w := r.methods[i][0]
		r.sampler.mu.Lock()
		c := Counted{Of: m.Of, At: w.at, Joules: r.sampler.count(w).joules}
		r.sampler.mu.Unlock()
		if m.Celsius != nil {
			if celsius, err := m.Celsius(); err == nil {
				c.Celsius = celsius
			}
		}
		all = append(all, c)
	}
	return all
}

// Stop returns the joules of each consumer since Record, if its meter has counted everything. If a
// method has not, the other one takes its place. If none has, the reading is missing, and MeterStates
// has the reasons. The error joins the errors of the methods.
func (r *Recorder) Stop() ([]Reading, error) {
	r.sampler.end()
	var readings []Reading
	var failed []error
	for _, methods := range r.methods {
		var whole []*Reading
		for _, w := range methods {
			failed = append(failed, w.err)
			if c := r.sampler.count(w); c.doubt() == nil {
				whole = append(whole, c.reading(w))
			}
		}
		if len(whole) == 0 {
			continue
		}
		first := *whole[0]
		if len(whole) == 2 {
			second := whole[1]
			// A counter gives no joules for a run between two of its updates.
			if second.Seconds > 0 {
				first.ErrorJoules = max(first.ErrorJoules, second.Joules/second.Seconds*methods[0].Update().Seconds())
			}
			first.Second = &SecondReading{second.Meter, second.Joules, second.ErrorJoules, percentAbove(&first, second)}
		}
		readings = append(readings, first)
	}
	return readings, errors.Join(failed...)
}

// MeterStates lists the verdict on every counter up to Stop.
func (r *Recorder) MeterStates() (states []MeterState) {
	for i, m := range r.metered {
		if m.Meter == nil {
			states = append(states, cannotOpen(&m))
		}
		for _, w := range r.methods[i] {
			states = append(states, r.sampler.count(w).states...)
		}
	}
	return states
}

// lookInterval is how often Look reads, and lookValues how many values it waits for.
const (
	lookInterval = 5 * time.Millisecond
	lookValues   = 8
)

// Look reads meters until every counter has shown several values, and for little more than a second at
// most. It returns the verdicts.
func Look(metered []Metered) []MeterState {
	for i := range metered {
		metered[i].Every = lookInterval
	}
	r := Record(metered)
	for deadline := time.Now().Add(stuckAfter); !r.sampler.moving(lookValues) && time.Now().Before(deadline); {
		time.Sleep(lookInterval)
	}
	// The states have the errors of meters, too.
	_, _ = r.Stop()
	return r.MeterStates()
}

// count is the sum of a meter's counters.
type count struct {
	states  []MeterState // of its counters
	joules  float64
	counted int // counters that are not merged
}

// count adds up the counters of a meter so far.
func (s *sampler) count(w *watched) *count {
	c := new(count)
	for _, t := range w.tallies {
		m := t.state(w.of, s.twins.twinOf(t, s.meters))
		if w.err != nil {
			m.Status, m.Why, m.UnknownS, m.Unknown = Failed, oneLine(w.err), 0, nil
		}
		c.joules += m.Joules
		if m.Status != Merged {
			c.counted++
		}
		c.states = append(c.states, m)
	}
	return c
}

// doubt is the reason for which the joules are incomplete. Nil means that they are complete.
func (c *count) doubt() error {
	if c.counted == 0 {
		return errors.New(c.states[0].String())
	}
	return Doubt(c.states)
}

// reading is the result of a meter.
func (c *count) reading(w *watched) *Reading {
	r := &Reading{Of: w.of, Meter: w.Name(c.counted), Joules: c.joules, Seconds: w.at.Sub(w.tallies[0].begin).Seconds()}
	if r.Seconds > 0 {
		r.ErrorJoules = r.Joules / r.Seconds * w.Update().Seconds()
	}
	return r
}

// moving reports whether all readable counters have shown a number of values.
func (s *sampler) moving(values int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.meters {
		for _, t := range w.tallies {
			if w.err == nil && t.values < values {
				return false
			}
		}
	}
	return true
}

// percentAbove compares mean powers, since two meters are not read at the same instant.
func percentAbove(a, b *Reading) float64 {
	if b.Joules <= 0 || a.Seconds <= 0 {
		return 0
	}
	return 100 * (a.Joules/a.Seconds/(b.Joules/b.Seconds) - 1)
}
