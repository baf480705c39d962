package main

import (
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/schedule"
)

// predictedOf is the prediction in an executed run.
func predictedOf(t *testing.T, dir string) *schedule.Schedule {
	t.Helper()
	run := must.Get(record.LoadRun(dir))(t)
	s, err := run.Predicted()
	if err != nil || s == nil {
		t.Fatalf("%s has no prediction (%v)", dir, err)
	}
	return s
}

func TestShownSteps(t *testing.T) {
	for want, s := range map[string]record.ShownSteps{
		"steps 48 to 93 of 235, in epoch 2 of 5": {Steps: 46, Of: 235, Epoch: 2, Epochs: 5, First: 48},
		"step 1 of 1, in epoch 1 of 1":           {Steps: 1, Of: 1, Epoch: 1, Epochs: 1, First: 1},
		"the first 7 of 11 steps":                {Steps: 7, Of: 11},
		"":                                       {Steps: 7, Of: 7},
	} {
		if got := s.String(); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
