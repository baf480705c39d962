package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"dahl/cmd/cli"
	"dahl/train/peer"
)

// programs returns the programs that the options name.
func (p *peersOptions) programs() (named []peer.Program, err error) {
	return chosen("programs", p.named, peer.Programs())
}

// settingsFor returns the settings of a program with the names in the options, and all without names.
func (p *peersOptions) settingsFor(program peer.Program, device string, threads int) []peer.Setting {
	return slices.DeleteFunc(program.Settings(device, threads), func(s peer.Setting) bool {
		return len(p.settings) > 0 && !slices.Contains(p.settings, s.Name)
	})
}

// checkSettings refuses names that no program has on the device, and the lack of any.
func (p *peersOptions) checkSettings(programs []peer.Program) error {
	var all []peer.Setting
	for _, program := range programs {
		all = append(all, program.Settings(p.device, slices.Max(p.threads))...)
	}
	if _, err := chosen("settings", p.settings, all); err != nil {
		return fmt.Errorf("%w with --device %s", err, p.device)
	}
	return nil
}

// start starts a process for every setting of a program on a unit. One that is not installed is left out.
func (b *peerBench) start(ctx context.Context, program peer.Program, u peerUnit) (workers []*peer.Worker, err error) {
	for _, s := range b.opts.settingsFor(program, u.Device, u.Threads) {
		w, said, err := peer.Start(ctx, b.dir, b.opts.python, program, s, u.Device, u.Threads)
		if err != nil {
			return workers, err
		}
		if !s.Differs(said) {
			w.Close()
			continue
		}
		workers = append(workers, w)
		b.report.note(program, s, said)
	}
	return workers, nil
}

// startAll starts the processes of all programs. It is an error if no program is installed.
func (b *peerBench) startAll(ctx context.Context, u peerUnit) (workers []*peer.Worker, err error) {
	missing := map[string]*peer.MissingError{}
	for _, program := range b.programs {
		some, err := b.start(ctx, program, u)
		workers = append(workers, some...)
		if is := (*peer.MissingError)(nil); errors.As(err, &is) {
			missing[program.Name] = is
		} else if err != nil {
			return workers, err
		}
	}
	for _, program := range b.programs {
		if is := missing[program.Name]; is != nil && len(workers) == 0 {
			return nil, cli.AsInput(is)
		} else if is != nil {
			_ = b.leaveOut(program.Name, is) // the other programs go on
		}
	}
	return workers, nil
}

// contestants opens the network in a worker, in every memory format that can matter, and
// returns one contestant for each of these and each mode.
func contestants(w *peer.Worker, twin *peer.Twin, formats []string) (all []*contestant, err error) {
	for i, format := range formats {
		if err := w.Open(twin, format, i == 0); err != nil {
			return nil, err
		}
		for _, mode := range w.Program.Modes(twin.Device) {
			all = append(all, contestantOf(w, mode, format))
		}
	}
	return all, nil
}

func contestantOf(w *peer.Worker, mode, format string) *contestant {
	label := peer.Label(w.Setting, format)
	if mode == peer.ModeFrozen {
		label += ", " + mode
	}
	return &contestant{
		program: w.Program.Name, label: label, mode: mode,
		losses: func(steps int) ([]float64, error) { return w.Losses(mode, format, steps) },
		run: func(warmup, steps int) (time.Duration, error) {
			return w.Time(mode, format, warmup, steps)
		},
	}
}
