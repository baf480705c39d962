package energy

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

// scripted is a meter that reads what it is told; it fails after the last value.
type scripted struct {
	values []float64
	read   chan struct{} // one message after each read
}

func (m *scripted) Name() string          { return "scripted" }
func (m *scripted) Update() time.Duration { return 0 }
func (m *scripted) Close() error          { return nil }
func (m *scripted) Joules() (float64, error) {
	defer func() { m.read <- struct{}{} }()
	if len(m.values) == 0 {
		return 0, errors.New("gone")
	}
	v := m.values[0]
	m.values = m.values[1:]
	return v, nil
}

// sampling starts a sampler on ticks that the test gives and a clock that counts reads.
func sampling(values ...float64) (s *Sampler, tick func(), released *bool) {
	m := &scripted{values, make(chan struct{}, 16)}
	ticks := make(chan time.Time)
	released = new(bool)
	n := time.Duration(-1)
	s = startSampler(m, ticks, func() { *released = true }, func() time.Duration { n++; return n })
	<-m.read
	return s, func() { ticks <- time.Time{}; <-m.read }, released
}

func TestSampler(t *testing.T) {
	s, tick, released := sampling(5, 7, 8, 12)
	tick()
	tick()
	samples, err := s.Stop()
	if want := []MeterSample{{0, 5}, {1, 7}, {2, 8}, {3, 12}}; err != nil || !reflect.DeepEqual(samples, want) {
		t.Errorf("got %v, %v; want %v", samples, err, want)
	}
	if !*released {
		t.Error("the ticker was not stopped")
	}
	if again, err := s.Stop(); err != nil || len(again) != 4 {
		t.Errorf("stopped twice: %v, %v", again, err)
	}
	if joules, over, err := Total(samples); joules != 7 || over != 3 || err != nil {
		t.Errorf("the total is %g J over %v, %v; want 7 over 3 ns", joules, over, err)
	}
	if _, _, err := Total(samples[:1]); err == nil {
		t.Error("one sample has a total")
	}
}

func TestSamplerEndsWhereTheMeterFails(t *testing.T) {
	s, tick, _ := sampling(5, 7)
	tick()
	tick() // fails
	samples, err := s.Stop()
	if err == nil || len(samples) != 2 {
		t.Errorf("got %v, %v; want two samples and the error", samples, err)
	}
	s, _, _ = sampling()
	if samples, err := s.Stop(); err == nil || len(samples) != 0 {
		t.Errorf("a meter that never answered: %v, %v", samples, err)
	}
}

func TestStartSampler(t *testing.T) {
	s := StartSampler(&scripted{[]float64{1, 2}, make(chan struct{}, 16)}, time.Hour)
	if samples, err := s.Stop(); err != nil || len(samples) != 2 || samples[1].At < samples[0].At {
		t.Errorf("got %v, %v; want the first sample and the last", samples, err)
	}
}
