package peer

import (
	"errors"

	"dahl/energy/meter"
	"dahl/platform"
	"dahl/train"
)

// Meters count joules from their start on. [train.Meters] are the meters of this machine.
type Meters interface {
	Empty() bool // there are none
	Stop() ([]meter.Reading, error)
	MeterStates() []meter.MeterState // after Stop
}

// StartMeters starts the meters of this machine.
func StartMeters(p *platform.Platform) func() Meters {
	return func() Meters { return train.StartMeters(p) }
}

// Window reads meters while something runs, and says what became of each.
func Window(start func() Meters, run func() error) ([]meter.Reading, []meter.MeterState, error) {
	meters := start()
	err := run()
	readings, stopErr := meters.Stop()
	return readings, meters.MeterStates(), errors.Join(err, stopErr)
}

// Sum adds up several meters over the same time.
func Sum(readings []meter.Reading) (sum meter.Reading) {
	for _, r := range readings {
		sum.Joules += r.Joules
		sum.ErrorJoules += r.ErrorJoules
		sum.Seconds = max(sum.Seconds, r.Seconds)
	}
	return sum
}

// Energy is the count of all meters of a machine while a program trained.
type Energy struct {
	Readings []meter.Reading    `json:"readings"`
	Meters   []meter.MeterState `json:"meters,omitempty"` // what became of each
	// Idle are the readings of a window in which nothing ran. Nil means that there was none.
	Idle []meter.Reading `json:"idle,omitempty"`
	// Unavailable says why some meters have no reading, or that there are none. Empty means that all have.
	Unavailable string `json:"unavailable,omitempty"`
}

// Joules are the sum of all meters, and ErrorJoules how far it may be off at the two ends of the window.
func (e *Energy) Joules() (joules, errorJoules float64) {
	sum := Sum(e.Readings)
	return sum.Joules, sum.ErrorJoules
}

// AboveIdle is the joules without those that the machine would have drawn all the same; ok is false
// where it was not metered while idle.
func (e *Energy) AboveIdle() (joules float64, ok bool) {
	sum, idle := Sum(e.Readings), Sum(e.Idle)
	if len(e.Readings) == 0 || idle.Seconds <= 0 {
		return 0, false
	}
	return sum.Joules - float64(idle.Joules/idle.Seconds*sum.Seconds), true
}

// whyUnavailable says why no meter was read, of which these are the states.
func whyUnavailable(states []meter.MeterState) string {
	if err := meter.Doubt(states); err != nil {
		return err.Error()
	}
	meter, err := meter.OpenRAPL(meter.PowercapRoot)
	if err != nil {
		return err.Error()
	}
	if err := meter.Close(); err != nil {
		return err.Error()
	}
	return "no meter was read"
}
