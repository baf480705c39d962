package main

import (
	"strings"
	"testing"

	"dahl/must"
	"dahl/platform"
	"dahl/train/peer"
)

// 0.002 J per sample against 0.005 J: PyTorch draws 2.5 times as much. Its meter may be off by
// 0.001 J, a fifth. Rows without a
// meter have no line, and without any there is no table.
func TestPrintEnergy(t *testing.T) {
	rows := []peerRow{{Model: "mlp", Batch: 64}}
	var b strings.Builder
	if printEnergy(&b, rows); b.Len() > 0 {
		t.Errorf("a table without a meter:\n%s", b.String())
	}
	gpu := peerUnit{Device: platform.CUDA, Threads: 1, Precision: precisionFloat32}
	rows = append(rows, peerRow{Model: "lenet5", Batch: 64, peerUnit: gpu, Mode: peer.ModeTrain, Energy: &peerEnergy{
		Contestants: []peerJoules{{Of: "dahl", PerSample: 0.002, AboveIdle: 0.001}, {Of: "eager: contiguous", PerSample: 0.005, AboveIdle: 0.003, ErrorPerSample: 0.001}},
		Meters:      []string{"gpu0 by NVML"}}})
	printEnergy(&b, rows)
	for _, want := range []string{"| lenet5 | 64 | GPU, float32 | dahl | 0.002 | 0.001 | 0 % | 0 % | 1.00 |", "| lenet5 | 64 | GPU, float32 | eager: contiguous | 0.005 | 0.003 | 0 % | 20 % | 2.50 |"} {
		must.Contain(t, b.String(), want)
	}
	if strings.Contains(b.String(), "mlp") {
		t.Errorf("a line without a meter:\n%s", b.String())
	}
}
