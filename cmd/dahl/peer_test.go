package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/rundir"
	"dahl/train/metrics"
	"dahl/train/peer"
)

// smallTraining is what dahl and others train on: 13 samples in batches of 5.
var smallTraining = []string{"--model", "small.toml", "--data", "digits", "--limit", "13", "--batch", "5", "--epochs", "2", "--seed", "7"}

// fakePython writes a program in the place of an interpreter, and returns its path. It has PyTorch, and no
// JAX; its losses are dahl's times a factor, since it answers what a run of dahl has in steps.csv.
func fakePython(t *testing.T, factor float64) string {
	t.Helper()
	writeTestFile(t, "small.toml", smallNetwork)
	mustRun(t, append([]string{"execute", "--policy", "eager", "--out", "ours"}, smallTraining...)...)
	steps := must.Get(rundir.ReadAs(filepath.Join("ours", record.StepsFile), readSteps))(t)
	var losses []string
	for _, s := range steps[:3] {
		losses = append(losses, fmt.Sprint(s.Loss*factor))
	}
	writeTestFile(t, "python", `#!/bin/sh
while read -r line; do
	case "$2 $line" in
	jax_worker*) echo '{"error": "ModuleNotFoundError: no jax"}' ;;
	*describe*) echo '{"versions": {"program": "Fake 1.2", "capability": "SH"}}' ;;
	*'"do":"ready"'*) echo '{"losses": [`+strings.Join(losses[:2], ", ")+`]}' ;;
	*'"do":"epoch"'*)
		if [ -n "$`+powercapTree+`" ]; then
			counter="$`+powercapTree+`/intel-rapl:0/energy_uj"
			echo $(($(cat "$counter") + 7000000)) > "$counter.next" && mv "$counter.next" "$counter"
		fi
		echo '{"losses": [`+strings.Join(losses, ", ")+`], "seconds": 0.25, "cpu_seconds": 0.125, "peak_bytes": 7000000}' ;;
	*'"do":"test"'*) echo '{"losses": [0.5], "correct": 11, "seconds": 0.25, "cpu_seconds": 0.125, "peak_bytes": 7000000}' ;;
	*) echo '{}' ;;
	esac
done
`)
	must.Do(t, os.Chmod("python", 0o755))
	return must.Get(filepath.Abs("python"))(t)
}

// A training by another program is a run that verify and rerun take, with the numbers that it gave: two
// epochs and two tests of 0.25 s each, and 13 samples per epoch.
func TestPeer(t *testing.T) {
	t.Chdir(t.TempDir())
	python := fakePython(t, 1)
	args := append([]string{"peer", "pytorch", "--python", python, "--out", "theirs"}, smallTraining...)
	must.Contain(t, mustRun(t, args...), "program   Fake 1.2; setting default, contiguous; cpu")
	s := must.Get(cli.ReadJSON[record.Summary](filepath.Join("theirs", record.SummaryFile)))(t)
	if s.MakespanS != 1 || math.Abs(s.StepS-0.5/6) > 1e-12 || *s.SamplesPerS != 52 || s.Trained.PeakBytes != 7000000 || s.Load.OwnCores != 0.5 || s.Peer.Versions.Program != "Fake 1.2" {
		t.Errorf("summary %+v, trained %+v, load %+v", s, s.Trained, s.Load)
	}
	epochs, err := rundir.ReadAs(filepath.Join("theirs", record.EpochsFile), func(f io.Reader, _ string) ([]metrics.Epoch, error) { return metrics.ReadEpochs(f) })
	if err != nil || len(epochs) != 2 || epochs[1].TestLoss != 0.5 || !math.IsNaN(epochs[1].Accuracy) {
		t.Errorf("epochs %+v, %v", epochs, err)
	}
	mustRun(t, "verify", "theirs")
	if out := mustRun(t, "rerun", "--python", python, "theirs"); !strings.Contains(out, "first losses         same") || !strings.Contains(out, "program              same: Fake 1.2") {
		t.Errorf("rerun printed\n%s", out)
	}
	for _, command := range []string{"report", "compare", "plot"} {
		wantRefused(t, command+" theirs", "Fake 1.2, which has no tasks to show")
	}
}

// Another network, and a program that is not there, leave no run.
func TestPeerErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	python := fakePython(t, 1.01)
	for _, c := range []struct {
		program, python, want string
		code                  int
	}{
		{"pytorch", python, "not the same network", cli.ExitFailed},
		{"jax", python, "ModuleNotFoundError: no jax; name an interpreter that has it with --python", cli.ExitBadInput},
		{"jax", "nope/python", "nope/python", cli.ExitBadInput},
		{"jaz", python, "did you mean jax", cli.ExitBadInput},
	} {
		wantEnd(t, c.code, "peer "+c.program+" --python "+c.python+" --out theirs "+strings.Join(smallTraining, " "), c.want)
		if _, err := os.Stat("theirs"); err == nil {
			t.Fatalf("%s by %s left a directory", c.program, c.python)
		}
	}
}

// The contestants of an experiment train the same cells; one that is not installed says so, and the others
// go on. What only dahl reads, such as the policy, is not on the command lines of others.
func TestExperimentContestants(t *testing.T) {
	t.Chdir(t.TempDir())
	python := fakePython(t, 1)
	writeTestFile(t, "twins.toml", `
name = "twins"
[run]
command = "execute"
model = "small.toml"
data = "digits"
limit = 13
batch = 5
epochs = 2
seed = 7
policy = "eager"
[grid]
contestant = ["dahl", "pytorch", "jax"]
`)
	t.Setenv(asDahl, "1") // of the processes of cells
	mustRun(t, "experiment", "run", "twins.toml", "--python", python, "--out", "x", "--allow-modified")
	rows := csvRows(t, "x")
	for run, status := range map[string]string{"contestant=dahl": "ok", "contestant=pytorch": "ok", "contestant=jax": "not installed"} {
		if rows[run]["status"] != status {
			t.Errorf("%s: %v; want %s", run, rows[run], status)
		}
	}
	if row := rows["contestant=pytorch"]; len(rows) != 3 || row["run_s"] != "1" || row["images_per_s"] != "52" || row["peak_bytes"] != "7e+06" || row["predicted_step_s"] != "" {
		t.Errorf("rows %v", rows)
	}
	m, err := record.ReadManifest("x/cells/contestant=pytorch")
	if err != nil || strings.Contains(strings.Join(m.Args, " "), "policy") {
		t.Errorf("arguments %v, %v", m.Args, err)
	}
	mustRun(t, "experiment", "verify", "x", "--cells", "contestant=pytorch", "--python", python)
}

// TestExperimentPeerMetered: the fake program draws 7 J in each of its two epochs and nothing else does, so a cell
// of it has 14 J and 7 J per epoch. The counter does not move while nothing runs, so that there is no idle power.
func TestExperimentPeerMetered(t *testing.T) {
	t.Chdir(t.TempDir())
	python := fakePython(t, 1)
	tree := filepath.Join(t.TempDir(), "powercap")
	for name, text := range map[string]string{"name": "package-0", "max_energy_range_uj": "262143328850", "energy_uj": "17"} {
		writeTestFile(t, filepath.Join(tree, "intel-rapl:0", name), text+"\n")
	}
	writeTestFile(t, "twin.toml", "name = \"twin\"\n[run]\ncommand = \"execute\"\nmodel = \"small.toml\"\ndata = \"digits\"\n"+
		"limit = 13\nbatch = 5\nepochs = 2\nseed = 7\n[grid]\ncontestant = [\"pytorch\"]\n")
	t.Setenv(asDahl, "1")
	t.Setenv(powercapTree, tree)
	defer restoreMeters(flags.StartMeters, flags.IdleWindow)
	fakePowercap(tree)
	mustRun(t, "experiment", "run", "twin.toml", "--python", python, "--out", "x", "--allow-modified")
	row := csvRows(t, "x")["contestant=pytorch"]
	for column, want := range map[string]float64{"joules": 14, "joules_per_epoch": 7} {
		if got, err := strconv.ParseFloat(row[column], 64); err != nil || math.Abs(got-want) > 1e-5 {
			t.Errorf("%s is %q, want %g", column, row[column], want)
		}
	}
	if !strings.HasPrefix(row["joules_source"], "measured: processors by ") || row["joules_above_idle"] != "" {
		t.Errorf("source %q, above idle %q", row["joules_source"], row["joules_above_idle"])
	}
}

// Every setting of every program can be named in an experiment, alone and with a format.
func TestContestantSettings(t *testing.T) {
	for _, p := range peer.Programs() {
		for _, s := range p.SettingNames() {
			if !p.HasSetting(s) || !p.HasSetting(s+": "+peer.Contiguous) || p.HasSetting(s+": nope") {
				t.Errorf("%s: setting %q", p, s)
			}
		}
	}
}
