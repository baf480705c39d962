package meter

import (
	"math"
	"time"
)

// powerMeter integrates a sensor of power over the times of its readings, by the trapezoidal
// rule. A power that changes linearly between two reads is integrated exactly. A jump by ΔP
// within an interval h causes an error of at most h·ΔP/2.
type powerMeter struct {
	name    string
	update  time.Duration
	watts   func() (float64, error)
	tdp     float64
	tdpFrom string

	last      time.Time // last reading; zero means none yet
	lastWatts float64
	sumJoules float64
}

func (m *powerMeter) Name(int) string       { return m.name }
func (m *powerMeter) Update() time.Duration { return m.update }
func (m *powerMeter) Close() error          { return nil }

func (m *powerMeter) Counters() []Counter {
	return []Counter{{Name: m.name, TDPWatts: m.tdp, TDPFrom: m.tdpFrom, Integral: true}}
}

// Read reads the sensor and gives the integral from the first read on.
func (m *powerMeter) Read(uj []uint64) error {
	watts, err := m.watts()
	if err != nil {
		return err
	}
	now := time.Now()
	if !m.last.IsZero() {
		m.sumJoules += (m.lastWatts + watts) / 2 * now.Sub(m.last).Seconds()
	}
	m.last, m.lastWatts = now, watts
	uj[0] = uint64(math.Round(1e6 * m.sumJoules))
	return nil
}
