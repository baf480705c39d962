package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/execute/calibrate"
	"dahl/platform"
	"dahl/train/setclock"
)

// clocksHere is the machine whose clocks are set. Tests have one of files.
var clocksHere = setclock.Here

var errNoFrequency = cli.InputErrorf("--set-clocks: the platform file says no frequency for the clocks in force of processors and GPUs; write clock_frequency into their [[device]], or frequency into a [[device.clock]]")

// holdClocks sets the wanted clocks of this machine until release, or records that they are not set.
// Without either flag it refuses clocks that are not the first of their device.
func (w *workload) holdClocks(f *flags.Execute, wanted []setclock.Setting) (release func(), err error) {
	var set, others []string
	for _, s := range wanted {
		set = append(set, s.Text(w.Platform))
		if s.Clock > 0 {
			others = append(others, s.Name(w.Platform))
		}
	}
	w.opts.AnyClock = f.SetClocks || f.IgnoreClocks
	w.Options.AnyClock = w.opts.AnyClock
	switch {
	case f.SetClocks && wanted == nil:
		return nil, errNoFrequency
	case f.SetClocks:
		w.clocks = &record.MachineClocks{Set: set}
		return setClocks(w.Platform, wanted)
	case others == nil:
		return func() {}, nil
	case f.IgnoreClocks:
		w.clocks = &record.MachineClocks{Ignored: others}
		slog.Warn("clocks are not set: times are of whatever clocks the machine has, and modelled joules of the powers of those that were asked for", "clocks", strings.Join(others, ", "))
		return func() {}, nil
	}
	return nil, cli.InputErrorf("%s: the clock of a processor or a GPU is set only with --set-clocks, which needs root or the right to set it; --ignore-clocks runs at whatever clock it has", strings.Join(others, ", "))
}

// setClocks sets clocks until release.
func setClocks(p *platform.Platform, wanted []setclock.Setting) (release func(), err error) {
	h, err := beginClocks()
	if err != nil {
		return nil, err
	}
	release = func() { restoreClocks(h) }
	if err := h.Set(p, wanted); err != nil {
		release()
		return nil, cli.InputErrorf("--set-clocks: %w; --ignore-clocks runs at whatever clocks the machine has", err)
	}
	return release, nil
}

func beginClocks() (*setclock.Held, error) {
	here, err := clocksHere()
	if err != nil {
		return nil, cli.InputErrorf("--set-clocks: %w", err)
	}
	h, err := here.Begin()
	if err != nil {
		return nil, cli.InputErrorf("--set-clocks: %w", err)
	}
	return h, nil
}

// restoreClocks gives clocks back. A run that could not is complete all the same.
func restoreClocks(h *setclock.Held) {
	if err := h.Restore(); err != nil {
		slog.Warn("the clocks of this machine are not what they were", "error", cli.OneLine(err))
	}
}

// recoverClocks gives back the clocks of a run that was killed, before anything is measured.
func recoverClocks() {
	here, err := clocksHere()
	if err != nil {
		return // no run can have set any
	}
	if err := here.Recover(); err != nil {
		slog.Warn("the clocks of this machine may not be its own", "error", cli.OneLine(err))
	}
}

// measureAtClocks is measure with the devices that are measured set to their own clocks. Then it
// measures the watts of processors at their further ones.
func (f *calibrateFlags) measureAtClocks(ctx context.Context, o *flags.Options) error {
	p := f.sum.Platform
	measured := func(s setclock.Setting) bool { return f.units[p.Devices[s.Device].Name] > 0 }
	own := slices.DeleteFunc(setclock.InForce(p), func(s setclock.Setting) bool { return !measured(s) })
	if own == nil && !slices.ContainsFunc(p.Devices, func(d platform.Device) bool {
		return d.IsProcessor() && f.units[d.Name] > 0 && slices.ContainsFunc(d.Clocks, func(c platform.Clock) bool { return c.FrequencyHz > 0 })
	}) {
		return errNoFrequency
	}
	h, err := beginClocks()
	if err != nil {
		return err
	}
	defer restoreClocks(h)
	set := func(d platform.DeviceID, clock platform.ClockID) error {
		others := slices.DeleteFunc(slices.Clone(own), func(s setclock.Setting) bool { return s.Device == d })
		return cli.AsInput(h.Set(p, append(others, setclock.Setting{Device: d, Clock: clock})))
	}
	if err := h.Set(p, own); err != nil {
		return cli.InputErrorf("--set-clocks: %w", err)
	}
	if err := f.measure(ctx, o); err != nil {
		return err
	}
	return f.add("clocks", o, func(c calibrate.Options) (*calibrate.Result, error) {
		return calibrate.Clocks(ctx, c, set)
	})
}
