package calibrate

import (
	"context"
	"testing"

	"dahl/must"
)

// TestMeasureDispatch: a hand-off costs more than nothing and a wake-up is paid after
// the time that a worker spins; on one core neither is known.
func TestMeasureDispatch(t *testing.T) {
	for _, cores := range []int{1, 2} {
		p := copyOf(machine(t, cores))
		c := &calibrator{ctx: context.Background(), platform: p, cpu: &p.Devices[0], cores: cores}
		must.Do(t, c.measureDispatch())
		d := c.platform.Devices[0]
		if d.Dispatch <= 0 || (d.Handoff > 0) != (cores > 1) || (d.Wake > 0) != (d.WakeAfter > 0) || cores == 1 && d.Wake != 0 {
			t.Errorf("%d cores: dispatch %v, handoff %v, wake %v after %v", cores, d.Dispatch, d.Handoff, d.Wake, d.WakeAfter)
		}
		t.Logf("%d cores: dispatch %v, handoff %v, wake %v after %v", cores, d.Dispatch, d.Handoff, d.Wake, d.WakeAfter)
		if err := c.platform.Complete(); err != nil {
			t.Error(err)
		}
	}
}
