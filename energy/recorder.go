package energy

import (
	"errors"
	"time"
)

// Metered is a consumer with one or two meters for its joules.
type Metered struct {
	Of     string // the consumer: a device of the platform, or what the meter covers
	Meter  Meter
	Second Meter // another method for the same joules; nil: none
	Every  time.Duration

	Celsius func() (float64, error) // the present temperature; nil: there is no sensor
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

// Recorder samples the meters of several consumers beside a run.
type Recorder struct {
	metered  []Metered
	samplers []*sampler // two for each consumer; the second may be nil
}

// Record begins to sample. Nobody else may use the meters until Stop.
func Record(metered []Metered) *Recorder {
	r := &Recorder{metered: metered}
	for _, m := range metered {
		var second *sampler
		if m.Second != nil {
			second = startSampler(m.Second, m.Every)
		}
		r.samplers = append(r.samplers, startSampler(m.Meter, m.Every), second)
	}
	return r
}

// Counted is what a consumer's meter had counted when it was last read.
type Counted struct {
	Of      string
	At      time.Time
	Joules  float64
	Celsius float64 // now; 0: unknown
}

// Now is what the meters have counted so far. It may be called until Stop.
func (r *Recorder) Now() []Counted {
	var all []Counted
	for i, m := range r.metered {
		s := r.samplers[2*i]
		s.mu.Lock()
		c := Counted{Of: m.Of, At: s.last.at, Joules: s.last.joules - s.first.joules}
		s.mu.Unlock()
		if m.Celsius != nil {
			if celsius, err := m.Celsius(); err == nil {
				c.Celsius = celsius
			}
		}
		all = append(all, c)
	}
	return all
}

// Stop returns the joules of each consumer since Record. If a consumer's meter failed, the error
// says so and its reading is missing. If only the second method failed, the reading comes without
// it.
func (r *Recorder) Stop() ([]Reading, error) {
	var readings []Reading
	var failed []error
	for i, m := range r.metered {
		second, err := r.samplers[2*i+1].reading(m.Of)
		failed = append(failed, err)
		first, err := r.samplers[2*i].reading(m.Of)
		if failed = append(failed, err); first == nil {
			continue
		}
		if second != nil {
			// A counter gives no joules for a run between two of its updates.
			if second.Seconds > 0 {
				first.ErrorJoules = max(first.ErrorJoules, second.Joules/second.Seconds*m.Meter.Update().Seconds())
			}
			first.Second = &SecondReading{second.Meter, second.Joules, second.ErrorJoules, percentAbove(first, second)}
		}
		readings = append(readings, *first)
	}
	return readings, errors.Join(failed...)
}

// reading ends a sampler, which may be nil. It returns its result; nil with an error.
func (s *sampler) reading(of string) (*Reading, error) {
	if s == nil {
		return nil, nil
	}
	joules, over, err := s.end()
	if err != nil {
		return nil, err
	}
	r := &Reading{Of: of, Meter: s.meter.Name(), Joules: joules, Seconds: over.Seconds()}
	if over > 0 {
		r.ErrorJoules = joules / over.Seconds() * s.meter.Update().Seconds()
	}
	return r, nil
}

// percentAbove compares mean powers, since two samplers do not stop at the same instant.
func percentAbove(a, b *Reading) float64 {
	if b.Joules <= 0 || a.Seconds <= 0 {
		return 0
	}
	return 100 * (a.Joules/a.Seconds/(b.Joules/b.Seconds) - 1)
}
