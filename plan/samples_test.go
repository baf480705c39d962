package plan

import (
	"math"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// sampledProblem has a measured task and two tasks of one fit on one device.
func sampledProblem(runSpread float64) *schedule.Problem {
	var spread platform.Distribution
	for i := range spread {
		spread[i] = 0.85 + 0.02*float64(i) // mean 1
	}
	return &schedule.Problem{
		Graph:    &dag.Graph{Tasks: []dag.Task{{Op: "m"}, {Op: "f"}, {Op: "f"}}},
		Platform: &platform.Platform{Devices: []platform.Device{{RunSpread: runSpread}}, Workers: []platform.Worker{{}}},
		Costs: &schedule.Costs{Class: []int32{0, 1, 2}, ByClass: [][]schedule.Cost{
			{{Source: schedule.FromMeasured, Spread: spread}},
			{{Source: schedule.FromFit, RelError: 0.1}}, {{Source: schedule.FromFit, RelError: 0.05}},
		}},
	}
}

// TestDrawing: over many samples the factors have the mean and the standard deviation
// they are drawn with. Of the distribution 0.85, 0.87, … 1.15 that is 1 and
// 0.02·√((16²−1)/12) = 0.0922; of the fits 0.1 and 0.05, both from one number, so that
// (f₁−1)/0.1 = (f₂−1)/0.05. With 20,000 samples the mean is within five standard
// errors, 5·0.1/√20000 = 0.0035.
func TestDrawing(t *testing.T) {
	p := sampledProblem(0)
	const n = 20_000
	var sum, squares [3]float64
	for k := range uint64(n) {
		d := newDrawing(p, 1, k)
		for i := range 3 {
			f := d.scale(dag.Instance{Task: dag.TaskID(i), Step: 3}, 0)
			sum[i] += f
			squares[i] += f * f
		}
		a, b := d.scale(dag.Instance{Task: 1}, 0), d.scale(dag.Instance{Task: 2}, 0)
		if math.Abs((a-1)/0.1-(b-1)/0.05) > 1e-9 {
			t.Fatalf("sample %d: calls of one fit are off by %g and %g", k, a-1, b-1)
		}
	}
	for i, want := range []float64{0.0922, 0.1, 0.05} {
		mean := sum[i] / n
		deviation := math.Sqrt(squares[i]/n - mean*mean)
		if math.Abs(mean-1) > 0.0035 || math.Abs(deviation/want-1) > 0.03 {
			t.Errorf("task %d: mean %.4f, standard deviation %.4f; want 1, %.4f", i, mean, deviation, want)
		}
	}
}

// TestDrawingDependsOnTheInstance: the same sample draws the same again, in any order;
// another step, sample or seed draws something else somewhere.
func TestDrawingDependsOnTheInstance(t *testing.T) {
	p := sampledProblem(0.01)
	draw := func(seed, sample uint64, reverse bool) []float64 {
		d := newDrawing(p, seed, sample)
		out := make([]float64, 60)
		for i := range out {
			k := i
			if reverse {
				k = len(out) - 1 - i
			}
			out[k] = d.scale(dag.Instance{Task: dag.TaskID(k % 3), Step: int32(k / 3)}, 0)
		}
		return out
	}
	base := draw(1, 0, false)
	if !slices.Equal(base, draw(1, 0, true)) {
		t.Error("the order of events changes what is drawn")
	}
	if slices.Equal(base, draw(1, 1, false)) || slices.Equal(base, draw(2, 0, false)) {
		t.Error("another sample or seed draws the same")
	}
	if base[0] == base[3] && base[3] == base[6] && base[6] == base[9] {
		t.Error("every step draws the same")
	}
}

// TestDrawsAreCommon: a device, and a fit on it, draw the same on a machine with one more device before it; a
// device of another name draws something else.
func TestDrawsAreCommon(t *testing.T) {
	p := sampledProblem(0.05)
	p.Platform.Devices[0].Name = "a"
	both := sampledProblem(0.05)
	both.Platform.Devices = []platform.Device{{Name: "b", RunSpread: 0.05}, p.Platform.Devices[0]}
	both.Platform.Workers = []platform.Worker{{Device: 0}, {Device: 1}}
	for class, row := range p.Costs.ByClass {
		both.Costs.ByClass[class] = []schedule.Cost{row[0], row[0]}
	}
	for task := range dag.TaskID(3) {
		i := dag.Instance{Task: task, Step: 2}
		alone, b, a := Draw(p, 4, 9)(i, 0), Draw(both, 4, 9)(i, 0), Draw(both, 4, 9)(i, 1)
		if alone != a || a == b {
			t.Errorf("task %d draws %v on a alone, and %v on a beside %v on b", task, alone, a, b)
		}
	}
	if Draw(&schedule.Problem{Platform: &platform.Platform{}, Costs: &schedule.Costs{}}, 1, 1) != nil {
		t.Error("something is drawn where every duration is one number")
	}
}

// TestInterval: between 50 and 51 lie half of 1 … 100. Five of them are at or below 5, and 95 at or below 95.
func TestInterval(t *testing.T) {
	var x []float64
	for i := range 100 {
		x = append(x, float64(100-i))
	}
	if got := NewInterval(x); got != (Interval{50.5, 5, 95}) {
		t.Errorf("%+v", got)
	}
}

// TestSample: one task keeps the only device busy all the time, with the host's 1 W and its
// own 5 W, so that the joules of every sample are 6 W times its makespan; the latter of two
// steps is twice the period. A sample depends on its seed alone.
func TestSample(t *testing.T) {
	prog, p := parsed(t, `"tasks": [{"name": "a", "ns": {"cpu": 1000000}}]`), oneCore(t)
	p.Devices[0].RunSpread = 0.05
	prog.Order[0].Steps = 2
	sample := func(seed uint64) *Samples {
		d := must.Get(Decide(prog, p, schedule.Unbound, schedule.Choice{Policy: policy.HEFT}))(t)
		return must.Get(Sample(t.Context(), d, d.Priced.Program.Order[0], 41, seed))(t)
	}
	s := sample(3)
	if m := s.Makespan; !(m.Low < m.Median && m.Median < m.High) || s.Count != 41 || s.Missing != "" {
		t.Errorf("samples %+v", s)
	}
	// Durations are whole nanoseconds.
	for _, x := range [][3]float64{{s.Makespan.Median, s.Step.Median, s.Energy.Median}, {s.Makespan.Low, s.Step.Low, s.Energy.Low}, {s.Makespan.High, s.Step.High, s.Energy.High}} {
		if math.Abs(x[0]-2*x[1]) > 2e-9 || math.Abs(x[2]-6*x[0]) > 1e-9 {
			t.Errorf("%v s in steps of %v s take %v J", x[0], x[1], x[2])
		}
	}
	if again := sample(3); *again != *s {
		t.Errorf("seed 3 draws %+v, then %+v", s, again)
	}
	if other := sample(5); other.Makespan == s.Makespan {
		t.Errorf("seeds 3 and 5 draw %+v", s.Makespan)
	}
	p.Devices[0].RunSpread = 0
	if flat := sample(3); flat.Count != 0 || flat.Missing == "" {
		t.Errorf("nothing is drawn: %+v", flat)
	}
}
