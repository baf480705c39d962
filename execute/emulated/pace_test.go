package emulated

import (
	"testing"
	"time"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
)

// TestLeastTime: "dst += src" over 1000 elements is 1000 flops, at 1e10 per second
// 100 ns, and moves 12 kB (dst twice), at 1e11 bytes per second 120 ns. A model
// that somebody wrote takes the place of that, one that was measured does not, and the
// cost that the graph gives counts before both.
func TestLeastTime(t *testing.T) {
	k, _ := kernels.KernelByName("add")
	operand := calls.OperandSpec{Type: dag.Float32, Mode: dag.ReadWrite, Shape: []int{1000}}
	spec := &calls.Spec{Op: "add", Type: dag.Float32, Operands: []calls.OperandSpec{operand, operand}}
	spec.Operands[1].Mode = dag.Read
	model := platform.Model{Op: "add", Variant: "ref", Type: "float32", Device: "gpu0", Shape: spec.Key(), Active: 1, MedianNs: 7777}
	measured := model
	measured.Count, measured.MedianNs, measured.StepNs = 40, 9999, 9998
	for _, c := range []struct {
		models []platform.Model
		cost   schedule.Cost
		want   time.Duration
	}{
		{nil, schedule.Cost{Duration: 5, Source: schedule.FromRoofline}, 120},
		{[]platform.Model{measured}, schedule.Cost{Duration: 9998, Source: schedule.FromMeasured}, 120},
		{[]platform.Model{model}, schedule.Cost{Duration: 7777, Source: schedule.FromMeasured}, 7777},
		{[]platform.Model{model}, schedule.Cost{Duration: 33, Source: schedule.FromGraph}, 33},
	} {
		p := testmachine.Executable(t, 1, 1)
		p.Models = c.models
		if got := paceOf(p).leastTime(&driver.Call{Kernel: k, Spec: spec, Variant: &k.Variants[0], Device: 1, Cost: c.cost}); got != c.want {
			t.Errorf("models %+v, cost %+v: %v, want %v", c.models, c.cost, got, c.want)
		}
	}
}
