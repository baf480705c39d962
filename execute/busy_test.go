package execute

import (
	"context"
	"testing"
	"time"

	"dahl/must"
)

// TestBusy: each device has been busy for as long as the spans of its units in two recorded runs
// are. Times of a device with another clock are put on that of the run, which stretches them by a
// small part.
func TestBusy(t *testing.T) {
	prog := testProgram(t)
	r := newRunner(t, prog, how{Platform: node(t, 1, 2), Options: Options{Hooks: testHooks(nil)}, Plans: spreadPlans(prog, 3, bySamples(3))})
	want := make([]time.Duration, 3)
	for range 2 {
		s := must.Get(r.Run(context.Background(), 0, 5, true))(t)
		for _, span := range s.Spans {
			want[r.platform.Workers[span.Worker].Device] += span.End - span.Start
		}
	}
	for d, got := range r.Busy() {
		if off := float64(got-want[d]) / float64(want[d]); want[d] == 0 || off < -0.02 || off > 0.02 {
			t.Errorf("%s was busy for %v, want %v", r.platform.Devices[d].Name, got, want[d])
		}
	}
}
