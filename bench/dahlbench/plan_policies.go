package main

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"dahl/energy"
	"dahl/parallel"
	"dahl/plan/exact"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/schedule"
	"dahl/simulate"
	"dahl/train"
)

// planRun is what a steady step takes on a set of devices with tiles.
type planRun struct {
	choice space.Choice
	policy schedule.PolicyInfo
	span   time.Duration
	joules float64

	movedBytes float64 // between memories
	peakBytes  int64   // the most in one memory
}

// The longer of two runs, half as long as which the other is: of results, and of looks at what may be the least.
const (
	steadyRun = 100
	shortRun  = 12
)

// nearLeast is how far above the least a short run may be so that a long one is made.
const nearLeast = 1.1

// simulate finds what a step takes as the difference of two runs.
func (r *planRun) simulate(ctx context.Context, priced *schedule.Priced, by schedule.Choice, steps int) error {
	d, err := priced.Decide(by)
	if err != nil {
		return err
	}
	half := steps / 2
	r.span, r.joules, r.movedBytes = 0, 0, 0
	for _, n := range []int{half, steps} {
		ran, err := simulate.Run(ctx, d, 0, n, simulate.Options{})
		if err != nil {
			return err
		}
		report, err := energy.FromSchedule(ran, d.Problem(0, n, false))
		if err != nil {
			return err
		}
		moved := 0.0
		for i := range ran.Transfers {
			moved += float64(ran.Transfers[i].Bytes)
		}
		r.span, r.joules, r.movedBytes, r.peakBytes = ran.Makespan-r.span, report.TotalJoules-r.joules, moved-r.movedBytes, slices.Max(ran.PeakBytes)
	}
	r.span, r.joules, r.movedBytes = r.span/time.Duration(half), r.joules/float64(half), r.movedBytes/float64(half)
	return nil
}

// policyRuns simulates short runs of all policies on sets of devices, with all tiles of each. What cannot run, for
// lack of memory, is left out.
func policyRuns(ctx context.Context, s *train.Space, sets []string) ([]planRun, error) {
	var choices []space.Choice
	for _, set := range sets {
		w, err := s.At(space.Choice{Devices: set, Tiles: tiling.Of(tiling.Base{Kind: tiling.Default})})
		if err != nil {
			return nil, err
		}
		tiles, err := w.Tiles() // of this set, whose default may be another
		if err != nil {
			return nil, err
		}
		for _, t := range tiles {
			choices = append(choices, space.Choice{Devices: set, Tiles: t})
		}
	}
	ran := make([][]planRun, len(choices))
	err := parallel.Do(ctx, len(choices), func(i int) error {
		priced, err := s.Price(choices[i])
		if err != nil {
			return nil
		}
		for _, policy := range schedule.Policies() {
			r := planRun{choice: choices[i], policy: policy}
			if (policy.Static != nil || policy.Dynamic != nil) && r.simulate(ctx, priced, schedule.Choice{Policy: policy}, shortRun) == nil {
				ran[i] = append(ran[i], r)
			}
		}
		return nil
	})
	return slices.Concat(ran...), err
}

// leastOf is the run with the least of an objective over many steps.
func leastOf(ctx context.Context, s *train.Space, short []planRun, o exact.Objective) (planRun, error) {
	value := func(r planRun) float64 { return o.Of(r.span, r.joules) }
	compare := func(a, b planRun) int { return cmp.Compare(value(a), value(b)) }
	least := math.Inf(1)
	for _, r := range short {
		least = min(least, value(r))
	}
	near := slices.DeleteFunc(slices.Clone(short), func(r planRun) bool { return value(r) > nearLeast*least })
	runs := make([]bool, len(near))
	err := parallel.Do(ctx, len(near), func(i int) error {
		r := &near[i]
		priced, err := s.Price(r.choice)
		runs[i] = err == nil && r.simulate(ctx, priced, schedule.Choice{Policy: r.policy}, steadyRun) == nil
		return nil
	})
	var long []planRun
	for i := range near {
		if runs[i] {
			long = append(long, near[i])
		}
	}
	if err == nil && len(long) == 0 {
		err = errors.New("no policy can run on any set of devices")
	}
	if err != nil {
		return planRun{}, err
	}
	return slices.MinFunc(long, compare), nil
}
