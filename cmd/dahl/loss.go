package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/execute"
	"dahl/plan"
)

// leg is the part of a training that runs on one set of devices: all of it, unless one of
// them fails.
type leg struct {
	w         *workload
	predicted *outcome // nil: not yet
	measured  *outcome
	done      []plan.Piece // so far
	losses    int          // before it
}

// deviceLoss is a device that failed in the middle of a training that went on without it.
type deviceLoss struct {
	Device    string `json:"device"`
	Epoch     int    `json:"epoch"`      // from 1
	AfterStep int    `json:"after_step"` // of the training, from 1: the last one whose weights were kept
	// Graph, Task and State say where the device was, as execute.TaskError does; empty where it
	// failed while the memories were filled or emptied around a run.
	Graph string `json:"graph,omitempty"`
	Task  string `json:"task,omitempty"`
	State string `json:"state,omitempty"`
	Cause string `json:"cause"`

	Devices string `json:"devices"`       // that the training went on with, as --devices takes it
	Run     string `json:"run,omitempty"` // directory of that leg; empty: no training step was done on it
}

// survival is what a training needs to go on when a device fails, beside its state after the
// last completed steps.
type survival struct {
	losses []deviceLoss
	past   []leg // ended by the losses
	after  []leg // once the training has ended: the legs after the first
}

// goOnWithout plans the training anew without a device that failed, and opens the runner
// of the others in the state that was kept. Where it cannot, the weights are those of that
// state.
func (t *trainer) goOnWithout(ctx context.Context, device string, epoch int, cause error) error {
	s := t.survival
	t.close()
	t.kept.restore()
	for w := t.w; ; {
		rest, err := w.without(device)
		if err != nil {
			return fmt.Errorf("%w; it cannot go on without %s: %v", cause, device, err)
		}
		w = rest
		loss := t.describe(device, epoch, cause)
		loss.Devices = w.opts.Devices
		ended := t.leg
		if err := t.open(w); err != nil {
			another, failed := execute.FailedDevice(err)
			if !failed || ctx.Err() != nil {
				return fmt.Errorf("%w; it cannot go on with %s: %v", cause, w.opts.Devices, err)
			}
			s.lose(loss)
			device, cause = another, err
			continue
		}
		s.lose(loss)
		t.kept.find(t.runner)
		t.kept.restore()
		s.past = append(s.past, ended)
		t.losses = len(s.losses)
		return nil
	}
}

// describe says what happened to a device and when.
func (t *trainer) describe(device string, epoch int, cause error) deviceLoss {
	loss := deviceLoss{Device: device, Epoch: epoch, AfterStep: t.feeder.stepsDone, Cause: oneLine(cause)}
	var at *execute.TaskError
	if errors.As(cause, &at) {
		loss.Graph, loss.Task, loss.State, loss.Cause = at.Graph, at.Task, at.State, oneLine(at.Err)
	}
	return loss
}

// lose records a loss and warns of it.
func (s *survival) lose(l deviceLoss) {
	s.losses = append(s.losses, l)
	slog.Warn("a device failed; the training is planned anew without it and goes on from the last weights kept",
		"device", l.Device, "task", l.Task, "state", l.State, "cause", l.Cause, "epoch", l.Epoch, "after_step", l.AfterStep, "devices", l.Devices)
}

// without is the workload of the same graphs, planned anew on the devices but one.
func (w *workload) without(device string) (*workload, error) {
	var rest []string
	able := false
	for i := range w.platform.Devices {
		if d := &w.platform.Devices[i]; d.Name != device {
			rest = append(rest, d.Item(w.opts.Devices))
			able = able || !d.PlacedOnly
		}
	}
	if !able {
		return nil, errors.New("no device is left that runs layers")
	}
	o := *w.opts
	o.Devices, o.Workers, o.Plan = strings.Join(rest, ","), 0, ""
	next := *w
	next.opts = &o
	var err error
	if next.platform, err = w.platform.Select(o.Devices); err != nil {
		return nil, err
	}
	return &next, next.decide()
}

// endLegs makes the first leg that has completed a step of the main graph the training's,
// with the totals of all. For those after it, what was done on them is their program, and so
// for a training that ended early: it is predicted anew, for the steps that it measured.
func (t *trainer) endLegs() {
	s := t.survival
	if s == nil || len(s.losses) == 0 {
		if !t.complete && t.measured.Main != nil {
			t.w, t.predicted = t.w.only(t.done), nil
		}
		return
	}
	legs := append(s.past, t.leg)
	first := max(0, slices.IndexFunc(legs, func(l leg) bool { return l.measured.Main != nil }))
	t.leg = legs[first]
	for i, l := range legs {
		if i != first {
			t.measured.Include(l.measured.Totals)
		}
		if i > first && l.measured.Main != nil {
			l.w = l.w.only(l.done)
			s.after = append(s.after, l)
		}
	}
}

// only is the workload with some pieces as its program.
func (w *workload) only(done []plan.Piece) *workload {
	part := *w
	part.program = &dag.Program{Name: w.program.Name, Graphs: w.program.Graphs}
	for _, p := range done {
		part.program.Order = append(part.program.Order, p.Segment)
	}
	part.ran = done
	return &part
}

// predictLegs predicts those of the legs that a loss began.
func (t *trainer) predictLegs(ctx context.Context) (err error) {
	if t.predicted == nil {
		if t.predicted, err = t.w.predict(ctx); err != nil {
			return err
		}
	}
	for i := range t.afterLosses() {
		l := &t.survival.after[i]
		if l.predicted, err = l.w.predict(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lostDevices are the losses of the training so far.
func (t *trainer) lostDevices() []deviceLoss {
	if t.survival == nil {
		return nil
	}
	return t.survival.losses
}

// afterLosses are the legs after the first, once the training has ended.
func (t *trainer) afterLosses() []leg {
	if t.survival == nil {
		return nil
	}
	return t.survival.after
}

// afterLossCommand is the command in the manifest of a leg that a loss began. It cannot be
// repeated by itself.
const afterLossCommand = "execute after a loss"

// writeLegs writes a run directory for each leg after the first into that of the training.
func (a *app) writeLegs(dir *runDir, t *trainer) error {
	for _, l := range t.afterLosses() {
		name := fmt.Sprintf("after-loss-%d", l.losses)
		sub, err := createRunDir(filepath.Join(dir.path, name))
		if err != nil {
			return err
		}
		m := a.newManifest(afterLossCommand, l.w)
		m.Complete = t.complete
		s := l.w.summarize(l.measured)
		b := thisBuild()
		s.Provenance = &b
		if err := sub.writeOutcome(l.w, l.measured, s); err != nil {
			return err
		}
		if err := sub.writePredicted(&l, s); err != nil {
			return err
		}
		if err := sub.writeManifest(m); err != nil {
			return err
		}
		for _, file := range append(sub.files, manifestName) {
			dir.noteFile(filepath.Join(name, file))
		}
		dir.noteFile(name)
		t.survival.losses[l.losses-1].Run = name
	}
	return nil
}

// printLosses says what failed, and where to look for what came after.
func (t *trainer) printLosses(out io.Writer, dir *runDir) {
	for _, l := range t.lostDevices() {
		fmt.Fprintf(out, "lost      %s in epoch %d; went on after step %d with %s", l.Device, l.Epoch, l.AfterStep, l.Devices)
		if l.Run != "" {
			fmt.Fprintf(out, ": %s", filepath.Join(dir.path, l.Run))
		}
		fmt.Fprintln(out)
	}
}
