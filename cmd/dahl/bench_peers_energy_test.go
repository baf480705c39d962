package main

import (
	"strings"
	"testing"

	"dahl/energy"
)

// Two meters over the same 5 s: 30 J and 70 J are 100 J, their errors 1 J and 2 J add up.
func TestWindow(t *testing.T) {
	var w window
	w.add(energy.Reading{Of: "processors", Meter: "RAPL", Joules: 30, ErrorJoules: 1, Seconds: 5})
	w.add(energy.Reading{Of: "gpu0", Meter: "NVML energy counter", Joules: 70, ErrorJoules: 2, Seconds: 4.9})
	if w.joules != 100 || w.errorJoules != 3 || w.seconds != 5 || len(w.meters) != 2 {
		t.Errorf("%+v; want 100 ± 3 J over 5 s by two meters", w)
	}
	if got := medianOf([]float64{7, 2, 5, 3, 11}); got != 5 {
		t.Errorf("median %v; want 5", got)
	}
}

// 0.002 J per image against 0.005 J: PyTorch draws 2.5 times as much. Rows without a
// meter have no line, and without any there is no table.
func TestPrintEnergy(t *testing.T) {
	rows := []peerRow{{Model: "mlp", Batch: 64}}
	var b strings.Builder
	if printEnergy(&b, rows); b.Len() > 0 {
		t.Errorf("a table without a meter:\n%s", b.String())
	}
	gpu := peerUnit{Device: deviceCUDA, Threads: 1, Precision: precisionFloat32}
	rows = append(rows, peerRow{Model: "lenet5", Batch: 64, peerUnit: gpu, Mode: modeTrain, Energy: &peerEnergy{
		Ours: peerJoules{PerImage: 0.002, AboveIdle: 0.001}, Torch: peerJoules{PerImage: 0.005, AboveIdle: 0.003}, Meters: []string{"gpu0 by NVML"}}})
	printEnergy(&b, rows)
	if got := b.String(); !strings.Contains(got, "| lenet5 | 64 | GPU, float32 | train | 0.002 (0.001) |") || !strings.Contains(got, "| 2.50 |") ||
		strings.Contains(got, "mlp") {
		t.Errorf("the table:\n%s", got)
	}
}
