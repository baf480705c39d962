package meter

import (
	"fmt"
	"sync"
	"time"
)

// Meter has the counters whose sum is the joules of one consumer.
type Meter interface {
	// Name names a number of its counters.
	Name(counters int) string
	Counters() []Counter
	// Read reads each counter, in microjoules, in the order of Counters.
	Read(uj []uint64) error
	// Update is the greatest age of a reading: the distance of the counters' updates, or the window of
	// a sensor's average.
	Update() time.Duration
	Close() error
}

// sampleInterval is how often a meter is read by default. No counter wraps unseen within it, and
// reading at that rate costs nothing.
const sampleInterval = 100 * time.Millisecond

// GPUSampleInterval is how often the meters of a GPU are read. It is finer than the updates of
// the counter, since the instant power changes faster.
const GPUSampleInterval = 20 * time.Millisecond

// sampler reads meters in the background.
type sampler struct {
	meters []*watched
	twins  twins
	stop   chan struct{}
	done   chan struct{}
	mu     sync.Mutex // of everything that reading changes
}

// watched is a meter with the readings of its counters.
type watched struct {
	Meter
	of      string
	tallies []*tally
	shown   []uint64
	at      time.Time // of the last reading
	err     error     // after which it is read no more
}

func newWatched(of string, m Meter) *watched {
	w := &watched{Meter: m, of: of}
	for _, c := range m.Counters() {
		w.tallies = append(w.tallies, &tally{Counter: c, update: m.Update()})
	}
	w.shown = make([]uint64, len(w.tallies))
	return w
}

// startSampler reads meters now and at every interval until it ends. Nobody else may use the
// meters meanwhile.
func startSampler(every time.Duration, meters ...*watched) *sampler {
	if every <= 0 {
		every = sampleInterval
	}
	s := &sampler{meters: meters, stop: make(chan struct{}), done: make(chan struct{})}
	ticks := time.Tick(every)
	s.read()
	go func() {
		defer close(s.done)
		for {
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

// read reads every meter that has not failed.
func (s *sampler) read() {
	var compared []*tally
	for _, w := range s.meters {
		if w.err != nil {
			continue
		}
		err := w.Read(w.shown)
		at := time.Now()
		s.mu.Lock()
		if err != nil {
			w.err = fmt.Errorf("sample the meter %s: %w", w.Name(len(w.tallies)), err)
		} else {
			w.at = at
			for i, t := range w.tallies {
				t.add(at, w.shown[i])
				compared = append(compared, t)
			}
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.twins.compare(compared)
	s.mu.Unlock()
}

// end reads a last time, and stops reading.
func (s *sampler) end() {
	close(s.stop)
	<-s.done
}
