package calibrate

import (
	"errors"
	"slices"
	"time"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/kernels"
)

const (
	speedLeastExtent, speedMostExtent = 64, 8192
	// A product that takes this long is large enough to show the speed.
	speedEnough = 5 * time.Millisecond
	memoryTime  = 20 * time.Millisecond
)

// measureMemory is the bandwidth of the memory: the best of several sums of two arrays that
// together fill the arena.
func (s *station) measureMemory() (float64, error) {
	const elemBytes = 4
	call, err := s.elementwise(int(s.arenaBytes / 2 / elemBytes))
	if err != nil {
		return 0, err
	}
	best, err := s.bestOf(call, memoryTime)
	return float64(call.Spec.Bytes()) / max(best, 1).Seconds(), err
}

// bestOf is the shortest time of a call.
func (s *station) bestOf(call *driver.Call, budget time.Duration) (time.Duration, error) {
	l, err := s.Driver.Bind(call)
	if err != nil {
		return 0, err
	}
	t := &track{stream: s.compute[0], issue: func(int) error { return s.Driver.Launch(s.compute[0], l) }}
	if err := s.repeat(s.within(budget, minCopies, maxCopies), t); err != nil {
		return 0, err
	}
	return slices.Min(t.times), nil
}

// measureSpeed is the speed of a square matrix product by type. The extent doubles until the
// product takes long enough or does not fit.
func (s *station) measureSpeed() (map[string]float64, error) {
	speeds := map[string]float64{}
	for _, t := range []dag.DType{dag.Float32, dag.Float64} {
		for n := speedLeastExtent; n <= speedMostExtent; n *= 2 {
			call, flops, err := s.product(t, n)
			if errors.Is(err, errTooLarge) {
				break
			}
			if err != nil {
				return nil, err
			}
			took, err := s.bestOf(call, speedTime)
			if err != nil {
				return nil, err
			}
			if t == dag.Float32 {
				s.speedExtent = n
			}
			speeds[t.String()] = max(speeds[t.String()], flops/max(took, 1).Seconds())
			if took >= speedEnough {
				break
			}
		}
	}
	return speeds, nil
}

// product is a dense layer with n³ multiplications.
func (s *station) product(t dag.DType, n int) (c *driver.Call, flops float64, err error) {
	k, _ := kernels.KernelByName("dense")
	spec := squareProduct(t, n)
	if c, err = s.standardCall(k, spec); err != nil {
		return nil, 0, err
	}
	flops, _ = k.Work(spec)
	return c, flops, nil
}
