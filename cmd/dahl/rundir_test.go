package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/nn/npz"
	"dahl/rundir"
	"dahl/rundir/durable"
	"dahl/schedule/policy"
)

// tinyTraining is 2 steps.
const tinyTraining = "execute --model tiny.toml --data digits --limit 6 --batch 3 --workers 1 "

// wantRefused holds a command line to exit code 2 and one line that says why.
func wantRefused(t *testing.T, line, want string) {
	t.Helper()
	wantEnd(t, cli.ExitBadInput, line, want)
}

// wantEnd runs a command line that writes some texts and ends with an exit code; a failure is one line.
func wantEnd(t *testing.T, code int, line string, want ...string) result {
	t.Helper()
	r := dahl(t, t.Context(), strings.Fields(line)...)
	lacks := slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(r.stdout+r.stderr, text) })
	if r.code != code || code != cli.ExitOK && strings.Count(r.failure(), "\n") != 1 || lacks {
		t.Errorf("dahl %s: exit code %d, %s%s; want %d, %q", line, r.code, r.stdout, r.stderr, code, want)
	}
	return r
}

// wantRepeated repeats a run, which rerun finds equal.
func wantRepeated(t *testing.T, args ...string) {
	t.Helper()
	if out := mustRun(t, append([]string{"rerun"}, args...)...); strings.Contains(out, "DIFFERENT") {
		t.Errorf("rerun %s:\n%s", strings.Join(args, " "), out)
	}
}

func wantVerified(t *testing.T, dir string) {
	t.Helper()
	if out := mustRun(t, "verify", dir); strings.Count(out, "\n") != strings.Count(out, " ok\n") {
		t.Errorf("verify %s:\n%s", dir, out)
	}
}

// TestVerifySaysWhatGoesOn: a directory that is being written, one whose run was cut off, with
// a checkpoint and without, alone and over a complete run.
func TestVerifySaysWhatGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	for _, dir := range []string{"alone", "over"} {
		over := dir == "over"
		if over {
			mustRun(t, strings.Fields(tinyTraining+"--out "+dir)...)
		}
		for _, step := range []int{0, 7} {
			d := must.Get(rundir.Create(dir, &record.Manifest{Head: rundir.Head{Keep: true}, Command: "execute"}))(t)
			if step > 0 {
				must.Do(t, d.WriteCheckpoint(step, func(io.Writer) error { return nil }))
			}
			running := fmt.Sprintf("still running (process %d since 2", os.Getpid())
			wantState(t, dir, running, over)
			for _, line := range []string{tinyTraining + "--out " + dir, "simulate --platform laptop --model tiny.toml --out " + dir} {
				wantRefused(t, line, fmt.Sprintf("%s: it is in use by process %d since 2", dir, os.Getpid()))
			}
			if over {
				wantRefused(t, "trace over", "it is in use by process")
			}
			d.Close()
			if step == 0 {
				wantState(t, dir, "interrupted, nothing to resume", over)
				continue
			}
			wantState(t, dir, "interrupted after step 7, resume with dahl execute --resume "+dir, over)
			wantRefused(t, tinyTraining+"--out "+dir, "holds a training that was interrupted after step 7: go on with dahl execute --resume "+dir+", or remove "+dir+"/.staging")
		}
		must.Do(t, os.RemoveAll(filepath.Join(dir, ".staging")))
		mustRun(t, strings.Fields(tinyTraining+"--out "+dir)...)
		wantVerified(t, dir)
	}
}

// TestVerifyPoliciesAtRunTime: a run by a policy that decides at run time follows no order of memory that a plan of the same
// tasks would need. On two memories such a plan was followed in some runs and not in others.
func TestVerifyPoliciesAtRunTime(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "net.toml", `
name = "net"
input = [1, 8, 8]
[[layer]]
kind = "conv2d"
filters = 3
kernel = 3
pad = 1
[[layer]]
kind = "relu"
[[layer]]
kind = "conv2d"
filters = 5
kernel = 3
[[layer]]
kind = "flatten"
[[layer]]
kind = "dense"
outputs = 10
`)
	execute := func(out, devices, policy string) {
		mustRun(t, strings.Fields("execute --platform emulated --model net.toml --data synthetic:1x8x8:70:10 --batch 7 --epochs 2 --optimizer adam --out "+out+" --devices "+devices+" --policy "+policy)...)
	}
	execute("planned", "cpu:2,gpu", "heft")
	planned := must.Get(os.ReadFile("planned/" + rundir.PlanFile))(t)
	for _, online := range policy.All() {
		if !online.Doc().Online {
			continue
		}
		execute("run", "cpu:2", online.Doc().Name) // on one memory a plan also says where buffers lay
		wantVerified(t, "run")
		execute("run", "cpu:2,gpu", online.Doc().Name)
		wantVerified(t, "run")
		writeTestFile(t, "run/"+rundir.PlanFile, string(planned)) // which says where buffers lie in both
		wantEnd(t, cli.ExitFailed, "verify run", "damaged: "+rundir.PlanFile)
		must.Do(t, os.RemoveAll("run"))
	}
}

// wantState holds verify to a line about what goes on, beside the checks of a complete run or
// as its failure.
func wantState(t *testing.T, dir, want string, over bool) {
	t.Helper()
	r := dahl(t, t.Context(), "verify", dir)
	if over && (r.code != cli.ExitOK || !strings.Contains(r.stdout, want)) || !over && (r.code != cli.ExitFailed || !strings.Contains(r.stderr, want)) {
		t.Errorf("verify %s: exit code %d, %s%s; want %q", dir, r.code, r.stdout, r.stderr, want)
	}
}

// TestSave: weights never take the place of a file of a run, and links are followed.
func TestSave(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	for _, dir := range []string{"run", "other"} {
		mustRun(t, strings.Fields(tinyTraining+"--out "+dir)...)
	}
	must.Do(t, errors.Join(os.Symlink("other/weights.npz", "link.npz"), os.Symlink("elsewhere.npz", "away.npz")))
	for file, want := range map[string]string{
		"run/weights.npz": "lies in the directory of the run", "run/w.npz": "lies in the directory of the run", "./run/../run/w.npz": "lies in the directory of the run",
		"other/weights.npz": "which holds a run", "other/w.npz": "which holds a run", "link.npz": "which holds a run", "new/w.npz": "lies in the directory of the run",
	} {
		out := "run"
		if strings.HasPrefix(file, "new") {
			out = "new"
		}
		wantRefused(t, tinyTraining+"--out "+out+" --save "+file, want)
	}
	for _, line := range []string{"calibrate --out other/platform.toml", "graph --model mlp --export other/graph.json", "import two.stg --out other/graph.json"} {
		wantRefused(t, line, "which holds a run")
	}
	mustRun(t, strings.Fields(tinyTraining+"--out run --save away.npz")...)
	if info, err := os.Lstat("away.npz"); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	if a, err := npz.Read("elsewhere.npz", nil); err != nil || len(a) != 2 { // weight and bias
		t.Errorf("%d arrays, %v", len(a), err)
	}
	wantVerified(t, "run")
	wantVerified(t, "other")
}

// TestSaveWithoutRunDirectory: the disk of the run directory is full after the training, or the
// directory is gone. The weights are saved, and an earlier run is whole where it is still there.
func TestSaveWithoutRunDirectory(t *testing.T) {
	defer func() { durable.Fault = nil }()
	for what, fault := range map[string]func() error{
		"full": func() error { return errors.New("no space left on device") },
		"gone": func() error { return os.RemoveAll("run") },
	} {
		t.Chdir(t.TempDir())
		writeTestFile(t, "tiny.toml", tinyNetwork)
		mustRun(t, strings.Fields(tinyTraining+"--out run --seed 7")...)
		durable.Fault = func(op durable.Op, path string) error {
			if op != durable.OpRemove && filepath.Base(path) == record.StepsFile { // what a training writes first
				return fault()
			}
			return nil
		}
		wantEnd(t, cli.ExitFailed, tinyTraining+"--out run --save w.npz --seed 8", "run/.staging/steps.csv")
		durable.Fault = nil
		if a, err := npz.Read("w.npz", nil); err != nil || len(a) != 2 {
			t.Errorf("%s: %d arrays, %v", what, len(a), err)
		}
		if what == "full" {
			if r := dahl(t, t.Context(), "verify", "run"); r.code != cli.ExitOK || isSeed8(t) {
				t.Errorf("the earlier run: %s", r.stdout)
			}
		}
		mustRun(t, strings.Fields(tinyTraining+"--out run --seed 8")...)
		wantVerified(t, "run")
	}
}

// TestRerunNamesFiles: rerun compares what the manifest says, and names the files that are no longer what it says.
func TestRerunNamesFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	mustRun(t, strings.Fields(tinyTraining+"--out run")...)
	must.Do(t, os.Remove("run/"+record.WeightsFile))
	wantEnd(t, cli.ExitOK, "rerun run", "not those that its manifest lists", record.WeightsFile)
}

// TestInputsInTheirOutput: a run refuses to take the place of what it reads, the platform too: of
// that it would keep the devices that ran alone.
func TestInputsInTheirOutput(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	mustRun(t, strings.Fields(tinyTraining+"--out run")...)
	const simulate = "simulate --platform laptop --model tiny.toml --out run "
	mustRun(t, strings.Fields("plan --platform laptop --model tiny.toml --out p")...)
	for _, line := range []string{tinyTraining + "--out run --init run/weights.npz", tinyTraining + "--out run --plan run/plan.json", tinyTraining + "--out run --init p/../run/weights.npz",
		tinyTraining + "--out run --platform run/platform.toml"} {
		wantRefused(t, line, "lies in the directory that it replaces")
	}
	wantRefused(t, "simulate --platform laptop --graph p/graph.json --out p", "p/graph.json is read by this run")
	wantVerified(t, "run")
	wantRepeated(t, "run")
	mustRun(t, strings.Fields(simulate)...)
	wantVerified(t, "run")
}

// TestRunThatEndedEarly leaves a complete run alone: it can be read where it was written, until
// the next run begins.
func TestRunThatEndedEarly(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	const diverging = tinyTraining + "--init uniform:1e37:2e37 "
	for _, over := range []bool{false, true} {
		if over {
			mustRun(t, strings.Fields(tinyTraining+"--out run")...)
		}
		want := map[bool]string{false: "what was done is in run\n", true: "what was done is in run/.staging, since run keeps the complete run before it\n"}[over]
		wantEnd(t, cli.ExitFailed, diverging+"--out run", want)
		if over {
			wantVerified(t, "run/.staging")
			mustRun(t, "compare", "run/.staging")
			wantState(t, "run", "interrupted, nothing to resume", true)
			mustRun(t, strings.Fields(tinyTraining+"--out run")...)
		}
		wantVerified(t, "run")
	}
}

// TestAddedToAPart: figures of the part of a run after a loss are files of both.
func TestAddedToAPart(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", faultyNode(`{ after = 40, kind = "lost" }`))
	m, _ := trainedOn(t, "e", "--continue-on-loss")
	part := filepath.Join("e", m.Losses[0].Run)
	mustRun(t, "trace", part)
	mustRun(t, "plot", part, "gantt", "--format", "pdf")
	for _, dir := range []string{"e", part} {
		wantVerified(t, dir)
	}
	if m, err := record.ReadManifest("e"); err != nil || !m.Lists(m.Losses[0].Run+"/trace.json") || !m.Lists(m.Losses[0].Run+"/gantt.pdf") {
		t.Errorf("the whole run lists %v (%v)", m.Files, err)
	}
	wantRefused(t, "simulate --platform laptop --model mlp --out "+part, "which holds a run")
	writeTestFile(t, "node.toml", faultyNode())
	trainedOn(t, "e") // a run without parts takes its place
	if there(part) {
		t.Error("the part is still there")
	}
	wantVerified(t, "e")
}

// TestChangedFilesAreNamed: who reads a run of which a table or description was changed is told which, whatever the change
// means. Here it is a blank at the end.
func TestChangedFilesAreNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	mustRun(t, append(strings.Fields(tinyTraining), "--out", "run")...)
	for _, name := range []string{rundir.EnergyFile, rundir.ScheduleFile, record.SummaryFile, record.StepsFile, rundir.PlatformFile} {
		path := filepath.Join("run", name)
		was := must.Get(os.ReadFile(path))(t)
		for _, line := range []string{"compare run", "kernels run", "plot run gantt", "report run --out page.html", "trace run"} {
			must.Do(t, os.WriteFile(path, was, 0o666))
			if r := dahl(t, t.Context(), strings.Fields(line)...); r.code != cli.ExitOK || strings.Contains(r.stderr, "not as it was written") {
				t.Fatalf("%s, unchanged: exit code %d, %s", line, r.code, r.stderr)
			}
			must.Do(t, os.WriteFile(path, append(slices.Clone(was), ' '), 0o666))
			r := dahl(t, t.Context(), strings.Fields(line)...)
			if want := `level=WARN msg="a file of the run is not as it was written; dahl verify says more" file=` + path + "\n"; !strings.Contains(r.stderr, want) {
				t.Errorf("%s after a change of %s: exit code %d, %q", line, path, r.code, r.stderr)
			}
		}
		must.Do(t, os.WriteFile(path, was, 0o666))
	}
}

// TestPlanChecksDirectoryFirst: a directory that is no run is refused before anything else is looked at, so that no plan of hours is lost.
func TestPlanChecksDirectoryFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.Mkdir("mine", 0o777))
	must.Do(t, os.WriteFile("mine/letter.txt", nil, 0o666))
	for _, command := range []string{"plan --objective energy --budget 1h", "simulate"} {
		wantRefused(t, command+" --platform missing.toml --model lenet5 --out mine", "mine is not empty and not a run of dahl")
	}
}
