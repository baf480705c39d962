package main

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"dahl/energy"
	"dahl/platform"
	"dahl/train"
)

// idleWindow is how long the machine is left alone, where it has meters. Tests have a shorter one.
var idleWindow = 3 * time.Second

// startMeters starts the meters of a training on this machine. Tests have others.
var startMeters = train.StartMeters

// idlePower is what a meter counts while nothing runs.
type idlePower struct {
	Of         string  `json:"of"`
	Meter      string  `json:"meter"`
	Watts      float64 `json:"watts"`
	ErrorWatts float64 `json:"error_watts"`
	Seconds    float64 `json:"seconds"`
}

// measureIdle reads the meters of the machines of all trainings while nothing runs; none where there
// are no meters.
func (r *gridRun) measureIdle(ctx context.Context, window time.Duration) (idle []idlePower, err error) {
	command, err := commandOf(r.file)
	if err != nil || command.name != "execute" {
		return nil, err
	}
	seen := map[string]bool{}
	for i := range r.cells {
		o, err := command.cellOptions(r.cells[i].Args(settingKey))
		if err != nil {
			return nil, err
		}
		p, err := thisMachine(o)
		if err != nil {
			return nil, err
		}
		if seen[p.Name] {
			continue
		}
		seen[p.Name] = true
		readings, err := idleReadings(ctx, p, window)
		if err != nil {
			return nil, err
		}
		for _, of := range readings {
			if !slices.ContainsFunc(idle, func(p idlePower) bool { return p.Of == of.Of && p.Meter == of.Meter }) {
				idle = append(idle, idlePower{of.Of, of.Meter, of.Joules / of.Seconds, of.ErrorJoules / of.Seconds, of.Seconds})
			}
		}
	}
	return idle, nil
}

// idleReadings reads the meters of a machine for a while; nil: it has none.
func idleReadings(ctx context.Context, p *platform.Platform, window time.Duration) ([]energy.Reading, error) {
	meters := startMeters(p)
	if meters.Empty() {
		return meters.Stop()
	}
	select {
	case <-time.After(window):
	case <-ctx.Done():
	}
	readings, err := meters.Stop()
	return readings, cmp.Or(ctx.Err(), err)
}

// idleWatts is what a meter counted per second while nothing ran; NaN: it was not read then.
func (m *experimentManifest) idleWatts(of *energy.Reading) float64 {
	i := slices.IndexFunc(m.Idle, func(p idlePower) bool { return p.Of == of.Of && p.Meter == of.Meter })
	if i < 0 {
		return math.NaN()
	}
	return m.Idle[i].Watts
}
