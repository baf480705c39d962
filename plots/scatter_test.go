package plots

import (
	"strings"
	"testing"

	"dahl/schedule"
)

// TestPairs: in a run whose tasks and copies take three halves of what was predicted, each
// pair of medians is off by that, and copies stand beside kernels, by way and size.
func TestPairs(t *testing.T) {
	predicted, measured := tinyRun(t, schedule.Simulated, 1), tinyRun(t, schedule.Measured, 1.5)
	measured.Schedule.Transfers = append([]schedule.Transfer(nil), predicted.Schedule.Transfers...)
	for i := range measured.Schedule.Transfers {
		m := &measured.Schedule.Transfers[i]
		m.End += (m.End - m.Start) / 2
	}
	copies, calls := 0, 0
	for _, k := range pairKernels(predicted, measured) {
		if off := k.measured / k.predicted; off < 1.49 || off > 1.51 {
			t.Errorf("%s %s: %v predicted, %v measured; want three halves", k.op, k.shape, k.predicted, k.measured)
		}
		if strings.HasPrefix(k.op, "copy ") != (k.device == copyDevice) {
			t.Errorf("%q is of device %d", k.op, k.device)
		}
		if k.device == copyDevice {
			copies++
			calls += k.calls
		}
	}
	if copies < 2 || calls != len(predicted.Schedule.Transfers) {
		t.Errorf("%d kinds of copies, %d in all; the schedule has %d", copies, calls, len(predicted.Schedule.Transfers))
	}
}
