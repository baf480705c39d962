package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"dahl/execute"
	"dahl/naming"
	"dahl/plan"
	"dahl/platform"
)

// Leg is the part of a training that runs on one set of devices: all of it, unless one of
// them fails.
type Leg struct {
	Workload  *Workload
	Predicted *plan.Totals // nil means not yet
	Measured  *plan.Totals
	After     int // losses before it

	done []plan.Piece // so far
}

// DeviceLoss is a device that failed in the middle of a training. The training went on without it.
type DeviceLoss struct {
	Device    string `json:"device"`
	Epoch     int    `json:"epoch"`      // from 1
	AfterStep int    `json:"after_step"` // of the training, from 1: the last one whose weights were kept
	// Graph, Task and State say where the device was, as execute.TaskError does; empty where it
	// failed while the memories were filled or emptied around a run.
	Graph string `json:"graph,omitempty"`
	Task  string `json:"task,omitempty"`
	State string `json:"state,omitempty"`
	Cause string `json:"cause"`

	Devices string `json:"devices"`       // that the training went on with, as platform.Select takes it
	Run     string `json:"run,omitempty"` // where that leg is kept; empty: nowhere, or no training step was done on it
}

// goOnWithout plans the training anew without a failed device, and opens the runner of the
// others in the kept state. Where it cannot, the weights are the kept ones.
func (t *Trainer) goOnWithout(ctx context.Context, device string, epoch int, cause error) error {
	t.Close()
	t.kept.restore(t.Runner)
	for w := t.Workload; ; {
		rest, err := w.without(device)
		if err != nil {
			return fmt.Errorf("%w; it cannot go on without %s: %v", cause, device, err)
		}
		w = rest
		loss := DeviceLoss{Device: device, Epoch: epoch, AfterStep: t.feed.stepsDone, Cause: naming.OneLine(cause), Devices: w.Options.Devices}
		if at := (*execute.TaskError)(nil); errors.As(cause, &at) {
			loss.Graph, loss.Task, loss.State, loss.Cause = at.Graph, at.Task, at.State, naming.OneLine(at.Err)
		}
		ended := t.Leg
		err = t.open(w)
		another, failed := execute.FailedDevice(err)
		if err != nil && !failed {
			return fmt.Errorf("%w; it cannot go on with %s: %v", cause, w.Options.Devices, err)
		}
		t.Losses = append(t.Losses, loss)
		if t.OnLoss != nil {
			t.OnLoss(loss)
		}
		if err != nil {
			device, cause = another, err
			continue
		}
		t.kept.restore(t.Runner)
		t.past = append(t.past, ended)
		t.After = len(t.Losses)
		return nil
	}
}

// without is the workload of the same graphs, planned anew on the devices but one.
func (w *Workload) without(device string) (*Workload, error) {
	var rest []*platform.Device
	able := false
	for i := range w.Platform.Devices {
		if d := &w.Platform.Devices[i]; d.Name != device {
			rest = append(rest, d)
			able = able || !d.PlacedOnly
		}
	}
	if !able {
		return nil, errors.New("no device is left that runs layers")
	}
	next := *w
	next.Options.Devices, next.Options.Plan = platform.List(rest), nil
	var err error
	if next.Platform, err = w.Platform.Select(next.Options.Devices); err != nil {
		return nil, err
	}
	return &next, next.Choose()
}

// endLegs makes the first leg that has completed a step of the main graph the training's,
// with the totals of all. The program of a later leg is the steps that were done on it. A
// training that ended early is likewise predicted anew, for its measured steps.
func (t *Trainer) endLegs() {
	if len(t.Losses) == 0 {
		if (!t.Complete || t.resumed) && t.Measured.Main != nil {
			t.Workload, t.Predicted = t.Workload.only(t.done), nil
		}
		return
	}
	legs := append(t.past, t.Leg)
	first := max(0, slices.IndexFunc(legs, func(l Leg) bool { return l.Measured.Main != nil }))
	t.Leg = legs[first]
	if t.resumed && t.Measured.Main != nil {
		t.Workload, t.Predicted = t.Workload.only(t.done), nil
	}
	for i, l := range legs {
		if i != first {
			t.Measured.Include(l.Measured)
		}
		if i > first && l.Measured.Main != nil {
			l.Workload = l.Workload.only(l.done)
			t.Later = append(t.Later, l)
		}
	}
}

// PredictLegs predicts the legs after losses of devices, and the first leg where its
// prediction does not fit the steps that ran.
func (t *Trainer) PredictLegs(ctx context.Context) (err error) {
	if t.Predicted == nil {
		if t.Predicted, err = t.Workload.Predict(ctx); err != nil {
			return err
		}
	}
	for i := range t.Later {
		if t.Later[i].Predicted, err = t.Later[i].Workload.Predict(ctx); err != nil {
			return err
		}
	}
	return nil
}
