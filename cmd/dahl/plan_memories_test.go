package main

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/plan"
	"dahl/platforms"
	"dahl/rundir"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/place"
)

// littleMemory is the platform "emulated" with one core and a GPU whose memory does not
// hold all that a step leaves there.
func littleMemory(t *testing.T) {
	t.Helper()
	source := must.Get(platforms.Open("emulated"))(t)
	little := strings.NewReplacer(`"64 MB"`, `"1 MB"`, "count = 2", "count = 1", `["6 W", "10 W"]`, `"6 W"`).Replace(string(source))
	writeTestFile(t, "little.toml", little)
}

// TestPlanOfSeveralMemories: a plan says where everything lies and what moves, evictions
// and what comes back included. It is predicted for a training step alone, predicted again
// and executed with all graphs of a training; each time tasks and copies run in its order,
// with its bytes. The run repeats.
func TestPlanOfSeveralMemories(t *testing.T) {
	t.Chdir(t.TempDir())
	littleMemory(t)
	network := []string{"--platform", "little.toml", "--model", "digits-cnn", "--batch", "32", "--limit", "64"}
	do := func(command, dir string, more ...string) {
		t.Helper()
		mustRun(t, slices.Concat([]string{command, "--out", dir}, network, more)...)
	}
	out := mustRun(t, slices.Concat([]string{"plan", "--policy", "heft", "--out", "p"}, network)...)
	must.Contain(t, out, "vram in 0", "vram out 0", " prefetch", " reload", " evict")
	do("simulate", "s", "--plan", "p/plan.json")
	sameFiles(t, rundir.PlanFile, "p", "s")
	sameFiles(t, rundir.ScheduleFile, "p", "s")
	do("execute", "e", "--plan", "p/plan.json", "--epochs", "2")

	planned, ran := mustLoad(t, "p"), mustLoad(t, "e")
	a, b := *planned.Decision.PlanOf(0, nil), *ran.Decision.PlanOf(0, nil)
	a.Variants, a.Arenas = b.Variants, b.Arenas // the GPU's workspace is that of all graphs
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the plan of the run is not the one that it was given")
	}
	reasons := map[place.Reason]int{}
	for _, engine := range a.Transfers {
		for _, c := range engine.Transfers {
			reasons[c.Reason]++
		}
	}
	if reasons[place.ReasonPrefetch] == 0 || reasons[place.ReasonEvict] == 0 || reasons[place.ReasonReload] == 0 || a.Spill == nil {
		t.Errorf("copies by reason %v, spills %v: the test tests little", reasons, a.Spill)
	}
	if ran.Schedule.World != schedule.Measured {
		t.Errorf("the run is %s", ran.Schedule.World)
	}
	if err := audit.FollowsTransfers(ran.Schedule, ran.Decision.Placed, 0); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"p", "s", "e"} {
		if out := mustRun(t, "verify", dir); strings.Count(out, "\n") != strings.Count(out, " ok\n") || !strings.Contains(out, "layout of vram") {
			t.Errorf("verify %s:\n%s", dir, out)
		}
	}
	if out := mustRun(t, "rerun", "e"); strings.Contains(out, "DIFFERENT") || !strings.Contains(out, "plan.json            same") {
		t.Errorf("rerun:\n%s", out)
	}
	testCompareCopies(t)
	testPlansRefused(t, network)
}

func mustLoad(t *testing.T, dir string) *record.LoadedRun {
	t.Helper()
	return must.Get(record.LoadRun(dir))(t)
}

// testCompareCopies lays the measured copies of the run e beside those predicted in p: as
// many of as many bytes per step, and all are named. The prediction has 10 steps and the
// run 2; what moves for the step after the last counts too, in both.
func testCompareCopies(t *testing.T) {
	c := decoded[plan.Comparison](t, mustRun(t, "compare", "p", "e", "--json"))
	if len(c.Ways) != 2 || c.CopyErrorPercent == nil || len(c.Copies) == 0 {
		t.Fatalf("ways %+v, %d kinds of copies", c.Ways, len(c.Copies))
	}
	near := func(p plan.Pair) bool { return p.Measured > 0 && p.ErrorPercent < 1e-9 && p.ErrorPercent > -1e-9 }
	for _, way := range c.Ways {
		if !near(way.Count) || !near(way.Bytes) || way.Busy.Measured <= 0 {
			t.Errorf("from %s to %s: %+v", way.From, way.To, way)
		}
	}
	for _, k := range c.Copies {
		if k.Bytes <= 0 || k.Reason == "" || k.Median.Predicted <= 0 || k.Median.Measured <= 0 {
			t.Errorf("copies %+v", k)
		}
	}
	if out := mustRun(t, "compare", "e"); !strings.Contains(out, "reload") || !strings.Contains(out, "@vram from ram") {
		t.Errorf("what came back is not in\n%s", out)
	}
}

// testPlansRefused changes the plan in p so that it contradicts itself or the platform.
func testPlansRefused(t *testing.T, network []string) {
	data := must.Get(os.ReadFile("p/" + rundir.PlanFile))(t)
	for _, c := range []struct{ what, old, with, want string }{
		{"other bytes", `"bytes":16}`, `"bytes":17}`, "needs 16 bytes"},
		{"a copy for another task", `"reason":"reload"`, `"reason":"prefetch"`, "needs"},
		{"an unknown engine", `"vram in 0"`, `"vram in 1"`, "does not have"},
		{"a place in another memory", `{"memory":"vram","buffer"`, `{"memory":"ram","buffer"`, "does not need"},
		{"a task before what it needs", `"order":["feed"`, `"order":["mean"`, "order of tasks"},
		{"a worker without its tasks", `"gpu": [`, `"gpu.7": [`, "no worker"},
	} {
		if !strings.Contains(string(data), c.old) {
			t.Errorf("%s: the plan does not hold %s", c.what, c.old)
			continue
		}
		writeTestFile(t, "bad.json", strings.Replace(string(data), c.old, c.with, 1))
		for _, command := range []string{"simulate", "execute"} {
			wantRefused(t, command+" --plan bad.json --out bad "+strings.Join(network, " "), c.want)
		}
	}
	wantRefused(t, "simulate --plan p/plan.json --devices cpu --out bad "+strings.Join(network, " "), "")
}
