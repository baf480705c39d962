package train

import (
	"strings"
	"testing"

	"dahl/dag"
	"dahl/execute/calibrate"
	"dahl/must"
	"dahl/platform"
)

// TestStepSets: of two cores one and both, of a GPU all; where it has a cache of another size, or is one
// unit, which tasks are for as a whole, once with its own tiles and once with those of all.
// Units choose devices.
func TestStepSets(t *testing.T) {
	p := must.Get(platform.Load("../platforms/emulated.toml"))(t)
	w := &Workload{Platform: p, Lowering: &dag.Lowering{}}
	for _, c := range []struct {
		count int // of units of the GPU
		l2    int64
		units map[string]int
		want  string
	}{
		{2, 512 << 10, nil, "cpu:1 cpu:2 gpu:2"},
		{2, 1 << 20, nil, "cpu:1 cpu:2 gpu:2 gpu:2(all)"},
		{1, 512 << 10, nil, "cpu:1 cpu:2 gpu:1 gpu:1(all)"},
		{1, 512 << 10, map[string]int{"cpu": 1}, "cpu:1"},
		{1, 512 << 10, map[string]int{"gpu": 1}, "gpu:1 gpu:1(all)"},
	} {
		p.Devices[1].Count, p.Devices[1].L2Bytes = c.count, c.l2
		sets := must.Get(w.stepSets(&Calibration{Options: calibrate.Options{Units: c.units}}))(t)
		var got []string
		for _, s := range sets {
			text := s.list
			if s.options.Lowering != nil {
				text += "(all)"
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%d units with an L2 of %d, of which %v: %v, want %s", c.count, c.l2, c.units, got, c.want)
		}
	}
	w.Options.Lowering = &dag.Lowering{MicroBatches: 4, Order: "1f1b", Stages: []dag.Stage{{From: "input", Device: "gpu"}}}
	for _, s := range must.Get(w.stepSets(&Calibration{}))(t) {
		if l := s.options.Lowering; l.Stages != nil || l.Order != "" || l.MicroBatches != 4 {
			t.Errorf("%s has stages: %+v", s.list, l)
		}
	}
	if w.Options.Lowering.Stages == nil {
		t.Error("the stages of the workload are gone")
	}
}
