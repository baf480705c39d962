package grid

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"dahl/cmd/dahl/flags"
	"dahl/energy/meter"
	"dahl/platform"
)

// IdlePower is the power by a meter while nothing runs.
type IdlePower struct {
	Of         string  `json:"of"`
	Meter      string  `json:"meter"`
	Watts      float64 `json:"watts"`
	ErrorWatts float64 `json:"error_watts"`
	Seconds    float64 `json:"seconds"`
}

// measureIdle reads the meters of the machines of all trainings while nothing runs; none where there
// are no meters.
func (r *gridRun) measureIdle(ctx context.Context) (idle []IdlePower, err error) {
	command, err := commandOf(r.file)
	if err != nil || command.name != "execute" {
		return nil, err
	}
	seen := map[string]bool{}
	for i := range r.cells {
		o, err := command.options(r.cells[i].Args(settingKey))
		if err != nil {
			return nil, err
		}
		p, err := flags.ThisMachine(o)
		if err != nil {
			return nil, err
		}
		if seen[p.Name] {
			continue
		}
		seen[p.Name] = true
		readings, err := idleReadings(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, of := range readings {
			if !slices.ContainsFunc(idle, func(p IdlePower) bool { return p.Of == of.Of && p.Meter == of.Meter }) {
				idle = append(idle, IdlePower{of.Of, of.Meter, of.Joules / of.Seconds, of.ErrorJoules / of.Seconds, of.Seconds})
			}
		}
	}
	return idle, nil
}

// idleReadings reads the meters of a machine for a while; nil means none.
func idleReadings(ctx context.Context, p *platform.Platform) ([]meter.Reading, error) {
	meters := flags.StartMeters(p)
	if meters.Empty() {
		return meters.Stop()
	}
	select {
	case <-time.After(flags.IdleWindow):
	case <-ctx.Done():
	}
	readings, err := meters.Stop()
	return readings, cmp.Or(ctx.Err(), err)
}

// IdleWatts is the power by a meter while nothing ran. NaN means that it was not read then.
func (m *Manifest) IdleWatts(of *meter.Reading) float64 {
	i := slices.IndexFunc(m.Idle, func(p IdlePower) bool { return p.Of == of.Of && p.Meter == of.Meter })
	if i < 0 {
		return math.NaN()
	}
	return m.Idle[i].Watts
}
