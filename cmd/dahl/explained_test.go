package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/words"
	"dahl/must"
	"dahl/plan/best"
)

// TestExplainedRun: what plan prints is what it writes as JSON, and where nothing is drawn it says why.
func TestExplainedRun(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "m.toml", fmt.Sprintf(spreadMachine, "run_spread = 0.05\n"))
	writeTestFile(t, "flat.toml", fmt.Sprintf(spreadMachine, ""))
	run := func(file string, more ...string) string {
		return mustRun(t, append([]string{"plan", "--platform", file, "--model", "mlp", "--batch", "16", "--objective", "energy", "--budget", "2000", "--out", "p"}, more...)...)
	}
	text := strings.Join(strings.Fields(run("m.toml")), " ") // of lines that break anywhere
	var s struct {
		best.Explanation
		StepJ float64 `json:"steady_step_j"`
	}
	must.Do(t, json.Unmarshal([]byte(run("m.toml", "--json")), &s))
	f, w := &s.Chosen.Figures, &s.Chosen.Why
	if sum := w.BaseJ + w.LeftOutJ + w.IdleJ + w.BusyJ + w.TransferJ + w.StatesJ; f.StepJ != s.StepJ || sum < 0.999999*f.StepJ || sum > 1.000001*f.StepJ {
		t.Errorf("a step takes %v J, in the explanation %v J with parts of %v J", s.StepJ, f.StepJ, sum)
	}
	tasks := 0
	for _, u := range s.Chosen.Use {
		tasks += u.Tasks
	}
	if s.Spread.Chosen == nil || (s.Next == nil) == strings.Contains(text, " next ") {
		t.Fatalf("spread %+v, next %+v; printed\n%s", s.Spread, s.Next, text)
	}
	for _, want := range []string{
		"chosen " + words.Choice(s.Chosen.Devices, s.Chosen.Tiles, s.Chosen.Strategy), fmt.Sprintf("cpu: %d of the tasks on", tasks),
		fmt.Sprintf("why %s in %s", cli.ShortJoules(f.StepJ), cli.ShowTime(f.StepS)),
		"spread " + cli.ShortJoules(s.Spread.Chosen.Low) + " to " + cli.ShortJoules(s.Spread.Chosen.High),
	} {
		must.Contain(t, text, want)
	}
	if text := run("flat.toml"); !strings.Contains(text, "spread    not known: every duration of this run is one number") {
		t.Errorf("nothing is drawn:\n%s", text)
	}
	if text := mustRun(t, "plan", "--platform", "flat.toml", "--model", "mlp", "--batch", "16", "--out", "q"); strings.Contains(text, "chosen  ") || strings.Contains(text, "spread  ") {
		t.Errorf("without an objective:\n%s", text)
	}
}
