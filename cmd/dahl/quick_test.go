package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/platform"
	"dahl/rundir"
)

// TestBestPolicy: without a policy a run has the devices on which it is fastest: one of the server's GPUs for
// the mlp, since copies to other devices cost more than these save. The run says so, repeats, and is that of --plan
// and of --devices.
func TestBestPolicy(t *testing.T) {
	t.Chdir(t.TempDir())
	simulate := func(dir string, more ...string) (s summary) {
		decodeObject(t, mustRun(t, slices.Concat([]string{"simulate", "--platform", "server", "--model", "mlp", "--json", "--out", dir}, more)...), &s)
		return s
	}
	best, all := simulate("best"), simulate("all", "--policy", "heft")
	if best.Chosen == nil || best.Chosen.Devices != "gpu0" || best.Chosen.Of != "cpu0:36,cpu1:36,gpu0,gpu1,gpu2,gpu3" {
		t.Fatalf("chosen devices %+v, want gpu0", best.Chosen)
	}
	// The plan on all is estimated by 12 steps; the other run has 10.
	if times := all.StepS / best.StepS; math.Abs(best.Chosen.TimesAsFast/times-1) > 0.05 || times < 2 {
		t.Errorf("%g times as fast as all, and the runs differ by %g", best.Chosen.TimesAsFast, times)
	}
	for _, devices := range []string{"cpu0", "cpu", "gpu", "gpu0", "cpu0:4,gpu0"} {
		if other := simulate("other", "--policy", "heft", "--devices", devices); other.StepS < best.StepS {
			t.Errorf("a step takes %g s, and by HEFT on %s %g s", best.StepS, devices, other.StepS)
		}
	}
	m, err := readManifest("best")
	if err != nil || m.Chosen == nil || *m.Chosen != *best.Chosen || m.Options.Policy != bestPolicy {
		t.Errorf("the manifest has %+v, %v; the summary %+v", m.Chosen, err, best.Chosen)
	}
	wantVerified(t, "best")
	if out := mustRun(t, "rerun", "best"); strings.Contains(out, "DIFFERENT") {
		t.Errorf("rerun:\n%s", out)
	}
	simulate("replayed", "--plan", "best/plan.json")
	sameFiles(t, rundir.ScheduleFile, "best", "replayed")
	simulate("fenced", "--devices", "gpu0")
	sameFiles(t, rundir.ScheduleFile, "best", "fenced")
	if fenced := simulate("fenced", "--devices", "cpu"); fenced.Chosen == nil || strings.Contains(fenced.Chosen.Devices, "gpu") {
		t.Errorf("within --devices cpu it chose %+v", fenced.Chosen)
	}
	out := mustRun(t, "simulate", "--platform", "server", "--model", "mlp", "--out", "best")
	if !strings.Contains(out, "\ndevices   gpu0 of cpu0:36, cpu1:36, gpu0…: ") || !strings.Contains(out, "policy best (") {
		t.Errorf("simulate does not name the devices:\n%s", out)
	}
}

// TestBestPolicyExecuted: a training opens the chosen devices alone and repeats. Where their lowering is that of all
// devices, the weights are those of any other policy. A copy takes
// longer than all of a step on the processor.
func TestBestPolicyExecuted(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", strings.Replace(emulatedNode, `latency = "5 us"`, `latency = "5 ms"`, 1))
	train := func(dir string, more ...string) (s summary) {
		decodeObject(t, mustRun(t, slices.Concat([]string{"execute", "--platform", "node.toml", "--model", "digits-cnn", "--limit", "128", "--batch", "64", "--json", "--out", dir}, more)...), &s)
		return s
	}
	s := train("best")
	if s.Chosen == nil || s.Chosen.Devices != "cpu" || s.Transfers != 0 || len(s.LivePeakBytes) != 2 {
		t.Errorf("on %+v with %d transfers, want the processor alone", s.Chosen, s.Transfers)
	}
	run := mustLoad(t, "best")
	if slices.ContainsFunc(run.Problem.Platform.Workers, func(w platform.Worker) bool { return strings.HasPrefix(w.Name, "g0") }) {
		t.Errorf("the run has the workers %+v", run.Problem.Platform.Workers)
	}
	wantVerified(t, "best")
	if out := mustRun(t, "rerun", "best"); strings.Contains(out, "DIFFERENT") {
		t.Errorf("rerun:\n%s", out)
	}
	for _, other := range []summary{train("heft", "--devices", "cpu", "--policy", "heft"), train("eager", "--devices", "cpu", "--policy", "eager")} {
		if other.Trained.WeightsSHA256 != s.Trained.WeightsSHA256 {
			t.Errorf("policy %s: weights %s, the chosen devices give %s", other.Policy, other.Trained.WeightsSHA256, s.Trained.WeightsSHA256)
		}
	}
}

// TestBestPolicyOfADetectedMachine: its rates are guesses, so that all cores are used.
func TestBestPolicyOfADetectedMachine(t *testing.T) {
	t.Chdir(t.TempDir())
	mustRun(t, "execute", "--model", "digits-cnn", "--limit", "64", "--batch", "64", "--out", "e")
	m, err := readManifest("e")
	if err != nil || m.Chosen != nil || m.Options.Policy != listPolicy {
		t.Errorf("chosen devices %+v, policy %s, %v; want all, by %s", m.Chosen, m.Options.Policy, err, listPolicy)
	}
}

// TestBestPolicyOfManyTasks: above the limit a graph is planned for all devices, and the output says so.
func TestBestPolicyOfManyTasks(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", emulatedNode)
	for _, n := range []int{20, bestTasks + 1} {
		var tasks []string
		for i := range n {
			tasks = append(tasks, fmt.Sprintf(`{"name": "t%d", "ns": {"cpu": 1000, "g0": 1000}}`, i))
		}
		writeTestFile(t, "wide.json", `{"format": "dahl-graph 1", "tasks": [`+strings.Join(tasks, ",\n")+`]}`)
		out := mustRun(t, "simulate", "--platform", "node.toml", "--graph", "wide.json", "--out", "s")
		want := fmt.Sprintf("devices   all, by heft: a step has %d tasks, and sets of devices are compared up to %d", n, bestTasks)
		if strings.Contains(out, want) != (n > bestTasks) {
			t.Errorf("%d tasks:\n%s", n, out)
		}
		if _, err := os.Stat(filepath.Join("s", machineFile)); err == nil {
			t.Errorf("%d tasks: both devices are used, and %s is written", n, machineFile)
		}
	}
}
