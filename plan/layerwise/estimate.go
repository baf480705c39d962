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
	steadySteps = 3
	manyTiles   = 1500
)

// Of estimates a step of a lowering on a set of devices.
func (m *Model) Of(devices string, l *dag.Lowering, steady bool) (Estimate, error) {
	s, err := m.setOf(devices)
	if err != nil {
		return Estimate{}, err
	}
	w := m.take()
	defer m.give(w)
	e, _, err := w.estimate(s, m.ofLayers(l), steady)
	return e, err
}

// Value is the value of a step of a lowering on a set of devices, for comparisons of lowerings. Of a network with many cuts it is the value of
// the flow of its work.
func (m *Model) Value(devices string, l *dag.Lowering, aim problem.Aim) (float64, error) {
	set, err := m.setOf(devices)
	if err != nil {
		return 0, err
	}
	w := m.take()
	defer m.give(w)
	layers, s := m.ofLayers(l), &search{worker: w, set: set, aim: aim}
	if len(m.knobs) > fewKnobs {
		return s.flowOf(s.flowsUnder(layers), uniform{}), nil
	}
	e, _, err := w.estimate(set, layers, aim.Steady)
	if err != nil {
		return 0, err
	}
	v := e.Value(aim)
	for _, s.set = range set.atClocks(aim) {
		v = min(v, s.of(layers))
	}
	return v, nil
}

// atClocks is a set at other clocks. A step takes the least time at the clock in force.
func (s *set) atClocks(aim problem.Aim) []*set {
	if aim.Objective == problem.Time {
		return nil
	}
	return s.clocks
}

// ofLayers lists how layers are lowered.
func (m *Model) ofLayers(l *dag.Lowering) (layers []dag.LayerLowering) {
	for _, name := range m.layers {
		layers = append(layers, l.Of(name))
	}
	return layers
}

// estimate also returns the number of tiles that it has simulated. Policies find each of the ways to choose devices, of which the best counts.
func (w *worker) estimate(s *set, layers []dag.LayerLowering, steady bool) (Estimate, int, error) {
	p, err := w.newStep(s, layers)
	if err != nil {
		return Estimate{}, 0, err
	}
	steps := 1
	if steady {
		if steps = steadySteps; p.tiles >= manyTiles {
			steps = 2
		}
	}
	tiles := p.tiles * steps
	e, ok := w.simulated(p, steps, steady, free)
	if !ok {
		return e, tiles, fmt.Errorf("layer-wise model: some operation has no device")
	}
	each := tiles
	if s.others > 1 {
		tiles += each
		if by, ok := w.simulated(p, steps, steady, byParts); ok && by.Seconds < e.Seconds {
			e = by
		}
	}
	if s.processors > 0 && s.others > 0 {
		tiles += each
		if by, ok := w.simulated(p, steps, steady, apart); ok && by.Seconds < e.Seconds {
			e = by
		}
	}
	return e, tiles, nil
}

// simulated runs some steps. It reports whether all operations have a device.
func (w *worker) simulated(p *step, steps int, steady bool, way how) (e Estimate, ok bool) {
	r := w.start(p, steps, way)
	if r == nil || !r.simulate() {
		return e, false
	}
	ns := r.ends[steps-1]
	if steady {
		ns = (r.ends[steps-1] - r.ends[steps/2-1]) / float64(steps-steps/2)
	}
	joules := r.joules
	for d := range r.used {
		joules += r.used[d] + p.set.watts[d].first*r.span[d]*1e-9
	}
	return Estimate{Seconds: ns * 1e-9, Joules: p.set.idle*ns*1e-9 + joules/float64(steps)}, true
}
