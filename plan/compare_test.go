package plan

import (
	"math"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// TestCompare: the processor makes x, 1000 bytes go to the GPU, and two tasks of one kernel
// use them there one after the other. Predicted are 25, 1 and twice 10 us, 46 us in all.
// Measured are 31, 3, 13 and 17 us, and between the last two the GPU does nothing for 5 us,
// 69 us in all. Given the tasks' times the simulator says 31 + 1 + 13 + 17 = 62 us, given the
// copy's too 64 us.
func TestCompare(t *testing.T) {
	d := decided(t, `"buffers": [{"name": "x", "bytes": 1000}],
 "tasks": [
  {"name": "make", "op": "m", "writes": ["x"], "ns": {"cpu": 25000}},
  {"name": "use1", "op": "u", "reads": ["x"], "ns": {"emulated": 10000}},
  {"name": "use2", "op": "u", "reads": ["x"], "ns": {"emulated": 10000}}]`)
	us := time.Microsecond
	predicted := simulated(t, d, 1, simulate.Options{})
	measured := simulated(t, d, 1, simulate.Options{
		Durations: func(i dag.Instance, _ platform.WorkerID) (time.Duration, bool) {
			return []time.Duration{31 * us, 13 * us, 17 * us}[i.Task], true
		},
		Moving: func(*schedule.Transfer) (time.Duration, bool) { return 3 * us, true },
	})
	last := &measured.Spans[2]
	last.Start, last.End, measured.Makespan = last.Start+5*us, last.End+5*us, measured.Makespan+5*us
	c := must.Get(Compare(t.Context(), d, predicted, measured))(t)
	percent := func(got, a, b float64) bool { return math.Abs(got-100*(a/b-1)) < 1e-9 }
	if c.Step != NewPair(46e-6, 69e-6) || !percent(c.KernelErrorPercent, 46, 62) || !percent(*c.CopyErrorPercent, 62, 64) || !percent(c.SchedulingErrorPercent, 64, 69) {
		t.Errorf("step %+v: kernels %v, copies %v, scheduling %v", c.Step, c.KernelErrorPercent, *c.CopyErrorPercent, c.SchedulingErrorPercent)
	}
	pair := func(p Pair, predicted, measured float64) bool {
		return near(p.Predicted, predicted) && near(p.Measured, measured) && percent(p.ErrorPercent, predicted, measured)
	}
	if len(c.Workers) != 2 || !pair(c.Workers[0].Busy, 25e-6, 31e-6) || !pair(c.Workers[1].Busy, 20e-6, 30e-6) || c.MovedTasks != 0 {
		t.Errorf("workers %+v, %d tasks moved", c.Workers, c.MovedTasks)
	}
	// The median of 13 and 17 us is 15, and the smallest with 95 % at or below it is 17.
	if len(c.Kernels) != 2 || c.Kernels[0].Op != "m" {
		t.Fatalf("kernels %+v", c.Kernels)
	}
	if u := c.Kernels[1]; u.Count != 2 || !pair(u.Sum, 20e-6, 30e-6) || !pair(u.Median, 10e-6, 15e-6) || !near(u.MeanS, 15e-6) || !near(u.P95S, 17e-6) || !near(u.Share, 30./61) || u.Source != "graph" || u.Device != "g0" || c.Kernels[0].Device != "cpu" {
		t.Errorf("kernel %+v", u)
	}
	if len(c.Copies) != 1 || len(c.Ways) != 1 {
		t.Fatalf("copies %+v, ways %+v", c.Copies, c.Ways)
	}
	if k := c.Copies[0]; k.Buffer != "x" || k.From != "ram" || k.To != "g0.mem" || k.Bytes != 1000 || k.Count != 1 || !pair(k.Median, 1e-6, 3e-6) || k.Share != 1 {
		t.Errorf("copies %+v", k)
	}
	if way := c.Ways[0]; !pair(way.Count, 1, 1) || !pair(way.Bytes, 1000, 1000) || !pair(way.Busy, 1e-6, 3e-6) {
		t.Errorf("way %+v", way)
	}
}
