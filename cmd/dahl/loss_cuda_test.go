//go:build cuda

package main

import (
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/execute/hardware"
)

// tinyModel is a network small enough for the test driver, with state of its optimiser.
const tinyModel = `name = "tiny"
input = [13]
[[layer]]
kind = "dense"
outputs = 17
[[layer]]
kind = "relu"
[[layer]]
kind = "dense"
outputs = 10
[train]
lr = 0.1
momentum = 0.9
`

// TestContinueOnCUDALoss lets the test driver lose one of its two GPUs at the 25th launch,
// in its second step. The training goes on with the other, to the weights of one without a fault:
// whatever runs on a GPU runs the same kernels on either.
func TestContinueOnCUDALoss(t *testing.T) {
	gpus, err := hardware.GPUs()
	if err != nil {
		t.Skip(err)
	}
	if len(gpus) < 2 || !strings.HasPrefix(gpus[0].Name, "Test device") {
		t.Skip("only the test driver loses a device on demand")
	}
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyModel)
	line := strings.Fields("execute --devices gpu --model tiny.toml --data synthetic:1x1x13:20:10 --batch 8 --out e")
	var whole, cut record.Summary
	decodeObject(t, mustRun(t, append(line, "--json")...), &whole)
	t.Setenv("DAHL_TESTDRIVER_LOSE", "0:25")
	decodeObject(t, mustRun(t, append(line, "--json", "--continue-on-loss")...), &cut)
	if len(cut.Losses) != 1 {
		t.Fatalf("losses %+v, want one", cut.Losses)
	}
	if l := cut.Losses[0]; l.Device != "gpu0" || l.Task == "" || !strings.Contains(l.Cause, "CUDA_ERROR_ECC_UNCORRECTABLE") || !strings.HasSuffix(l.Devices, "gpu1") {
		t.Errorf("loss %+v", l)
	}
	if cut.Trained.WeightsSHA256 != whole.Trained.WeightsSHA256 {
		t.Errorf("weights %.12s, without a fault %.12s", cut.Trained.WeightsSHA256, whole.Trained.WeightsSHA256)
	}
	wantEnd(t, cli.ExitFailed, strings.Join(line, " "), `on device "gpu0", issued and not done: `)
}
