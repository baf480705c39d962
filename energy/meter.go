package energy

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Meter counts joules.
type Meter interface {
	// Name says which consumer is metered and how.
	Name() string
	// Joules is the energy counted since the meter was opened. It never falls.
	Joules() (float64, error)
	// Update is the greatest age of the result of Joules: the distance of a counter's updates, or
	// the window of a sensor's average.
	Update() time.Duration
	Close() error
}

// SampleInterval is how often a Sampler reads by default: often enough that no
// counter wraps unseen, and seldom enough that reading costs nothing.
const SampleInterval = 100 * time.Millisecond

// GPUSampleInterval is how often the meters of a GPU are read. It is finer than the updates of
// the counter, since the instant power changes faster.
const GPUSampleInterval = 20 * time.Millisecond

// MeterSample is the joules counted up to a time since sampling began.
type MeterSample struct {
	At     time.Duration
	Joules float64
}

// Sampler reads a meter in the background.
type Sampler struct {
	meter Meter
	now   func() time.Duration
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once

	samples []MeterSample // written by the goroutine until done is closed
	err     error
}

// StartSampler reads a meter now and at every interval until Stop. Nobody else may use the meter
// meanwhile.
func StartSampler(m Meter, every time.Duration) *Sampler {
	if every <= 0 {
		every = SampleInterval
	}
	ticker := time.NewTicker(every)
	start := time.Now()
	return startSampler(m, ticker.C, ticker.Stop, func() time.Duration { return time.Since(start) })
}

func startSampler(m Meter, ticks <-chan time.Time, release func(), now func() time.Duration) *Sampler {
	s := &Sampler{meter: m, now: now, stop: make(chan struct{}), done: make(chan struct{})}
	s.read()
	go func() {
		defer close(s.done)
		defer release()
		for s.err == nil {
			select {
			case <-s.stop:
				s.read()
				return
			case <-ticks:
				s.read()
			}
		}
	}()
	return s
}

func (s *Sampler) read() {
	joules, err := s.meter.Joules()
	if err != nil {
		s.err = fmt.Errorf("sample the meter %s: %w", s.meter.Name(), err)
		return
	}
	s.samples = append(s.samples, MeterSample{s.now(), joules})
}

// Stop takes a last sample and returns all of them. With an error, the samples end where the
// meter failed. Stop may be called again.
func (s *Sampler) Stop() ([]MeterSample, error) {
	s.once.Do(func() { close(s.stop) })
	<-s.done
	return s.samples, s.err
}

// Total returns the joules between the first sample and the last, and the time between them.
func Total(samples []MeterSample) (joules float64, over time.Duration, err error) {
	if len(samples) < 2 {
		return 0, 0, errors.New("energy: fewer than two samples of the meter")
	}
	first, last := samples[0], samples[len(samples)-1]
	return last.Joules - first.Joules, last.At - first.At, nil
}
