package main

import (
	"cmp"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"dahl/execute/host"
	"dahl/stats"
	"dahl/train/peer"
)

// contestant is a program that can train or evaluate the network of a cell.
type contestant struct {
	program string // empty means dahl
	label   string
	mode    string
	losses  func(steps int) ([]float64, error)                      // of each step, from the first weights
	run     func(warmup, steps int) (took time.Duration, err error) // of the steps alone

	step time.Duration   // of the last run, by which the next is sized
	took []time.Duration // per step, of each repetition
}

func (c *contestant) String() string { return strings.TrimPrefix(c.program+" ("+c.label+")", " ") }

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

// rate is the median number of samples per second.
func (c *contestant) rate(batch int) float64 { return float64(batch) / stats.Median(c.took).Seconds() }

// watch throws away repetitions that other processes disturbed, as long as spare
// ones are left.
type watch struct {
	load  func() (end func() host.Load) // begins an interval
	idle  int                           // cores that others may keep busy
	spare int
}

func newWatch(load func() func() host.Load, threads, spare int) *watch {
	return &watch{load: load, idle: max(0, runtime.NumCPU()-threads), spare: spare}
}

// repeat runs a contestant for about the given time until it was not disturbed, and
// returns the load of others in the last run.
func (w *watch) repeat(c *contestant, target time.Duration) (others host.Load, err error) {
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

// sameNetwork compares the losses of the first steps. It returns the settings that ran, and reports
// the errors of the others. Losses that differ by more than rounding are an error. So is the case
// that no setting ran.
func sameNetwork(row *peerRow, same func(label string, want, got []float64) (float64, error), ours *contestant, theirs []*contestant, failed func(error)) (ran []*contestant, err error) {
	want, err := ours.losses(peer.LossSteps)
	if err != nil {
		return nil, err
	}
	for _, c := range theirs {
		got, err := c.losses(peer.LossSteps)
		if err != nil {
			failed(err)
			continue
		}
		off, err := same(c.String(), want, got)
		if err != nil {
			return nil, err
		}
		row.LossError = max(row.LossError, off)
		ran = append(ran, c)
	}
	if len(ran) == 0 {
		return nil, errors.New("no setting of another program runs it")
	}
	return ran, nil
}
