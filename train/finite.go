package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"dahl/nn"
	"dahl/plan"
)

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// lossNotFinite ends the run of a piece at a loss of NaN or infinity.
type lossNotFinite struct {
	step int // of the piece, from 0
	loss float64
}

func (e *lossNotFinite) Error() string { return fmt.Sprintf("the loss is %v", e.loss) }

// Divergence is the first loss of NaN or infinity in a training, or, if all losses were finite, the first step
// that made such weights. The task, its operation, layer and phase are empty where they were not looked for or
// not found.
type Divergence struct {
	Epoch int    `json:"epoch"`          // from 1
	Step  int    `json:"step"`           // of the training, from 1; of a test set: the last one before it
	Test  bool   `json:"test,omitempty"` // the loss belongs to the test set
	Loss  string `json:"loss,omitempty"` // NaN, +Inf or -Inf; empty: all were finite

	// The first task, in the order of the program, that wrote NaN or infinity, and its
	// training step, 0 in a test set.
	FoundInStep int    `json:"found_in_step,omitempty"`
	Task        string `json:"task,omitempty"`
	Op          string `json:"op,omitempty"`
	Layer       string `json:"layer,omitempty"`
	Phase       string `json:"phase,omitempty"`

	// Weights are the parameters that were not finite: without a loss after the step, else before it.
	Weights []string `json:"weights_not_finite,omitempty"`
	// KeptStep is the training step that made the weights of the run.
	KeptStep int `json:"weights_of_step"`

	devices bool // devices write what was not looked through
}

func (d *Divergence) Error() string {
	var b strings.Builder
	b.WriteString(d.What())
	switch {
	case d.Task != "":
		where := "the test set"
		if d.FoundInStep > 0 {
			where = fmt.Sprintf("step %d", d.FoundInStep)
		}
		fmt.Fprintf(&b, "; the first values that are not finite come from layer %s in %s: task %s (%s, %s)", d.Layer, where, d.Task, d.Op, d.Phase)
	case len(d.Weights) > 0 && d.Loss != "":
		fmt.Fprintf(&b, "; before it these weights were not finite: %s", strings.Join(d.Weights, ", "))
	case d.devices:
		b.WriteString("; the weights before it are finite, and what devices write in a step is not looked through for the layer")
	}
	kept := "the weights kept are those it began with"
	if d.KeptStep > 0 {
		kept = fmt.Sprintf("the weights kept are those after step %d", d.KeptStep)
	}
	return b.String() + "; " + kept
}

// What names the first numbers of NaN or infinity.
func (d *Divergence) What() string {
	switch {
	case d.Loss == "":
		return fmt.Sprintf("after step %d these weights are not finite: %s", d.Step, strings.Join(d.Weights, ", "))
	case d.Test:
		return fmt.Sprintf("the test loss after step %d is %s", d.Step, d.Loss)
	}
	return fmt.Sprintf("the loss of step %d is %s", d.Step, d.Loss)
}

// note remembers the first loss of NaN or infinity while the training goes on.
func (t *Trainer) note(epoch, step int, test bool, loss float64) {
	if t.Diverged == nil && notFinite(loss) {
		t.goOn(&Divergence{Epoch: epoch, Step: step, Test: test, Loss: fmt.Sprint(loss), KeptStep: step})
	}
}

// noteWeights remembers weights of NaN or infinity at the end of a training whose losses were all finite. Such a
// training goes on at these numbers.
func (t *Trainer) noteWeights() {
	if names := t.weightsNotFinite(); t.Diverged == nil && names != nil {
		t.goOn(&Divergence{Epoch: t.at.Epoch, Step: t.feed.stepsDone, Weights: names, KeptStep: t.feed.stepsDone})
	}
}

func (t *Trainer) goOn(d *Divergence) {
	if t.Diverged = d; t.OnDivergence != nil {
		t.OnDivergence(d)
	}
}

// stopAt ends a training in a piece, at a loss of NaN or infinity, or at such weights after some step of the piece.
// The piece is run again from the state before it, up to the last step that leaves finite weights: equal steps give
// equal bits. So all files describe whole steps.
func (t *Trainer) stopAt(ctx context.Context, epoch int, p plan.Piece, count *tally, source []int32, at *lossNotFinite) error {
	g := t.Workload.Program.Graphs[p.Graph]
	before, bad := t.feed.stepsDone, p.Steps
	d := &Divergence{Epoch: epoch, Test: !nn.IsTraining(g), devices: t.Workload.Platform.Spread()}
	if at != nil {
		d.Step, d.Loss, bad = before+at.step+1, fmt.Sprint(at.loss), at.step+1
	}
	t.Diverged = d
	if at != nil && t.Workload.Options.Ranks != nil { // the run that failed has ended all ranks
		t.kept.restore(t.Runner)
		d.KeptStep = before
		return d
	}
	if d.Test {
		d.Step, d.Weights = before, t.weightsNotFinite()
	} else if err := t.repeatFinite(ctx, p, count, source, bad); err != nil {
		return fmt.Errorf("%w; and repeating the steps before it: %w", d, err)
	}
	d.KeptStep = t.feed.stepsDone
	if at == nil {
		d.Step = d.KeptStep + 1
	}
	t.kept.keep(t.Runner)
	defer t.kept.restore(t.Runner)
	if !d.devices && (d.Loss == "" || d.Weights == nil) {
		if err := t.begin(ctx, p.Graph, 1, source[count.Samples:]); err != nil {
			return fmt.Errorf("%w; and looking for the layer: %w", d, err)
		}
		task, found, err := t.Runner.FindNotFinite(ctx, p.Graph)
		if err != nil {
			return fmt.Errorf("%w; and looking for the layer: %w", d, err)
		}
		if found {
			of := &g.Tasks[task]
			d.Task, d.Op, d.Layer, d.Phase = of.Name, of.Op, of.Labels.Layer, of.Labels.Phase
		}
		if found && !d.Test {
			d.FoundInStep = t.feed.stepsDone + 1
		}
	}
	if t.Measured.Main != nil {
		return d
	}
	// The first step of all: the files describe this step, so that there is something to read.
	p.Steps = 1
	s, err := t.runSteps(ctx, ctx, p, count, source, false)
	if err != nil {
		return fmt.Errorf("%w; and repeating it: %w", d, err)
	}
	return errors.Join(t.account(epoch, p, s, count), d)
}

// repeatFinite runs the steps of a piece again, from the state before it, up to the last one before a bad one, from
// 1, that leaves finite weights. Mostly that is one of the two steps before it, so that these are tried first.
// Else it is looked for by halves, since weights of NaN or infinity stay so. The divergence lists such weights:
// before a loss of this kind, else after the step behind the last good one.
func (t *Trainer) repeatFinite(ctx context.Context, p plan.Piece, count *tally, source []int32, bad int) error {
	done, after := 0, t.weightsNotFinite()
	for tried := 0; bad-done > 1; tried++ {
		if p.Steps = bad - 1 - done; tried >= 2 {
			p.Steps = (bad - done) / 2
		}
		t.kept.restore(t.Runner)
		s, err := t.runSteps(ctx, ctx, p, count, source, true)
		if again := (*lossNotFinite)(nil); errors.As(err, &again) { // by a kernel that does not repeat to the bit
			bad = done + again.step + 1
			continue
		}
		if err != nil {
			return err
		}
		if names := t.weightsNotFinite(); names != nil {
			bad, after = done+p.Steps, names
			continue
		}
		if err := t.account(t.Diverged.Epoch, p, s, count); err != nil {
			return err
		}
		t.kept.keep(t.Runner)
		t.at.Within += p.Steps
		done += p.Steps
	}
	t.kept.restore(t.Runner)
	if t.Diverged.Weights = after; t.Diverged.Loss != "" {
		t.Diverged.Weights = t.weightsNotFinite()
	}
	return nil
}

// weightsNotFinite names the parameters that hold a NaN or an infinity.
func (t *Trainer) weightsNotFinite() (names []string) {
	for _, a := range t.Weights() {
		if !a.IsFinite() {
			names = append(names, a.Name)
		}
	}
	return names
}
