package energy

import (
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

// sampleInterval is how often a meter is read by default: often enough that no
// counter wraps unseen, and seldom enough that reading costs nothing.
const sampleInterval = 100 * time.Millisecond

// GPUSampleInterval is how often the meters of a GPU are read. It is finer than the updates of
// the counter, since the instant power changes faster.
const GPUSampleInterval = 20 * time.Millisecond

// sampler reads a meter in the background.
type sampler struct {
	meter Meter
	stop  chan struct{}
	done  chan struct{}

	first meterRead // of the goroutine until done is closed
	err   error     // likewise
	mu    sync.Mutex
	last  meterRead // what others may read under mu
}

// meterRead is the joules counted up to a time.
type meterRead struct {
	at     time.Time
	joules float64
}

// startSampler reads a meter now and at every interval until it ends. Nobody else may use the
// meter meanwhile.
func startSampler(m Meter, every time.Duration) *sampler {
	if every <= 0 {
		every = sampleInterval
	}
	s := &sampler{meter: m, stop: make(chan struct{}), done: make(chan struct{})}
	ticks := time.Tick(every)
	s.read()
	s.first = s.last
	go func() {
		defer close(s.done)
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

func (s *sampler) read() {
	joules, err := s.meter.Joules()
	if err != nil {
		s.err = fmt.Errorf("sample the meter %s: %w", s.meter.Name(), err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = meterRead{time.Now(), joules}
}

// end reads a last time. It returns the joules since the start, and the time.
func (s *sampler) end() (joules float64, over time.Duration, err error) {
	close(s.stop)
	<-s.done
	return s.last.joules - s.first.joules, s.last.at.Sub(s.first.at), s.err
}
