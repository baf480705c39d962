package meter

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// scripted is a meter that reads what it is told; it fails after the last value.
type scripted struct{ values []float64 }

func (m *scripted) Name(int) string       { return "scripted" }
func (m *scripted) Counters() []Counter   { return []Counter{{Name: "scripted", TDPWatts: 100}} }
func (m *scripted) Update() time.Duration { return 0 }
func (m *scripted) Close() error          { return nil }
func (m *scripted) Read(uj []uint64) error {
	if len(m.values) == 0 {
		return errors.New("gone")
	}
	uj[0] = uint64(1e6 * m.values[0])
	m.values = m.values[1:]
	return nil
}

// sampled runs a sampler that reads every second for a time.
func sampled(t *testing.T, d time.Duration, values ...float64) (m *scripted, joules float64, over time.Duration, err error) {
	m = &scripted{values}
	synctest.Test(t, func(*testing.T) {
		s := startSampler(time.Second, newWatched("", m))
		time.Sleep(d)
		s.end()
		w := s.meters[0]
		joules, over, err = s.count(w).joules, w.at.Sub(w.tallies[0].begin), w.err
	})
	return m, joules, over, err
}

// Reads at 0, 1 and 2 s, and one more at the end: from 5 J to 12 J.
func TestSampler(t *testing.T) {
	m, joules, over, err := sampled(t, 2500*time.Millisecond, 5, 7, 8, 12)
	if joules != 7 || over != 2500*time.Millisecond || err != nil || len(m.values) != 0 {
		t.Errorf("%g J over %v, %v, %d values left; want 7 J over 2.5 s and none left", joules, over, err, len(m.values))
	}
}

func TestSamplerEndsWhereTheMeterFails(t *testing.T) {
	if _, _, over, err := sampled(t, 2500*time.Millisecond, 5, 7); err == nil || over != time.Second {
		t.Errorf("over %v, %v; want the error and 1 s", over, err)
	}
	if _, _, _, err := sampled(t, 0); err == nil {
		t.Error("a meter that never answered has joules")
	}
}

// Without ticks there are the first read and the last.
func TestStartSampler(t *testing.T) {
	if m, joules, over, err := sampled(t, 10*time.Millisecond, 1, 2); err != nil || joules != 1 || over != 10*time.Millisecond || len(m.values) != 0 {
		t.Errorf("%g J over %v, %v; want 1 J of the first read and the last", joules, over, err)
	}
}
