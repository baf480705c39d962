package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path/filepath"
	"runtime/debug"
	"time"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/plan"
	"dahl/rundir"
	"dahl/train"
	"dahl/train/metrics"
)

// trainer is a training as the command line shows it.
type trainer struct {
	*train.Trainer
	w        *workload // of the leg that runs; after run of the first one
	load     *record.LoadSummary
	gpus     []train.DeviceState // as they were when the run began
	measured []plan.RankMeasured // of several ranks
	devices  *plan.SetComparison // nil means that there is only one kind of devices

	resumedAfter int // step; 0 means that it began
}

// newTrainer compiles the program and fills parameters and data. Progress gets a line per
// epoch; nil means none. An interrupted training goes on; nil means that it begins.
func newTrainer(w *workload, progress io.Writer, from *interrupted) (*trainer, error) {
	var err error
	t := &trainer{w: w}
	done := 0 // epochs, before it goes on
	if from == nil {
		if w.Options.Init, err = flags.NewInitialiser(w.opts, w.Model, w.Options.Type); err != nil {
			return nil, err
		}
		t.Trainer, err = w.Start()
		w.Options.Init = nil
	} else {
		t.Trainer, err = from.resume(w)
		done, t.resumedAfter = from.progress.Epoch, from.progress.Steps
	}
	if err != nil {
		return nil, err
	}
	if w.opts.Init != "" || from != nil {
		debug.FreeOSMemory() // what was read is where it belongs, and its copy takes this place
	}
	if progress != nil {
		t.OnEpoch = func(m metrics.Epoch, spent time.Duration) { w.printEpoch(progress, m, m.Epoch-done, spent) }
	}
	t.OnLoss = func(l train.DeviceLoss) {
		slog.Warn("a device failed; the training is planned anew without it and goes on from the last weights kept",
			"device", l.Device, "task", l.Task, "state", l.State, "cause", l.Cause, "epoch", l.Epoch, "after_step", l.AfterStep, "devices", l.Devices)
	}
	t.OnDivergence = func(d *train.Divergence) {
		slog.Warn(d.What()+"; --continue-on-nan goes on", "epoch", d.Epoch, "step", d.Step)
	}
	return t, nil
}

// run trains. With an error, what was done so far stays in t.
func (t *trainer) run(ctx context.Context) error {
	err := t.Run(ctx)
	t.w = t.w.ofLeg(t.Workload)
	t.load = record.NewLoadSummary(t.Load, len(t.w.Platform.Workers))
	if diverged := (*train.Divergence)(nil); errors.As(err, &diverged) {
		err = fmt.Errorf("%w; try a smaller --lr, or go on with --continue-on-nan", err)
	}
	return err
}

// ofLeg is the workload as a leg ofLeg its training has it.
func (w *workload) ofLeg(l *train.Workload) *workload {
	next, o := *w, *w.opts
	if next.Workload = *l; l.Options.Devices != w.Options.Devices {
		next.chosenDevices = nil
		o.Devices, o.Workers, o.Plan = l.Options.Devices, 0, ""
		if o.Policy == flags.BestPolicy {
			o.Policy = flags.ListPolicy // by which it went on
		}
	}
	next.opts = &o
	return &next
}

// printEpoch prints what an epoch came to, and how long the others will take, where some were
// done in the time spent.
func (w *workload) printEpoch(out io.Writer, m metrics.Epoch, done int, spent time.Duration) {
	epochs := w.opts.Epochs
	left := time.Duration(float64(spent) / float64(done) * float64(epochs-m.Epoch))
	fmt.Fprintf(out, "epoch %*d/%d  loss %.4f", len(fmt.Sprint(epochs)), m.Epoch, epochs, m.Loss)
	fmt.Fprint(out, w.perplexityText(m.Loss))
	if !math.IsNaN(m.Accuracy) { // another program does not count correct images
		fmt.Fprintf(out, "  accuracy %5.2f %%", 100*m.Accuracy)
	}
	if m.Tested {
		fmt.Fprintf(out, "  test %5.2f %%%s", 100*m.TestAccuracy, w.perplexityText(m.TestLoss))
	}
	if m.Steps > 0 {
		fmt.Fprintf(out, "  %8.0f samples/s", m.SamplesPerSec())
	}
	if m.Modelled && m.Samples > 0 {
		fmt.Fprintf(out, "  %s per sample (modelled)", cli.ShortJoules(m.Joules/float64(m.Samples)))
	}
	fmt.Fprintf(out, "  left %s\n", left.Round(100*time.Millisecond))
}

// perplexityText is the perplexity behind a loss, of a network of tokens.
func (w *workload) perplexityText(loss float64) string {
	if p, known := w.Model.Perplexity(loss); known {
		return fmt.Sprintf("  perplexity %.4g", p)
	}
	return ""
}

// afterLossCommand is the command in the manifest of a leg that a loss began. It cannot be
// repeated by itself.
const afterLossCommand = "execute after a loss"

// writeLegs writes a run directory for each leg after the first into the directory of the training.
func writeLegs(ctx context.Context, dir *rundir.Dir, t *trainer) error {
	for i := range t.Later {
		l := &t.Later[i]
		name := fmt.Sprintf("after-loss-%d", l.After)
		sub := dir.Inside(name)
		w := t.w.ofLeg(l.Workload)
		m := w.newManifest(afterLossCommand)
		m.Complete = t.Complete
		s := w.summarize(l.Measured)
		s.Provenance = &m.Build
		if err := w.writeLeg(ctx, sub, l, s); err != nil {
			return err
		}
		if _, err := sub.Commit(m); err != nil {
			return err
		}
		t.Losses[l.After-1].Run = name
	}
	return nil
}

// printLosses prints the lost devices, and the directories of the legs after each loss.
func (t *trainer) printLosses(out io.Writer, dir *rundir.Dir) {
	for _, l := range t.Losses {
		fmt.Fprintf(out, "lost      %s in epoch %d; went on after step %d with %s", l.Device, l.Epoch, l.AfterStep, l.Devices)
		if l.Run != "" {
			fmt.Fprintf(out, ": %s", filepath.Join(dir.Path(), l.Run))
		}
		fmt.Fprintln(out)
	}
}
