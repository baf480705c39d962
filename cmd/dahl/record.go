package main

import (
	"fmt"
	"math"

	"dahl/dag"
	"dahl/plan"
	"dahl/schedule"
)

// recordedByDefault is how many steps of every graph are recorded in an epoch where some
// device is no processor: enough for a steady step, few beside an epoch.
const recordedByDefault = 10

var recordHelp = fmt.Sprintf(`The tasks of a step are timed where the step is recorded. On processors that is free,
and all steps are. On a GPU it puts two events around every task and keeps steps out of
CUDA graphs, so that only the first %d steps of every graph are recorded in each epoch,
or as many as --record says; the others run at full speed. The time of a step and the
images per second are then of those others, and the schedule, the figures, the copies
and the modelled joules of the recorded ones. Predictions are of steps that are not
recorded, except where one is laid beside a recorded schedule: the timing of a device in
the platform file, which dahl calibrate measures, is the difference.`, recordedByDefault)

// maxRecordedSpans bounds the spans of one piece; longer ones are executed in several, with
// a barrier between them.
const maxRecordedSpans = 4_000_000

// recordedSteps is how many steps of every graph are recorded in an epoch.
func (w *workload) recordedSteps() int {
	switch {
	case w.opts.Record > 0:
		return w.opts.Record
	case w.platform.Spread():
		return recordedByDefault
	default:
		return math.MaxInt
	}
}

// nextPiece is the first piece of what is left of a segment: recorded steps come before
// others, as many at once as spans may be kept of, and of a training whose state is kept no
// more than come before that.
func (t *trainer) nextPiece(left dag.Segment) plan.Piece {
	p, g := plan.Piece{Segment: left}, t.w.program.Graphs[left.Graph]
	if n := t.w.recordedSteps() - t.recorded[left.Graph]; n > 0 {
		p.Recorded = true
		p.Steps = min(p.Steps, n, max(1, maxRecordedSpans/max(1, g.NumTasks())))
	}
	if every := t.w.opts.ContinueOnLoss; every > 0 && isTraining(g) {
		p.Steps = min(p.Steps, every)
	}
	return p
}

// predictedPieces are the segments of the program as they are predicted. An execution is
// predicted as it will run: the first steps of every graph in an epoch as recorded ones, and
// the others without a record.
func (w *workload) predictedPieces() (pieces []plan.Piece) {
	if w.ran != nil {
		return w.ran
	}
	perEpoch := max(1, len(w.program.Order)/max(1, w.opts.Epochs))
	recorded := make([]int, len(w.program.Graphs))
	for i, seg := range w.program.Order {
		if i%perEpoch == 0 {
			clear(recorded)
		}
		n := seg.Steps
		if w.executed {
			n = min(n, max(0, w.recordedSteps()-recorded[seg.Graph]))
		}
		recorded[seg.Graph] += n
		for _, p := range []plan.Piece{{Segment: dag.Segment{Graph: seg.Graph, Steps: n}, Recorded: true}, {Segment: dag.Segment{Graph: seg.Graph, Steps: seg.Steps - n}}} {
			if p.Steps > 0 {
				pieces = append(pieces, p)
			}
		}
	}
	return pieces
}

// account adds a piece that has run to the totals, and returns its joules, which are known
// where it was recorded.
func (t *trainer) account(epoch int, p plan.Piece, s *schedule.Schedule) (joules float64, err error) {
	g := t.w.program.Graphs[p.Graph]
	if !p.Recorded {
		t.measured.AddUnrecorded(s, g, p.Segment)
		return 0, nil
	}
	t.recorded[p.Graph] += p.Steps
	a, err := t.w.account(p.Graph, s)
	if err != nil {
		return 0, err
	}
	a.Epoch, a.First = epoch, t.feeder.stepsDone+1
	return t.measured.Add(a, g, p.Segment), nil
}

// recordSummary says what of a training was recorded, where not all of it was: the
// transfers, evictions, peaks and modelled joules of its summary are those of the recorded
// steps, and so is everything in its schedule.
type recordSummary struct {
	Steps         int     `json:"steps"` // of the first graph
	Of            int     `json:"of"`
	StepS         float64 `json:"step_s"` // of a recorded one
	JoulesPerStep float64 `json:"joules_per_step"`
	// PredictedS is the prediction of a step that is not recorded, where it is another one.
	PredictedS float64 `json:"predicted_step_s,omitempty"`
}

// recording is nil where all steps were recorded.
func (o *outcome) recording() *recordSummary {
	if o.Unrecorded.Pieces == 0 {
		return nil
	}
	return &recordSummary{Steps: o.RecordedSteps, Of: o.RecordedSteps + o.Unrecorded.Steps,
		StepS: plan.StepTime(o.Main).Seconds(), JoulesPerStep: o.JoulesPerStep()}
}

// joulesText prints modelled joules, and of what.
func (o *outcome) joulesText() string {
	if o.Unrecorded.Pieces == 0 {
		return threeDigits(o.Joules) + " J"
	}
	return threeDigits(o.JoulesPerStep()) + " J per recorded step"
}

func (s *recordSummary) String() string {
	if s.Steps == s.Of {
		return "all training steps, and of other graphs the first; copies and modelled joules are of those"
	}
	return fmt.Sprintf("%d of %d training steps, of %s each; schedule, copies and modelled joules are of those, step and images/s of the others",
		s.Steps, s.Of, shortTime(seconds(s.StepS)))
}
