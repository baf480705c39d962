package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
)

// TestEpochs: 29 samples in batches of 5 are 6 steps, the last of 4 samples, and 6 more of the evaluation on as many. Epochs are alike, so that
// each adds the same time and joules. An executed training is predicted to take what simulate and plan say of it, whatever chose the plan.
func TestEpochs(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	const training = " --platform emulated --devices cpu:1 --model tiny.toml --data synthetic:1x8x8:29:10 --batch 5 --lowering default --out r --epochs "
	run := func(command string) *record.Summary {
		t.Helper()
		out := mustRun(t, strings.Fields(command)...)
		if simulated := !strings.HasPrefix(command, "execute"); simulated {
			must.Contain(t, out, " of 6 steps and 6 of evaluation: ")
		}
		return must.Get(cli.ReadJSON[record.Summary](filepath.Join("r", record.SummaryFile)))(t)
	}
	one, two, three := run("simulate"+training+"1"), run("simulate"+training+"2"), run("simulate"+training+"3")
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*b }
	if !near(two.MakespanS, 2*one.MakespanS) || !near(three.MakespanS, 3*one.MakespanS) || !near(two.EnergyJ.Total, 2*one.EnergyJ.Total) || two.Steps != 12 {
		t.Errorf("epochs take %v, %v and %v s, and %v and %v J in %d steps", one.MakespanS, two.MakespanS, three.MakespanS, one.EnergyJ.Total, two.EnergyJ.Total, two.Steps)
	}
	executed := run("execute" + training + "2").Trained
	planned := run("plan --objective time --budget 50nodes" + training + "2")
	if executed.PredictedS != two.MakespanS || executed.PredictedJoules != two.EnergyJ.Total {
		t.Errorf("execute predicts %v s and %v J; simulate %v s and %v J", executed.PredictedS, executed.PredictedJoules, two.MakespanS, two.EnergyJ.Total)
	}
	must.Do(t, os.Rename("r", "planned"))
	mustRun(t, strings.Fields("plan --objective energy --plan planned/plan.json"+training+"2")...)
	if again := run("simulate --plan planned/plan.json" + training + "2"); again.MakespanS != planned.MakespanS {
		t.Errorf("the plan takes %v s, and replayed %v", planned.MakespanS, again.MakespanS)
	}
}
