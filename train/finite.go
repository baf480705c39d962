package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"dahl/nn"
	"dahl/plan"
)

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// lossNotFinite is what ends the run of a piece whose loss is NaN or infinite.
type lossNotFinite struct {
	step int // of the piece, from 0
	loss float64
}

func (e *lossNotFinite) Error() string { return fmt.Sprintf("the loss is %v", e.loss) }

// Divergence is the first loss of a training that is NaN or infinite. What it names in the
// network is empty where that was not looked for or not found.
type Divergence struct {
	Epoch int    `json:"epoch"`          // from 1
	Step  int    `json:"step"`           // of the training, from 1; of a test set: the last one before it
	Test  bool   `json:"test,omitempty"` // the loss is of the test set
	Loss  string `json:"loss"`           // NaN, +Inf or -Inf

	// The first task, in the order of the program, that wrote a number that is not finite,
	// and the training step in which it did, 0 in a test set.
	FoundInStep int    `json:"found_in_step,omitempty"`
	Task        string `json:"task,omitempty"`
	Op          string `json:"op,omitempty"`
	Layer       string `json:"layer,omitempty"`
	Phase       string `json:"phase,omitempty"`

	// Weights are the parameters that were not finite before the step of the loss.
	Weights []string `json:"weights_not_finite,omitempty"`
	// KeptStep is the training step after which the weights are those of the run.
	KeptStep int `json:"weights_of_step"`

	devices bool // devices write what was not looked through
}

func (d *Divergence) Error() string {
	var b strings.Builder
	if d.Test {
		fmt.Fprintf(&b, "the test loss after step %d is %s", d.Step, d.Loss)
	} else {
		fmt.Fprintf(&b, "the loss of step %d is %s", d.Step, d.Loss)
	}
	switch {
	case d.Task != "":
		where := "the test set"
		if d.FoundInStep > 0 {
			where = fmt.Sprintf("step %d", d.FoundInStep)
		}
		fmt.Fprintf(&b, "; the first values that are not finite come from layer %s in %s: task %s (%s, %s)", d.Layer, where, d.Task, d.Op, d.Phase)
	case len(d.Weights) > 0:
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

// note remembers the first loss that is not finite of a training that goes on.
func (t *Trainer) note(epoch, step int, test bool, loss float64) {
	if t.Diverged == nil && notFinite(loss) {
		t.Diverged = &Divergence{Epoch: epoch, Step: step, Test: test, Loss: fmt.Sprint(loss), KeptStep: step}
		if t.OnDivergence != nil {
			t.OnDivergence(t.Diverged)
		}
	}
}

// stopAt ends a training at a loss that is not finite. The piece in which it came up is run
// again from the state before it, up to the last step that leaves finite weights: equal
// steps give equal bits. So everything that is written is of whole steps.
func (t *Trainer) stopAt(ctx context.Context, epoch int, p plan.Piece, count *tally, source []int32, at *lossNotFinite) error {
	g := t.Workload.Program.Graphs[p.Graph]
	before := t.feed.stepsDone
	d := &Divergence{Epoch: epoch, Step: before + at.step + 1, Test: !nn.IsTraining(g), Loss: fmt.Sprint(at.loss), devices: t.Workload.Platform.Spread()}
	t.Diverged = d
	if d.Test {
		d.Step, p.Steps = before, 0
		d.Weights = t.weightsNotFinite()
	} else if err := t.repeatFinite(ctx, &p, count, source, at.step); err != nil {
		return fmt.Errorf("%w; and repeating the steps before it: %w", d, err)
	}
	d.KeptStep = t.feed.stepsDone
	t.kept.keep(t.Runner)
	defer t.kept.restore(t.Runner)
	if !d.devices && len(d.Weights) == 0 {
		t.begin(ctx, p.Graph, 1, source[count.Images:])
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
	// The first step of all: the files are of this step, so that there is something to read.
	p.Steps = 1
	s, err := t.runSteps(ctx, ctx, p, count, source, false)
	if err != nil {
		return fmt.Errorf("%w; and repeating it: %w", d, err)
	}
	return errors.Join(t.take(epoch, p, s, count), d)
}

// repeatFinite runs the steps of a piece before one with a loss that is not finite, and
// takes those that leave finite weights: all, or all but the last one. Weights that were
// not finite before are told in the divergence.
func (t *Trainer) repeatFinite(ctx context.Context, p *plan.Piece, count *tally, source []int32, steps int) error {
	for p.Steps = steps; ; p.Steps-- {
		t.kept.restore(t.Runner)
		if p.Steps == 0 {
			t.Diverged.Weights = t.weightsNotFinite()
			return nil
		}
		s, err := t.runSteps(ctx, ctx, *p, count, source, true)
		if again := (*lossNotFinite)(nil); errors.As(err, &again) { // by a kernel that does not repeat to the bit
			p.Steps = again.step + 1
			continue
		}
		if err != nil {
			return err
		}
		t.Diverged.Weights = t.weightsNotFinite()
		if len(t.Diverged.Weights) == 0 || p.Steps < steps {
			return t.take(t.Diverged.Epoch, *p, s, count)
		}
	}
}

// weightsNotFinite names the parameters that hold a NaN or an infinity.
func (t *Trainer) weightsNotFinite() []string {
	var names []string
	for _, a := range t.Weights() {
		if slices.ContainsFunc(a.Float64s(), notFinite) {
			names = append(names, a.Name)
		}
	}
	return names
}
