package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/rundir"
)

// TestClockedPlan: two tasks, one after the other, take 20 ns and 200 nJ each at the first clock, or 40 ns and 40 nJ. An idle core draws 1 W. Alone, a
// step of both at the first clock takes 440 nJ in 40 ns; with one slow task 300 nJ in 60 ns, and with two 160 nJ in 80 ns. Their core and their order
// are those of the file.
func TestClockedPlan(t *testing.T) {
	t.Chdir(t.TempDir())
	for file, text := range map[string]string{
		"machine.toml": `name = "clocked"
[[memory]]
name = "ram"
[[device]]
name = "cpu"
kind = "cpu"
memory = "ram"
clock_name = "base"
power = { idle = "1 W", busy = "11 W", source = "guess" }
[[device.clock]]
name = "slow"
scale = 0.5
power = { idle = "1 W", busy = "2 W" }
`,
		"graph.json": `{"format": "dahl-graph 1", "name": "two", "buffers": [],
"tasks": [{"name": "a", "op": "x", "ns": {"cpu": 20, "cpu@slow": 40}}, {"name": "b", "op": "x", "ns": {"cpu": 20, "cpu@slow": 40}}]}`,
		"order.json": `{"format": "dahl-plan 1", "devices": {"cpu": ["b", "a"]}}`,
	} {
		writeTestFile(t, file, text)
	}
	line := func(deadline string) []string {
		return strings.Fields("plan --platform machine.toml --graph graph.json --plan order.json --objective energy --steps 1 --out p --deadline " + deadline)
	}
	said := mustRun(t, line("70ns")...)
	must.Contain(t, strings.Join(strings.Fields(said), " "), "proven: of these tasks where they are, in their order, at any clocks no plan has less")
	s := must.Get(cli.ReadJSON[record.Summary](filepath.Join("p", record.SummaryFile)))(t)
	if want := 300e-9; s.MakespanS != 60e-9 || s.LowerBoundJ == nil || *s.LowerBoundJ > want*(1+1e-9) || *s.LowerBoundJ < want*(1-1e-6) {
		t.Errorf("the summary says %+v", s.ObjectiveSummary)
	}
	plan := must.Get(cli.ReadJSON[struct {
		Devices map[string][]string
		Clocks  map[string]string
	}](filepath.Join("p", rundir.PlanFile)))(t)
	if want := []string{"b", "a"}; !slices.Equal(plan.Devices["cpu"], want) || len(plan.Clocks) != 2 || plan.Clocks["a"] == plan.Clocks["b"] {
		t.Errorf("the plan is %+v", plan)
	}
	text := string(must.Get(os.ReadFile(filepath.Join("p", record.FrontFile)))(t))
	if front := must.Get(record.ReadFront(strings.NewReader(text), record.FrontFile))(t); len(front) < 3 {
		t.Errorf("the front is %v", front)
	}
	mustRun(t, "verify", "p")
	mustRun(t, "rerun", "p")
	if r := dahl(t, t.Context(), line("39ns")...); r.code != cli.ExitBadInput || !strings.Contains(r.failure(), "one takes 40 ns") {
		t.Errorf("exit code %d: %s", r.code, r.failure())
	}
}
