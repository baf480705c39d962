package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/schedule/place"
)

// rewritePlan changes a plan file.
func rewritePlan(t *testing.T, from, to string, change func(plan map[string]any)) {
	t.Helper()
	data := must.Get(os.ReadFile(from))(t)
	plan := map[string]any{}
	must.Do(t, json.Unmarshal(data, &plan))
	change(plan)
	data = must.Get(json.Marshal(plan))(t)
	writeTestFile(t, to, string(data))
}

// planTwoStages writes the files of a task on a core and one on a GPU that reads what it writes, with
// up to three copies of that, and plans the one without.
func planTwoStages(t *testing.T) {
	t.Helper()
	writeTestFile(t, "node.toml", emulatedNode)
	for n := range 4 {
		copies := fmt.Sprintf(`, "copies": %d`, n)
		if n == 0 {
			copies = ""
		}
		writeTestFile(t, fmt.Sprintf("x%d.json", n), `{"format": "dahl-graph 1", "buffers": [{"name": "x", "bytes": 8000`+copies+`}], "tasks": [
 {"name": "a", "writes": ["x"], "ns": {"cpu": 10000000}}, {"name": "b", "reads": ["x"], "ns": {"g0": 10000000}}]}`)
	}
	mustRun(t, "plan", "--platform", "node.toml", "--graph", "x1.json", "--out", "p")
}

// withCounts is the plan of the two stages with copies of buffers, which leaves open where they lie.
func withCounts(t *testing.T, counts []place.PlannedVersions) {
	t.Helper()
	rewritePlan(t, "p/plan.json", "given.json", func(plan map[string]any) {
		plan["copies"] = counts
		delete(plan, "places")
		delete(plan, "arenas")
		delete(plan, "graph")
	})
}

// in is so many copies of x in a memory.
func in(memory string, n int) place.PlannedVersions {
	return place.PlannedVersions{Memory: memory, Buffer: "x", Versions: n}
}

// TestCopiesOfBuffersInFiles: a of 10 ms writes x in ram, and b of 10 ms on the GPU reads it, 8000 bytes,
// which take 5 us and 1 us to move. A step is 20.006 ms from end to end. With n copies of x in the
// memory that has most, step k+n begins when step k has ended: the period is 20.006/n ms, and no
// less than 10 ms. The graph file says n, or the plan, in place of it; both are kept in run
// directories, which verify and repeat.
func TestCopiesOfBuffersInFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	planTwoStages(t)
	if text, err := os.ReadFile("p/plan.json"); err != nil || strings.Contains(string(text), "\n  \"copies\"") {
		t.Errorf("a plan without copies of buffers: %s", text)
	}
	for _, c := range []struct {
		graph  string
		counts []place.PlannedVersions // nil: of the graph
		ms     float64
	}{
		{"x0.json", nil, 20.006},
		{"x1.json", nil, 20.006},
		{"x2.json", nil, 10.003},
		{"x3.json", nil, 10},
		{"x1.json", []place.PlannedVersions{in("ram", 2), in("own", 2)}, 10.003},
		{"x3.json", []place.PlannedVersions{}, 20.006},
		{"x3.json", []place.PlannedVersions{in("own", 2)}, 10.006}, // a waits for the copy before, 6 us
	} {
		line := strings.Fields("simulate --platform node.toml --steps 21 --out s --json --graph " + c.graph)
		if c.counts != nil {
			withCounts(t, c.counts)
			line = append(line, "--plan", "given.json")
		}
		s := decoded[record.Summary](t, mustRun(t, line...))
		if math.Abs(s.Shown.SteadyStepS*1e3-c.ms) > 1e-6 {
			t.Errorf("%s, %v: a period of %g ms, want %g", c.graph, c.counts, s.Shown.SteadyStepS*1e3, c.ms)
		}
		wantVerified(t, "s")
		wantRepeated(t, "s")
		mustRun(t, strings.Fields("simulate --platform node.toml --steps 21 --out again --plan s/plan.json --graph "+c.graph)...)
		sameFiles(t, "plan.json", "s", "again")
		sameFiles(t, "schedule.json", "s", "again")
	}
	mustRun(t, "graph", "--graph", "x3.json", "--export", "y.json")
	if text, err := os.ReadFile("y.json"); err != nil || !strings.Contains(string(text), `"copies":3`) {
		t.Errorf("exported as %s", text)
	}
}
