package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"dahl/cmd/cli"
	"dahl/energy/meter"
	"dahl/platform"
	"dahl/stats"
	"dahl/train/peer"
)

// energyTrials is how often each contestant's joules are counted, in turn.
const energyTrials = 5

// peerJoules is the energy of a contestant by all meters of the machine together. For a cell on a
// GPU that includes the host where it has a meter.
type peerJoules struct {
	Of             string
	PerSample      float64 // median of the trials
	AboveIdle      float64
	Spread         float64 // of PerSample, largest minus smallest, as a fraction of it
	ErrorPerSample float64
}

// peerEnergy has the energy of the contestants of a row, dahl first.
type peerEnergy struct {
	Contestants []peerJoules
	Meters      []string
}

// measureEnergy counts the joules of contestants in turn, each in windows of about the
// given time, after one in which nothing runs; nil where the machine has no meter.
func measureEnergy(p *platform.Platform, batch int, target time.Duration, contestants []*contestant) (*peerEnergy, error) {
	start := peer.StartMeters(p)
	meters, _, err := peer.Window(start, func() error { time.Sleep(target); return nil })
	if err != nil || len(meters) == 0 {
		return nil, err
	}
	idle := peer.Sum(meters)
	idleWatts := idle.Joules / idle.Seconds
	n := len(contestants)
	perSample, above, unsure := make([][]float64, n), make([][]float64, n), make([][]float64, n)
	for range energyTrials {
		for i, c := range contestants {
			steps := int(max(1, target/c.step))
			readings, states, err := peer.Window(start, func() error { _, err := c.run(0, steps); return err })
			if err = cmp.Or(err, meter.Doubt(states)); err != nil {
				return nil, fmt.Errorf("joules of %s: %w", c, err)
			}
			w, samples := peer.Sum(readings), float64(steps*batch)
			perSample[i] = append(perSample[i], w.Joules/samples)
			above[i] = append(above[i], (w.Joules-float64(idleWatts*w.Seconds))/samples)
			unsure[i] = append(unsure[i], w.ErrorJoules/samples)
		}
	}
	e := &peerEnergy{}
	for _, m := range meters {
		e.Meters = append(e.Meters, m.Of+" by "+m.Meter)
	}
	for i, c := range contestants {
		e.Contestants = append(e.Contestants, peerJoules{Of: c.String(), PerSample: stats.Median(perSample[i]), Spread: spread(perSample[i]),
			AboveIdle: stats.Median(above[i]), ErrorPerSample: stats.Median(unsure[i])})
	}
	return e, nil
}

// printEnergy writes the table of joules, if any row has them.
func printEnergy(out io.Writer, rows []peerRow) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r peerRow) bool { return r.Energy == nil })
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(out, "\n## Joules per sample, training\n\nMedians of %d windows of each in turn, read from %v.\n\n", energyTrials, rows[0].Energy.Meters)
	fmt.Fprintln(out, "| network | batch | on | of | joules | above idle | spread | meter's error | over dahl's |")
	fmt.Fprintln(out, "| --- | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |")
	for _, r := range rows {
		for _, j := range r.Energy.Contestants {
			fmt.Fprintf(out, "| %s | %d | %v | %s | %.3g | %.3g | %.0f %% | %.0f %% | %.2f |\n", r.Model, r.Batch, r.peerUnit, j.Of,
				j.PerSample, j.AboveIdle, 100*j.Spread, 100*cli.Ratio(j.ErrorPerSample, j.PerSample), cli.Ratio(j.PerSample, r.Energy.Contestants[0].PerSample))
		}
	}
}
