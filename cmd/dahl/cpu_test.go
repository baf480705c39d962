package main

import (
	"os"
	"os/exec"
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/rundir"
)

// otherCPU tells the test's own process that it is the one with fewer features.
const otherCPU = "DAHL_TEST_OTHER_CPU"

// TestPredictionOnOtherCPU: a prediction has the same bytes on machines with other
// vector instructions. Convolutions need another workspace with them.
func TestPredictionOnOtherCPU(t *testing.T) {
	simulate := []string{"simulate", "--platform", "laptop", "--model", "lenet5", "--batch", "7", "--lowering", "cut.toml", "--steps", "3", "--out"}
	if dir := os.Getenv(otherCPU); dir != "" {
		mustRun(t, append(simulate, dir)...)
		return
	}
	t.Chdir(t.TempDir())
	writeTestFile(t, "cut.toml", "[default]\nsamples = 3\n")
	self := must.Get(os.Executable())(t)
	features := map[string]string{"all": "", "avx2": "cpu.avx512f=off", "none": "cpu.avx512f=off,cpu.avx2=off"}
	for dir, off := range features {
		cmd := exec.Command(self, "-test.run=^TestPredictionOnOtherCPU$")
		cmd.Env = append(os.Environ(), otherCPU+"="+dir, "GODEBUG="+off)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("GODEBUG=%s: %v\n%s", off, err, out)
		}
	}
	for _, dir := range []string{"avx2", "none"} {
		for _, name := range []string{rundir.PlanFile, rundir.ScheduleFile, rundir.EnergyFile, record.SummaryFile} {
			sameFiles(t, name, "all", dir)
		}
	}
}
