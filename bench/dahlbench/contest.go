package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"dahl/execute"
	"dahl/kernels"
)

// The modes of a contestant; inference has two in PyTorch.
const (
	modeTrain  = "train"
	modeInfer  = "infer"  // dahl's evaluation graph
	modeEager  = "eager"  // PyTorch in inference_mode
	modeFrozen = "frozen" // PyTorch's frozen and optimised TorchScript
)

// The kinds of PyTorch's settings.
const (
	kindEager    = "eager"
	kindCompiled = "compiled"
)

// contestant is a program that can train or evaluate the network of a cell.
type contestant struct {
	label  string
	mode   string
	kind   string                                                  // of PyTorch: eager or compiled
	losses func(steps int) ([]float64, error)                      // of each step, from the first weights
	run    func(warmup, steps int) (took time.Duration, err error) // of the steps alone

	step time.Duration   // of the last run, by which the next is sized
	took []time.Duration // per step, of each repetition
}

// repeat runs for about the given time, after a warm-up of an eighth of it.
func (c *contestant) repeat(target time.Duration) error {
	if c.step == 0 {
		if err := c.measure(3, 5); err != nil {
			return err
		}
	}
	steps := int(max(3, target/c.step))
	return c.measure(max(1, steps/8), steps)
}

func (c *contestant) measure(warmup, steps int) error {
	took, err := c.run(warmup, steps)
	if err != nil {
		return err
	}
	c.step = max(1, took/time.Duration(steps))
	return nil
}

// rate is the median number of images per second.
func (c *contestant) rate(batch int) float64 { return float64(batch) / median(c.took).Seconds() }

// watch throws away repetitions that other processes disturbed, as long as spare
// ones are left.
type watch struct {
	load  func() (end func() execute.Load) // begins an interval
	idle  int                              // cores that others may keep busy
	spare int
}

func newWatch(load func() func() execute.Load, threads, spare int) *watch {
	return &watch{load: load, idle: max(0, runtime.NumCPU()-threads), spare: spare}
}

// repeat runs a contestant for about the given time until it was not disturbed, and
// returns the load of others in the last run.
func (w *watch) repeat(c *contestant, target time.Duration) (others execute.Load, err error) {
	for ; ; w.spare-- {
		end := w.load()
		if err := c.repeat(target); err != nil {
			return others, err
		}
		if others = end(); !others.Disturbed(w.idle) || w.spare <= 0 {
			return others, nil
		}
	}
}

// search runs all contestants for a short time, twice, and orders them by the
// better of the two, the fastest first.
func (w *watch) search(contestants []*contestant, target time.Duration) error {
	if _, err := w.alternate(contestants, 2, target); err != nil {
		return err
	}
	for _, c := range contestants {
		c.step, c.took = slices.Min(c.took), nil
	}
	slices.SortStableFunc(contestants, func(x, y *contestant) int { return cmp.Compare(x.step, y.step) })
	return nil
}

// alternate repeats the contestants in turn and returns how many cores others kept
// busy on average.
func (w *watch) alternate(contestants []*contestant, repeats int, target time.Duration) (cores float64, err error) {
	for range repeats {
		for _, c := range contestants {
			load, err := w.repeat(c, target)
			if err != nil {
				return 0, err
			}
			cores += load.Cores() / float64(repeats*len(contestants))
			c.took = append(c.took, c.step)
		}
	}
	return cores, nil
}

// lossSteps is how many losses are compared.
const lossSteps = 6

// lossBounds is how far the losses of the first steps may differ, as a fraction, by the
// precision of products: by rounding alone, which training magnifies from step to step.
// TF32 has 13 bits less than float32.
var lossBounds = map[string]float64{precisionFloat32: 1e-3, kernels.TF32Precision: 3e-2}

// sameNetwork compares the losses of the first steps. It returns the settings that ran, and
// tells what kept others from it; losses that differ by more than rounding explains are an
// error, and so is no setting that ran.
func sameNetwork(row *peerRow, ours *contestant, theirs []*contestant, failed func(error)) (ran []*contestant, err error) {
	want, err := ours.losses(lossSteps)
	if err != nil {
		return nil, err
	}
	for _, c := range theirs {
		got, err := c.losses(lossSteps)
		if err != nil {
			failed(err)
			continue
		}
		off, err := lossError(c.label, want, got, lossBounds[row.Precision])
		if err != nil {
			return nil, err
		}
		row.LossError = max(row.LossError, off)
		ran = append(ran, c)
	}
	if len(ran) == 0 {
		return nil, errors.New("no setting of PyTorch runs it")
	}
	return ran, nil
}

// lossError is the largest difference between dahl's losses and those of a setting, as a
// fraction; an error where it is more than rounding explains.
func lossError(label string, want, got []float64, bound float64) (worst float64, err error) {
	for i := range want {
		off := math.Abs(got[i]-want[i]) / math.Max(math.Abs(want[i]), 1e-3)
		if !(off <= bound) {
			return 0, fmt.Errorf("step %d: loss %.8g, PyTorch (%s) %.8g: not the same network", i+1, want[i], label, got[i])
		}
		worst = max(worst, off)
	}
	return worst, nil
}
