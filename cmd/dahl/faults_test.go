package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/cmd/grid"
	"dahl/execute/calibrate"
	"dahl/must"
	"dahl/nn"
	"dahl/platform"
	"dahl/rundir/durable"
	"dahl/train"
)

// tinyNetwork has few calls, so that a command takes little else than writing its files.
const tinyNetwork = `
name = "tiny"
input = [1, 8, 8]
[[layer]]
kind = "flatten"
[[layer]]
kind = "dense"
outputs = 10
`

// writers are commands that write, in a directory with an earlier run of seed 7, a platform
// file and a model. They search for nothing, which takes longer than to write.
var writers = []struct {
	line  string
	wrote func(t *testing.T) bool // whether it did what it was asked for
	again bool                    // run without a fault after each, unless it did it
	part  int                     // every so many operations only, where time is short; 0: all
}{
	{"simulate --platform laptop --model tiny.toml --batch 3 --steps 2 --policy heft --seed 8 --out run", isSeed8, true, 7},
	{"plan --platform laptop --model tiny.toml --batch 3 --steps 2 --policy heft --seed 8 --out run", isSeed8, false, 9},
	{"execute --model tiny.toml --data digits --limit 6 --batch 3 --workers 1 --seed 8 --save w.npz --checkpoint every=1steps --out run", isSeed8, false, 7},
	{"execute --resume cut", isResumed, true, 13},
	{"evaluate run --data synthetic:1x8x8:9:10 --out evaluated", func(t *testing.T) bool { return there("evaluated/" + record.PredictionsFile) }, true, 13},
	{"demo --out run", isSeed8, false, 41}, // which writes by what the lines above do
	{"calibrate --model tiny.toml --workers 1 --batch 4 --time 1ms --variant ref --out here.toml", func(*testing.T) bool { return true }, false, 7},
	{"plot run gantt memory --format pdf", inRun("gantt.pdf", "memory.pdf"), false, 3},
	{"trace run", inRun("trace.json"), true, 3},
	{"report run --out page.html", func(t *testing.T) bool { return there("page.html") }, true, 0},
	{"compare run --out run", inRun(record.CompareFile), true, 3},
	{"graph --model tiny.toml --export g.json", func(t *testing.T) bool { return there("g.json") }, true, 0},
	{"experiment run grid.toml --out grid", func(t *testing.T) bool { return there("grid/" + grid.TableFile) }, true, 9},
	{"man --out .", func(t *testing.T) bool { return there("dahl-verify.1") }, false, 9},
	{"import two.stg --out g.json", func(t *testing.T) bool { return there("g.json") }, true, 0},
}

func isSeed8(t *testing.T) bool {
	t.Helper()
	m := must.Get(record.ReadManifest("run"))(t)
	return m.Options.Seed == 8
}

// isResumed reports whether the training in cut has come to its end, and to its weights.
func isResumed(t *testing.T) bool {
	t.Helper()
	m, err := record.ReadManifest("cut")
	if err != nil {
		return false
	}
	if want := manifestOf(t, "uncut").WeightsHash; !m.Complete || m.WeightsHash != want {
		t.Errorf("complete %v, weights %.12s, want %.12s", m.Complete, m.WeightsHash, want)
	}
	return true
}

func inRun(names ...string) func(t *testing.T) bool {
	return func(t *testing.T) bool {
		t.Helper()
		m := must.Get(record.ReadManifest("run"))(t)
		for _, name := range names {
			if !m.Lists(name) {
				return false
			}
		}
		return true
	}
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestEveryFileOperationFails lets the n-th operation of each command fail, for every n. Where
// DAHL_SOAK is not set, long commands leave some out. The
// command says so in one line, or did what it was asked for all the same; the run in the
// directory is the earlier one whole or the new one whole; no temporary file is left; and the
// next command works.
func TestEveryFileOperationFails(t *testing.T) {
	defer func() { durable.Fault = nil }()
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	writeTestFile(t, "two.stg", "2\n0 1 0\n1 1 1 0\n")
	writeTestFile(t, "grid.toml", "name = \"grid\"\n[run]\ncommand = \"simulate\"\nplatform = \"laptop\"\nmodel = \"tiny.toml\"\nsteps = 2\npolicy = \"heft\"\n[grid]\nbatch = [3]\n")
	t.Setenv(asDahl, "1") // the cells of an experiment are processes of this program
	defer shortenDemo()()
	mustRun(t, strings.Fields("execute --model tiny.toml --data digits --limit 6 --batch 3 --workers 1 --seed 7 --out run")...)
	mustRun(t, strings.Fields("calibrate --model tiny.toml --workers 1 --batch 3 --time 1ms --variant ref --out here.toml")...)
	longer := strings.Fields(strings.Replace(tinyTraining, "--limit 6", "--limit 12", 1) + "--checkpoint every=1steps --out")
	mustRun(t, append(longer, "uncut")...)
	cutAfter(t, "2", append(longer, "cut")...)
	base := must.Get(os.Getwd())(t)
	for _, c := range writers {
		t.Run(strings.Join(strings.Fields(c.line)[:2], " "), func(t *testing.T) {
			step := max(1, c.part)
			if testing.Short() {
				step *= 21
			}
			if os.Getenv(soak) != "" {
				step = 1
			}
			for n := 1; ; n += step {
				work := t.TempDir()
				must.Do(t, os.CopyFS(work, os.DirFS(base)))
				t.Chdir(work)
				operations, failed := 0, ""
				durable.Fault = func(op durable.Op, path string) error {
					if operations++; operations == n {
						failed = string(op) + " " + path
						return errors.New("the disk is broken")
					}
					return nil
				}
				r := dahl(t, t.Context(), strings.Fields(c.line)...)
				durable.Fault = nil
				if operations < n {
					if r.code != cli.ExitOK {
						t.Errorf("without a fault: exit code %d, %s", r.code, r.stderr)
					}
					t.Logf("%d operations", operations)
					return
				}
				if r.code != cli.ExitOK && (strings.Count(r.failure(), "\n") != 1 || !strings.Contains(r.stderr, "the disk is broken")) || r.code == cli.ExitOK && !c.wrote(t) {
					t.Errorf("operation %d, %s: exit code %d, %q", n, failed, r.code, r.stderr)
				}
				checkWhole(t, failed)
				if c.again && !c.wrote(t) {
					mustRun(t, strings.Fields(c.line)...)
					checkWhole(t, failed)
				}
			}
		})
	}
}

// checkWhole verifies what lies in the directory after an operation failed.
func checkWhole(t *testing.T, failed string) {
	t.Helper()
	wantEnd(t, cli.ExitOK, "verify run")
	if there("evaluated/.commit") { // which whoever opens the run next ends
		wantEnd(t, cli.ExitOK, "verify evaluated")
	}
	if p, err := platform.Load("here.toml"); err != nil || p.Check() != nil {
		t.Errorf("%s: here.toml: %v", failed, err)
	}
	if there("g.json") {
		mustRun(t, "graph", "--graph", "g.json")
	}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		name := filepath.Base(path)
		switch {
		case name == ".staging", path == "cut": // whose commit is ended by whoever opens it next
			return fs.SkipDir
		case strings.HasPrefix(name, ".") && name != "." && name != ".lock" && !strings.HasPrefix(failed, "remove "):
			t.Errorf("%s: %s was left", failed, path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// shortenDemo lets the demo train once on 64 samples, without a search, on a machine that is measured for the
// first of all demos only. It returns what undoes that.
func shortenDemo() func() {
	whole := demoRun
	demoRun.Model, demoRun.Epochs, demoRun.Limit, demoRun.Seed, demoRun.Policy = "tiny.toml", 1, 64, 8, flags.ListPolicy
	var first *calibrate.Result
	demoRun.calibrate = func(ctx context.Context, o *flags.Options, m *nn.Model, d train.Data, c calibrate.Options) (*calibrate.Result, error) {
		var err error
		if first == nil {
			first, err = whole.calibrate(ctx, o, m, d, c)
		}
		return first, err
	}
	return func() { demoRun = whole }
}
