package main

import (
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/platform"
	"dahl/train/setclock"
)

// clocksHere is the machine whose clocks are set. Tests have one of files.
var clocksHere = setclock.Here

// clockFlags say what becomes of clocks at which processors and GPUs are to run. They are no
// options, so that no manifest makes dahl set a clock.
type clockFlags struct{ set, ignore bool }

func (f *clockFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.set, "set-clocks", false, "set the clocks of processors and GPUs to the frequencies that the platform file says, and give them back at the end (needs root)")
	cmd.Flags().BoolVar(&f.ignore, "ignore-clocks", false, "run at whatever clocks processors and GPUs have where others are asked for, and record that")
	exclude(cmd, "set-clocks", "ignore-clocks")
}

// machineClocks is what became of the clocks of processors and GPUs that a run wanted.
type machineClocks struct {
	Set     []string `json:"set,omitempty"`     // "cpu=slow at 1.2 GHz"
	Ignored []string `json:"ignored,omitempty"` // "cpu=slow": it ran at whatever clock the machine had
}

func (c *machineClocks) String() string {
	switch {
	case c == nil:
		return ""
	case c.Set != nil:
		return " (set: " + strings.Join(c.Set, ", ") + ")"
	default:
		return " (not set: " + strings.Join(c.Ignored, ", ") + ")"
	}
}

// hold sets the clocks that a run wants of this machine until release, or records that they are
// not set. Without either flag it refuses clocks that are not the first of their device.
func (f *clockFlags) hold(w *workload, wanted []setclock.Setting) (release func(), err error) {
	var set, others []string
	for _, s := range wanted {
		set = append(set, s.Text(w.Platform))
		if s.Clock > 0 {
			others = append(others, s.Name(w.Platform))
		}
	}
	w.opts.anyClock = f.set || f.ignore
	w.Options.AnyClock = w.opts.anyClock
	switch {
	case f.set && wanted == nil:
		return nil, cli.InputErrorf("--set-clocks: the platform file says no frequency of a processor or a GPU; write clock_frequency there, or frequency in a [[device.clock]] and --clock")
	case f.set:
		w.clocks = &machineClocks{Set: set}
		return setClocks(w.Platform, wanted)
	case others == nil:
		return func() {}, nil
	case f.ignore:
		w.clocks = &machineClocks{Ignored: others}
		slog.Warn("clocks are not set: times are of whatever clocks the machine has, and modelled joules of the powers of those that were asked for", "clocks", strings.Join(others, ", "))
		return func() {}, nil
	}
	return nil, cli.InputErrorf("%s: the clock of a processor or a GPU is set only with --set-clocks, which needs root or the right to set it; --ignore-clocks runs at whatever clock it has", strings.Join(others, ", "))
}

// setClocks sets clocks until release.
func setClocks(p *platform.Platform, wanted []setclock.Setting) (release func(), err error) {
	h, err := holdClocks()
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

func holdClocks() (*setclock.Held, error) {
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
