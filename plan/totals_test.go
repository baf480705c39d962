package plan

import (
	"testing"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// TestMainIsOneOfTheLongest: whichever of the pieces between checkpoints are fast, what is shown has as many steps as the longest, and of these the median time of a step.
func TestMainIsOneOfTheLongest(t *testing.T) {
	for _, slow := range []time.Duration{1, 100} {
		o := NewTotals(schedule.Measured, &platform.Platform{})
		for first, piece := range []struct {
			steps int
			step  time.Duration
		}{{46, 7}, {3, 1}, {43, slow}, {46, 5}, {46, 6}, {3, slow}} {
			o.chooseMain(Accounted{Schedule: &schedule.Schedule{Steps: piece.steps, FirstStep: 2, Makespan: 2 + time.Duration(piece.steps-1)*piece.step}, First: first})
		}
		if o.Main.Steps != 46 || o.First != 4 {
			t.Errorf("piece %d of %d steps, want the one of 46 steps that take 6 ns each", o.First, o.Main.Steps)
		}
	}
}
