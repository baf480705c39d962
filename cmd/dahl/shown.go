package main

import (
	"fmt"

	"dahl/nn"
	"dahl/plan"
)

// shownSteps says which steps of a run its schedule and figures show: one segment of the
// training steps of a whole batch, or the first steps of a simulated one.
type shownSteps struct {
	Steps int `json:"steps"`
	Of    int `json:"of"` // training steps in the run

	Epoch  int `json:"epoch,omitempty"` // 0: of a simulated run
	Epochs int `json:"of_epochs,omitempty"`
	First  int `json:"first_step,omitempty"` // from 1, as in steps.csv
}

// shown says which steps the main schedule of some totals is of.
func (w *workload) shown(o *plan.Totals) *shownSteps {
	s := &shownSteps{Steps: o.Main.Steps, Epoch: o.Epoch, First: o.First}
	for _, seg := range w.Program.Order {
		if seg.Graph == 0 || nn.IsTraining(w.Program.Graphs[seg.Graph]) {
			s.Of += seg.Steps
		}
	}
	if s.Epoch > 0 {
		s.Epochs = w.opts.Epochs
	}
	return s
}

// String says it in words; it is empty where all steps are shown and none is numbered.
func (s *shownSteps) String() string {
	switch {
	case s.Epoch > 0 && s.Steps == 1:
		return fmt.Sprintf("step %d of %d, in epoch %d of %d", s.First, s.Of, s.Epoch, s.Epochs)
	case s.Epoch > 0:
		return fmt.Sprintf("steps %d to %d of %d, in epoch %d of %d", s.First, s.First+s.Steps-1, s.Of, s.Epoch, s.Epochs)
	case s.Steps < s.Of:
		return fmt.Sprintf("the first %d of %d steps", s.Steps, s.Of)
	}
	return ""
}
