package energy

import "time"

// powerMeter integrates a sensor of power over the times of its readings, by the trapezoidal
// rule. A power that changes linearly between two reads is integrated exactly. A jump by ΔP
// within an interval h causes an error of at most h·ΔP/2.
type powerMeter struct {
	name   string
	update time.Duration
	watts  func() (float64, error)
	now    func() time.Duration

	begun     bool
	last      time.Duration
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
	now := m.now()
	if m.begun {
		m.sumJoules += (m.lastWatts + watts) / 2 * (now - m.last).Seconds()
	}
	m.begun, m.last, m.lastWatts = true, now, watts
	return m.sumJoules, nil
}
