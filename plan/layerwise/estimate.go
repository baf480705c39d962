package layerwise

import (
	"fmt"
	"math"
	"time"

	"dahl/dag"
	"dahl/plan/problem"
)

// Estimate is the time and the joules of a step.
type Estimate struct {
	Seconds, Joules float64
}

// Value is the value of an objective. Steps that end after the deadline are worse than all others, the later the worse.
func (e *Estimate) Value(aim problem.Aim) float64 {
	v := aim.Of(time.Duration(e.Seconds*1e9), e.Joules)
	if late := e.Seconds - aim.Deadline.Seconds(); aim.Deadline > 0 && late > 0 {
		v += math.MaxFloat32 * late
	}
	return v
}

// steadySteps is how many steps run to find a steady one, and manyTiles the tiles of a step from which on there are half as many.
const (
	steadySteps = 4
	manyTiles   = 1500
)

// Of estimates a step of a lowering on a set of devices.
func (m *Model) Of(devices string, l *dag.Lowering, steady bool) (Estimate, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	s, err := m.setOf(devices)
	if err != nil {
		return Estimate{}, err
	}
	layers := make([]dag.LayerLowering, len(m.layers))
	for i, name := range m.layers {
		layers[i] = l.Of(name)
	}
	e, _, err := m.estimate(s, layers, steady)
	return e, err
}

// estimate also returns the number of tiles that it has simulated.
func (m *Model) estimate(s *set, layers []dag.LayerLowering, steady bool) (Estimate, int, error) {
	p, err := m.newStep(s, layers)
	if err != nil {
		return Estimate{}, 0, err
	}
	steps := 1
	if steady {
		if steps = steadySteps; p.tiles >= manyTiles {
			steps /= 2
		}
	}
	r, tiles := m.start(p, steps), p.tiles*steps
	if r == nil || !r.simulate() {
		return Estimate{}, tiles, fmt.Errorf("layer-wise model: some operation has no device")
	}
	ns := r.ends[steps-1]
	if steady {
		ns = (r.ends[steps-1] - r.ends[steps/2-1]) / float64(steps-steps/2)
	}
	joules := r.joules
	for d := range r.used {
		joules += r.used[d] + s.watts[d].first*r.span[d]*1e-9
	}
	return Estimate{Seconds: ns * 1e-9, Joules: s.idle*ns*1e-9 + joules/float64(steps)}, tiles, nil
}

// Search looks for the best lowering on a set of devices, with an effort in simulated tiles.
func (m *Model) Search(devices string, aim problem.Aim, effort int) (layers map[string]dag.LayerLowering, value float64, err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	set, err := m.setOf(devices)
	if err != nil {
		return nil, 0, err
	}
	s := &search{Model: m, set: set, aim: aim, left: effort}
	found := s.best()
	layers = map[string]dag.LayerLowering{}
	for i := range m.knobs {
		if at := m.knobs[i].layer; found.layers != nil {
			layers[m.layers[at]] = found.layers[at]
		}
	}
	return layers, found.value, nil
}
