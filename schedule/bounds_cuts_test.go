package schedule

import (
	"testing"
	"time"
)

// TestLowerBoundCuts derives by hand how long it takes to move what has to get from one memory to another, of 16 bytes each over
// a bus of a byte per ns for both directions. Tasks take less.
func TestLowerBoundCuts(t *testing.T) {
	const x = "buffer x float32 [4] activation\nbuffer y float32 [4] activation\nbuffer w float32 [4] parameter\n"
	const onCPU, onE0 = "\n costs cpu=1 e0=1\n place device=cpu\n", "\n costs cpu=1 e0=1\n place device=e0\n"
	for _, c := range []struct {
		words, lines string
		steps        int
		want         time.Duration
	}{
		{"one reader", x + "task a\n write x" + onCPU + "task b\n read x" + onE0, 1, 16},
		{"two readers share what has moved", x + "task a\n write x" + onCPU + "task b\n read x" + onE0 + "task c\n read x" + onE0, 1, 16},
		{"half of it is read", x + "task a\n write x" + onCPU + "task b\n read x[1:3]" + onE0, 1, 8},
		{"each step anew", x + "task a\n write x" + onCPU + "task b\n read x" + onE0, 3, 3 * 16},
		{"both directions of one bus", x + "task a\n write x" + onCPU + "task b\n read x\n write y" + onE0 + "task c\n read y" + onCPU, 1, 32},
		{"w of the step before: not in the first step, in which the path of r and u is 1 and 2+1", x + "task r\n read w" + onCPU + "task u\n readwrite w" + onE0, 1, 3},
		{"w of the step before: twice in three steps", x + "task r\n read w" + onCPU + "task u\n readwrite w" + onE0, 3, 2 * 16},
		{"whoever may run anywhere gets nothing for sure: 1 and 1", x + "task a\n write x" + onCPU + "task b\n read x\n costs cpu=1 e0=1\n", 1, 2},
		{"what no task has written may be there", x + "task b\n read w" + onE0, 1, 3},
	} {
		priced := priced(t, c.lines, Unbound)
		if got := priced.LowerBound(0, c.steps); got != c.want {
			t.Errorf("%s: %d, want %d", c.words, got, c.want)
		}
	}
	// A steady step has what moves within a step and from one to the next; a step alone has the former.
	both := priced(t, x+"task a\n read w\n write x"+onCPU+"task b\n read x\n readwrite w"+onE0, Unbound)
	if alone, steady := both.CrossingTime(0, false), both.CrossingTime(0, true); alone != 16 || steady != 32 {
		t.Errorf("%d alone and %d steady, want 16 and 32", alone, steady)
	}
}
