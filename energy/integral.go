package energy

import "time"

// powerMeter integrates a sensor of power over the times of its readings, by the trapezoidal
// rule. A power that changes linearly between two reads is integrated exactly. A jump by ΔP
// within an interval h causes an error of at most h·ΔP/2.
type powerMeter struct {
	name   string
	update time.Duration
	watts  func() (float64, error)

	last      time.Time // of the readings; zero: none yet
	lastWatts float64
	sumJoules float64
}

func (m *powerMeter) Name() string          { return m.name }
func (m *powerMeter) Update() time.Duration { return m.update }
func (m *powerMeter) Close() error          { return nil }

// Joules reads the sensor and returns the integral from the first read on.
func (m *powerMeter) Joules() (float64, error) {
	watts, err := m.watts()
	if err != nil {
		return 0, err
	}
	now := time.Now()
	if !m.last.IsZero() {
		m.sumJoules += (m.lastWatts + watts) / 2 * now.Sub(m.last).Seconds()
	}
	m.last, m.lastWatts = now, watts
	return m.sumJoules, nil
}
