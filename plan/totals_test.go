package plan

import (
	"testing"
	"time"

	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/place"
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

// TestMovedOnce: two of ten steps are simulated. Each has two transfers of 5 bytes; one of 7 bytes comes before the first step and one of 11 bytes after the
// last. In all these are 1 + 10×2 + 1 = 22 transfers of 7 + 10×2×5 + 11 = 118 bytes.
func TestMovedOnce(t *testing.T) {
	s := &schedule.Schedule{Steps: 2}
	for reason, moved := range map[place.Reason]struct {
		count int
		bytes int64
	}{place.ReasonEnter: {1, 7}, place.ReasonPrefetch: {4, 5}, place.ReasonLeave: {1, 11}} {
		for range moved.count {
			s.Transfers = append(s.Transfers, schedule.Transfer{Reason: reason, Bytes: moved.bytes})
		}
	}
	o := newPart()
	o.addMoved(s, 10)
	if o.Transfers != 22 || o.BytesMoved != 118 || o.Reasons[place.ReasonEnter] != (TransferTotal{1, 7}) || o.Reasons[place.ReasonPrefetch] != (TransferTotal{20, 100}) {
		t.Errorf("%d transfers of %d bytes: %v", o.Transfers, o.BytesMoved, o.Reasons)
	}
}
