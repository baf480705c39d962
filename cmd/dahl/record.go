package main

import (
	"fmt"

	"dahl/cmd/cli"
	"dahl/plan"
	"dahl/train"
)

var recordHelp = fmt.Sprintf(`The tasks of a step are timed where the step is recorded. On processors that is free,
and all steps are. On a GPU it puts two events around every task and keeps steps out of
CUDA graphs, so that only the first %d steps of every graph are recorded in each epoch,
or as many as --record says; the others run at full speed. The time of a step and the
images per second are then of those others, and the schedule, the figures, the copies
and the modelled joules of the recorded ones. Predictions are of steps that are not
recorded, except where one is laid beside a recorded schedule: the timing of a device in
the platform file, which dahl calibrate measures, is the difference.`, train.RecordedByDefault)

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
func recording(o *plan.Totals) *recordSummary {
	if o.Unrecorded.Pieces == 0 {
		return nil
	}
	return &recordSummary{Steps: o.RecordedSteps, Of: o.RecordedSteps + o.Unrecorded.Steps,
		StepS: plan.StepTime(o.Main).Seconds(), JoulesPerStep: o.JoulesPerStep()}
}

// joulesText prints modelled joules, and of what.
func joulesText(o *plan.Totals) string {
	if o.Unrecorded.Pieces == 0 {
		return cli.ThreeDigits(o.Joules) + " J"
	}
	return cli.ThreeDigits(o.JoulesPerStep()) + " J per recorded step"
}

func (s *recordSummary) String() string {
	if s.Steps == s.Of {
		return "all training steps, and of other graphs the first; copies and modelled joules are of those"
	}
	return fmt.Sprintf("%d of %d training steps, of %s each; schedule, copies and modelled joules are of those, step and images/s of the others",
		s.Steps, s.Of, cli.ShortTime(cli.Seconds(s.StepS)))
}
