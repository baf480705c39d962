package plan

import (
	"fmt"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
)

// twoKinds is two processors that are alike, of two units each, and a GPU. With both units busy a processor draws 8 W.
func twoKinds(t *testing.T) *platform.Platform {
	t.Helper()
	a := testmachine.CPU(2)
	a.Name, a.Dispatch, a.IdleWatts, a.Busy = "a", time.Microsecond, 1, platform.BusyPower{FirstWatts: 5, AllWatts: 8, WholeDevice: true}
	b := a
	b.Name = "b"
	p := testmachine.Node(t, a, b, testmachine.GPU("g", 1, 4))
	p.HostPower = testmachine.Watts(1)
	return p
}

// cutTask is a task of a made-up step; ns are by kind.
func cutTask(layer, phase string, number int, ns string) string {
	return fmt.Sprintf(`{"name": "%s.%s%d", "labels": {"layer": "%[1]s", "phase": "%[2]s"}, "ns": {%[4]s}}`, layer, phase, number, ns)
}

// TestCutCosts: the layer "conv" takes 10 us forward and 20 us backward on a core, and "relu" 2 us with it. Cut in rows it takes
// twice 6 us and twice 11 us and 3 us for the sum, and "relu" 5 us, 3 us more. Each task takes 1 us of dispatch more. So the cut layer
// takes 2·7 us forward; 2·12 us and the 3 us of "relu" backward; and 4 us for the sum. With both units busy a core draws 3 W above
// idle, for 10 + 20 and for 2·6 + 2·11 + 3 + 3 us. The processors are alike, and the GPU has no kernel for the sum. A cut in columns
// leaves the graph as it is.
func TestCutCosts(t *testing.T) {
	cores := func(us int) string { return fmt.Sprintf(`"cpu": %d`, 1000*us) }
	both := func(us int) string { return fmt.Sprintf(`"cpu": %d, "emulated": %d`, 1000*us, 500*us) }
	whole := `"tasks": [` + cutTask("conv", "forward", 0, both(10)) + "," + cutTask("conv", "backward", 0, both(20)) + "," + cutTask("relu", "backward", 0, both(2)) + `]`
	rows := `"tasks": [` + cutTask("conv", "forward", 0, both(6)) + "," + cutTask("conv", "forward", 1, both(6)) + "," +
		cutTask("conv", "backward", 0, both(11)) + "," + cutTask("conv", "backward", 1, both(11)) + "," + cutTask("conv", "reduce", 0, cores(3)) + "," + cutTask("relu", "backward", 0, both(5)) + `]`
	samples := `"tasks": [` + cutTask("conv", "forward", 0, both(10)) + "," + cutTask("conv", "backward", 0, both(20)) + "," + cutTask("relu", "backward", 0, both(4)) + `]`
	n := tiling.Network{Extents: map[string]dag.LayerLowering{"conv": {Forward: dag.Cut{Samples: 7, Outputs: 1, Rows: 5, Columns: 3}}}, OfBatch: func(int) dag.Lowering { return dag.Lowering{Layers: map[string]dag.LayerLowering{"relu": {}}} }}
	got := must.Get(CutCosts(t.Context(), &n, func(l dag.Lowering) (*schedule.Priced, error) {
		step := whole
		switch l.Layers["conv"].Forward {
		case dag.Cut{Samples: 4}:
			step = samples
		case dag.Cut{Rows: 3}:
			step = rows
		}
		return schedule.Price(parsed(t, step), twoKinds(t), schedule.Unbound)
	}))(t)
	const us = 1000
	want := []CutCost{
		{"conv", platform.CPU, Uncut, Work{Tasks: 2, Forward: 11 * us, Backward: 21 * us, Joules: 3 * 30e-6}},
		{"conv", platform.CPU, "samples", Work{Tasks: 2, Forward: 11 * us, Backward: 23 * us, Joules: 3 * 32e-6}},
		{"conv", platform.CPU, "rows", Work{Tasks: 5, Forward: 14 * us, Backward: 27 * us, Sums: 4 * us, Joules: 3 * 40e-6}},
		{"conv", platform.AnyGPU, Uncut, Work{Tasks: 2, Forward: 5 * us, Backward: 10 * us, Joules: 3 * 15e-6}},
		{"conv", platform.AnyGPU, "samples", Work{Tasks: 2, Forward: 5 * us, Backward: 11 * us, Joules: 3 * 16e-6}},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for i, g := range got {
		w := want[i]
		if !near(g.Joules, w.Joules) {
			t.Errorf("%s on %s cut along %s: %g J, want %g", g.Layer, g.Device, g.Cut, g.Joules, w.Joules)
		}
		if g.Joules = w.Joules; g != w {
			t.Errorf("%+v, want %+v", g, w)
		}
	}
}
