package calibrate

import (
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
)

// TestBenchSets: one call adds two vectors of 3000 floats, 24,000 bytes of operands. To
// exceed 100,000 bytes takes 5 sets (4 are 96,000), to exceed 1,000,000 takes 42 (41
// are 984,000). Of calls of 8 bytes no more than drawnSets are near.
func TestBenchSets(t *testing.T) {
	k, _ := kernels.KernelByName("add")
	spec := func(elems int) *calls.Spec {
		o := calls.OperandSpec{Type: dag.Float32, Shape: []int{elems}}
		dst, src := o, o
		dst.Mode, src.Mode = dag.ReadWrite, dag.Read
		return &calls.Spec{Op: "add", Type: dag.Float32, Operands: []calls.OperandSpec{dst, src}}
	}
	for _, c := range []struct {
		elems     int
		near, far int64
		wantNear  int
		wantAll   int
	}{{3000, 100_000, 0, 5, 5}, {3000, 100_000, 1_000_000, 5, 42}, {1, 100_000, 0, drawnSets, maxSets}} {
		b := newBench(k.Default(), spec(c.elems), nil, c.near, c.far)
		if b.nearSets != c.wantNear || len(b.calls) != c.wantAll {
			t.Errorf("%+v: %d near, %d in all", c, b.nearSets, len(b.calls))
		}
	}
}

// TestMeasureAtLeastOnce: a call is measured where there is no time for it, too: a model of no
// time at all would be the fastest.
func TestMeasureAtLeastOnce(t *testing.T) {
	k, _ := kernels.KernelByName("add")
	o := calls.OperandSpec{Type: dag.Float32, Mode: dag.ReadWrite, Shape: []int{1}}
	b := newBench(k.Default(), &calls.Spec{Op: "add", Type: dag.Float32, Operands: []calls.OperandSpec{o, o}}, nil, 0, 0)
	if times := b.measure(t.Context(), 0, 1); len(times) != 1 {
		t.Errorf("%d times, want one", len(times))
	}
}

// TestFarBytes: with a third level of 8,000,000 bytes, operands of 12,000,000 exceed all
// caches, of one unit or of four that are busy together; 4096 sets of calls of 2930 bytes reach them (12,001,280), of 2929 do not
// (11,997,184). Nothing is far where that is not asked for.
func TestFarBytes(t *testing.T) {
	p := machine(t, 1)
	p.Devices[0].L3Bytes = 8_000_000
	c := &calibrator{platform: p, cpu: &p.Devices[0], opt: Options{Far: true}}
	bytes := func(n int) *calls.Spec {
		return &calls.Spec{Operands: []calls.OperandSpec{{Type: dag.Uint8, Shape: []int{n}}}}
	}
	for active, want := range map[int]int64{1: 12_000_000, 4: 3_000_000} {
		if got := c.farBytes(bytes(2930), active); got != want {
			t.Errorf("far is %d bytes with %d units busy", got, active)
		}
	}
	if got := c.farBytes(bytes(2929), 1); got != 0 {
		t.Errorf("too small a call is far with %d bytes", got)
	}
	c.opt.Far = false
	if got := c.farBytes(bytes(2930), 1); got != 0 {
		t.Errorf("far without being asked: %d bytes", got)
	}
}
