package plan

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/energy"
	"dahl/energy/meter"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// A row wins on what was measured only when all were.
func TestChooseSets(t *testing.T) {
	row := func(name string, step, joules float64) SetRow {
		return SetRow{Devices: name, Predicted: StepFigures{StepS: step, JoulesPerStep: joules, Basis: energy.Modelled}}
	}
	c := &SetComparison{Rows: []SetRow{row("a", 3, 5), row("b", 2, 7), row("c", 5, 11)}}
	c.Measured(2, StepFigures{StepS: 1, JoulesPerStep: 2, Basis: energy.Measured})
	if c.Fastest != "b" || c.Frugal != "a" || c.Basis != "predicted" || *c.Rows[2].StepErrorPercent != 400 {
		t.Errorf("one of three measured: %+v", c)
	}
	c.Measured(0, StepFigures{StepS: 4, JoulesPerStep: 13, Basis: energy.Measured})
	c.Measured(1, StepFigures{StepS: 7, JoulesPerStep: 1, Basis: energy.Measured})
	if c.Fastest != "c" || c.Frugal != "b" || c.Basis != "measured" {
		t.Errorf("all measured: %+v", c)
	}
	// a's joules are of another source than those of b and c: as predicted, a has the fewest.
	c.Measured(0, StepFigures{StepS: 4, JoulesPerStep: 0.5, Basis: energy.Modelled})
	if c.Fastest != "c" || c.Basis != "measured" || c.Frugal != "a" || c.FrugalBasis != "predicted" {
		t.Errorf("joules of two sources: %+v", c)
	}
	// Modelled joules are not measured, wherever they are modelled.
	for i := range c.Rows {
		c.Measured(i, StepFigures{StepS: float64(5 - i), JoulesPerStep: float64(1 + i), Basis: energy.Modelled})
	}
	if c.Fastest != "c" || c.Frugal != "a" || c.FrugalBasis != "predicted" {
		t.Errorf("no meters: %+v", c)
	}
	for i := range c.Rows {
		c.Measured(i, StepFigures{StepS: float64(5 - i), JoulesPerStep: float64(9 - i), Basis: energy.Measured})
	}
	if c.Frugal != "c" || c.FrugalBasis != "measured" {
		t.Errorf("meters everywhere: %+v", c)
	}
	for i := range c.Rows {
		c.Rows[i].Predicted.Basis = energy.Unavailable
		c.Measured(i, StepFigures{StepS: float64(5 - i), Basis: energy.Unavailable})
	}
	if c.Fastest != "c" || c.Frugal != "" || c.FrugalBasis != "" {
		t.Errorf("joules are unknown: %+v", c)
	}
}

func TestDeviceSets(t *testing.T) {
	p := &platform.Platform{Devices: []platform.Device{
		{Name: "g0", Kind: "cuda", Count: 1}, {Name: "cpu", Kind: "cpu", Count: 7}, {Name: "e", Kind: "emulated", Count: 2}}}
	if got := DeviceSets(p); !slices.Equal(got, []string{"cpu:7", "g0,e:2", "cpu:7,g0,e:2"}) {
		t.Errorf("sets %q", got)
	}
	// Of some units: the sets are chosen from the whole platform again.
	p.Devices[1].Count, p.Devices[1].Whole = 1, 7
	p.Devices[2].Count, p.Devices[2].Whole = 1, 2
	if got := DeviceSets(p); !slices.Equal(got, []string{"cpu:1", "g0,e:1", "cpu:1,g0,e:1"}) {
		t.Errorf("sets of some units %q", got)
	}
	p.Devices[1].PlacedOnly = true
	if got := DeviceSets(p); got != nil {
		t.Errorf("a processor for host operations is compared: %q", got)
	}
}

// threeTasks take 25 us each on the processor and 10 us on the GPU.
const threeTasks = `"tasks": [{"name": "a", "ns": {"cpu": 25000, "emulated": 10000}},
 {"name": "b", "ns": {"cpu": 25000, "emulated": 10000}}, {"name": "c", "ns": {"cpu": 25000, "emulated": 10000}}]`

// decidedOn is the decision for some of the devices.
func decidedOn(t *testing.T, prog, devices string) *schedule.Decision {
	t.Helper()
	return must.Get(must.Get(decided(t, prog).Priced.On(devices))(t).Decide(schedule.Choice{Policy: policy.HEFT}))(t)
}

// TestCompareSets: with the host's 1 W, 2 or 5 W of the processor and 3 or 7 W of the GPU the
// processor alone takes 75 us at 1 + 3 + 5 W. The GPU alone is refused, and told of.
func TestCompareSets(t *testing.T) {
	predict := func(ctx context.Context, set string) (StepFigures, error) {
		if set == "g0" {
			return StepFigures{}, errors.New("it has\nno room")
		}
		o, err := Predict(ctx, decidedOn(t, threeTasks, set), []Piece{{Segment: dag.Segment{Steps: 1}, Recorded: true, Samples: 7}}, false)
		if err != nil {
			return StepFigures{}, err
		}
		return FiguresOf(o, nil, false), nil
	}
	c := must.Get(CompareSets(t.Context(), []string{"cpu", "g0", "cpu,g0"}, StepFigures{StepS: 25e-6, JoulesPerStep: 305e-6, Basis: energy.Modelled}, predict))(t)
	if f := c.Rows[0].Predicted; !near(f.StepS, 75e-6) || !near(f.JoulesPerStep, 675e-6) || !near(f.JoulesPerSample, 675e-6/7) || math.Abs(f.SamplesPerS*75e-6-7) > 1e-9 || f.Basis != energy.Modelled {
		t.Errorf("the processor alone: %+v", f)
	}
	if len(c.Rows) != 3 || c.Rows[1].Error != "it has; no room" || c.Fastest != "cpu,g0" || c.Frugal != "cpu,g0" {
		t.Errorf("the comparison is %+v", c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	interrupted := func(context.Context, string) (StepFigures, error) { return StepFigures{}, errors.New("stopped") }
	if _, err := CompareSets(ctx, []string{"cpu", "cpu,g0"}, StepFigures{}, interrupted); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestFiguresOfMeters: 60 J in 4 s are 15 W, and 124 J in 20 s are 6.2 W, over a step of 75 us.
// A reading without time is of nothing.
func TestFiguresOfMeters(t *testing.T) {
	o := must.Get(Predict(t.Context(), decidedOn(t, threeTasks, "cpu"), []Piece{{Segment: dag.Segment{Steps: 1}, Recorded: true}}, false))(t)
	readings := []meter.Reading{{Of: "processors", Joules: 60, Seconds: 4}, {Of: "g0", Joules: 124, Seconds: 20}, {Of: "fan"}}
	measured := FiguresOf(o, readings, true)
	if !near(measured.JoulesPerStep, (15+6.2)*75e-6) || measured.Basis != energy.Measured || measured.SamplesPerS != 0 || measured.JoulesPerSample != 0 {
		t.Errorf("by meters: %+v", measured)
	}
	predicted := StepFigures{StepS: 50e-6, Watts: map[string]float64{"g0": 7, "fan": 1}}
	steps := MeteredSteps(&predicted, &measured)
	if len(steps) != 1 || steps[0].Of != "g0" || !near(steps[0].JoulesPerStep, 6.2*75e-6) || !near(steps[0].PredictedJoulesPerStep, 7*50e-6) {
		t.Errorf("metered steps: %+v", steps)
	}
}

// TestFirstOf: of two graphs that train, 0 and 1, and one that evaluates, the first step of each is no part of what counts,
// unless there are only those: then all count, however often the other runs.
func TestFirstOf(t *testing.T) {
	piece := func(graph, steps, samples int) Piece {
		return Piece{Segment: dag.Segment{Graph: graph, Steps: steps}, Samples: samples}
	}
	for _, c := range []struct {
		pieces []Piece
		want   []bool
	}{
		{[]Piece{piece(0, 3, 8), piece(0, 2, 8), piece(1, 1, 5), piece(2, 4, 0), piece(0, 5, 8), piece(1, 1, 5)}, []bool{true, false, true, true, false, false}},
		{[]Piece{piece(0, 1, 8), piece(1, 1, 5), piece(2, 4, 0)}, []bool{false, false, false}},
		{[]Piece{piece(0, 1, 8), piece(0, 1, 8)}, []bool{true, false}},
	} {
		FirstOf(c.pieces)
		for i, p := range c.pieces {
			if p.First != c.want[i] {
				t.Errorf("piece %d of %+v: first is %v", i, c.pieces, p.First)
			}
		}
	}
}
