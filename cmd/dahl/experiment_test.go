package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/cmd/grid"
	"dahl/must"
	"dahl/rundir/experiment"
)

// smallGrid predicts steps of a small network in two batch sizes on a core and on both.
const smallGrid = `
name = "grid"
[run]
command = "simulate"
platform = "laptop"
model = "tiny.toml"
steps = 3
policy = "heft"
[grid]
batch = [3, 5]
devices = ["cpu:1", "cpu:2"]
`

// inGrid makes a directory with an experiment, where processes of this program are dahl.
func inGrid(t *testing.T, text string) {
	t.Helper()
	t.Setenv(asDahl, "1")
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	writeTestFile(t, "grid.toml", text)
}

// csvRows are the rows of a table of results by the run, each by the name of the column.
func csvRows(t *testing.T, dir string) map[string]map[string]string {
	t.Helper()
	rows := map[string]map[string]string{}
	for _, row := range readTable(t, filepath.Join(dir, grid.ResultsFile)) {
		rows[row["run"]] = row
	}
	return rows
}

// fileTimes are when the files below a directory were written, and which they are.
func fileTimes(t *testing.T, dir string) map[string]os.FileInfo {
	t.Helper()
	times := map[string]os.FileInfo{}
	must.Do(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		times[path], err = e.Info()
		return err
	}))
	return times
}

// untouched reports files of before that were written or replaced since.
func untouched(t *testing.T, dir string, before map[string]os.FileInfo) {
	t.Helper()
	now := fileTimes(t, dir)
	for name, was := range before {
		if is := now[name]; is == nil || !os.SameFile(was, is) || !was.ModTime().Equal(is.ModTime()) {
			t.Errorf("%s was written again", name)
		}
	}
}

// TestExperiment: each cell is a run directory that equals what the command line of the cell gives, the
// table has its numbers, a second start runs nothing, and a file with another batch size keeps the
// cells that it still has.
func TestExperiment(t *testing.T) {
	inGrid(t, smallGrid)
	var o grid.Object
	must.Do(t, json.Unmarshal([]byte(mustRun(t, "experiment", "run", "grid.toml", "--out", "out", "--json")), &o))
	if o.Cells != 4 || o.OK != 4 || len(o.Rows) != 4 {
		t.Fatalf("%+v", o)
	}
	mustRun(t, strings.Fields("simulate --batch=5 --devices=cpu:2 --model=tiny.toml --platform=laptop --policy=heft --steps=3 --out alone")...)
	alone := must.Get(cli.ReadJSON[record.Summary]("alone/" + record.SummaryFile))(t)
	const cell = "batch=5,devices=cpu%3A2"
	row := csvRows(t, "out")[cell]
	if got := row["step_s"]; got != strconv.FormatFloat(alone.StepS, 'g', -1, 64) || row["status"] != "ok" || row["joules_source"] != alone.EnergyJ.Grounds {
		t.Errorf("%v, want a step of %g s", row, alone.StepS)
	}
	if a, b := manifestOf(t, "alone"), manifestOf(t, "out/cells/"+cell); a.Seal != b.Seal {
		t.Error("the run of a cell is not that of its command line")
	}
	for _, name := range []string{grid.CopyFile, grid.HeadFile, grid.TableFile, "figures/curves-images_per_s-batch-devices.svg", "figures/front.svg"} {
		if !there("out/" + name) {
			t.Errorf("there is no %s", name)
		}
	}
	page := string(must.Get(os.ReadFile("out/" + grid.PageFile))(t))
	if n := strings.Count(page, "<svg "); n != 2 || strings.Count(page, "<tr>") != 1+4 {
		t.Errorf("the page has %d figures and the table %d lines", n, strings.Count(page, "<tr>"))
	}
	if drawn := mustRun(t, "plot", "out", "front", "--width", "85mm", "--format", "pdf"); drawn != filepath.Join("out", "figures", "front.pdf")+"\n" || !there("out/figures/front.pdf") {
		t.Errorf("drawn is %q", drawn)
	}
	wantRefused(t, "plot out gantt", `figure "gantt" is not one of`)
	wantRefused(t, "plot out --steps 3", "whose figures have no --steps")
	before := fileTimes(t, "out/cells")
	must.Contain(t, mustRun(t, "experiment", "run", "grid.toml", "--out", "out"), "4 have run, 0 to run")
	writeTestFile(t, "grid.toml", strings.Replace(smallGrid, "[3, 5]", "[5, 7]", 1))
	out := mustRun(t, "experiment", "run", "grid.toml", "--out", "out")
	if !strings.Contains(out, "2 have run, 2 to run") || !strings.Contains(out, "left out  2 cells") || len(csvRows(t, "out")) != 4 {
		t.Errorf("another file: %s", out)
	}
	untouched(t, "out/cells", before)
}

// TestExperimentSettings: a setting that changes for all cells runs them again.
func TestExperimentSettings(t *testing.T) {
	inGrid(t, strings.Replace(smallGrid, `devices = ["cpu:1", "cpu:2"]`, "", 1))
	mustRun(t, "experiment", "run", "grid.toml", "--out", "out")
	writeTestFile(t, "grid.toml", strings.Replace(smallGrid, "steps = 3", "steps = 2", 1))
	must.Contain(t, mustRun(t, "experiment", "run", "grid.toml", "--out", "out"), "0 have run, 4 to run")
}

// TestExperimentOfTrainings: columns of executed cells, of which each ran twice, and the same
// weights with both numbers of cores.
func TestExperimentOfTrainings(t *testing.T) {
	inGrid(t, `
name = "train"
[run]
command = "execute"
repeats = 2
model = "tiny.toml"
data = "digits"
limit = 60
epochs = 2
[grid]
workers = [1, 2]
contestant = ["dahl"]
`)
	mustRun(t, "experiment", "run", "grid.toml", "--out", "out")
	rows := csvRows(t, "out")
	if len(rows) != 4 {
		t.Fatalf("%d rows, want 4", len(rows))
	}
	for name, row := range rows {
		for _, column := range []string{"step_s", "predicted_step_s", "run_s", "images_per_s", "joules", "joules_per_epoch", "joules_per_image", "training_loss", "test_accuracy_percent"} {
			if v, err := strconv.ParseFloat(row[column], 64); err != nil || !(v > 0) {
				t.Errorf("%s: %s is %q", name, column, row[column])
			}
		}
		if row["training_loss"] != rows["contestant=dahl,workers=1"]["training_loss"] {
			t.Errorf("%s: loss %s", name, row["training_loss"])
		}
	}
	if !there("out/cells/contestant=dahl,workers=2,repeat=2/weights.npz") {
		t.Error("the second repetition has no run")
	}
	out := mustRun(t, "experiment", "verify", "out", "--count", "1", "--seed", "3")
	if !strings.Contains(out, "results.csv: what the cells say") || !strings.Contains(out, ": same; times") || strings.Count(out, "\n") != 2 {
		t.Errorf("verify: %s", out)
	}
}

// TestExperimentKilled kills an experiment with kill −9 when its first cell has been told, and its
// child in the middle of another one with it. The same command goes on: cells that had run are not
// touched, and the results are those of an experiment that nothing disturbed.
func TestExperimentKilled(t *testing.T) {
	inGrid(t, smallGrid)
	mustRun(t, "experiment", "run", "grid.toml", "--out", "undisturbed")
	cmd := dahlProcess(t, "experiment", "run", "grid.toml", "--out", "out")
	stdout := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	for lines := bufio.NewScanner(stdout); !strings.HasPrefix(lines.Text(), "1/4"); {
		if !lines.Scan() {
			t.Fatalf("no cell ran: %v", lines.Err())
		}
	}
	must.Do(t, cmd.Process.Kill())
	cmd.Wait()
	writeTestFile(t, "out/."+grid.ResultsFile+"-0123abcd", "half of it") // as a kill while it is written leaves it
	const first = "out/cells/batch=3,devices=cpu%3A1"
	before := fileTimes(t, first)
	mustRun(t, "experiment", "run", "grid.toml", "--out", "out")
	untouched(t, first, before)
	for _, name := range []string{grid.ResultsFile, grid.TableFile, "figures/front.svg"} {
		got := must.Get(os.ReadFile("out/" + name))(t)
		if want, err := os.ReadFile("undisturbed/" + name); err != nil || string(got) != string(want) {
			t.Errorf("%v: %s is\n%s\nwant\n%s", err, name, got, want)
		}
	}
	if there("out/." + grid.ResultsFile + "-0123abcd") {
		t.Error("half a file is left")
	}
	if out := mustRun(t, "experiment", "verify", "out"); strings.Count(out, ": same") != 4 {
		t.Errorf("verify: %s", out)
	}
}

// TestExperimentResumes: a training that was cut off and keeps a checkpoint goes on, and its row says so and
// has no joules of all of it. Once a file of it is changed, it is no result any more, and is to run again.
func TestExperimentResumes(t *testing.T) {
	inGrid(t, `
name = "cut"
[run]
command = "execute"
model = "tiny.toml"
data = "digits"
limit = 12
batch = 3
checkpoint = "every=1steps"
[grid]
workers = [1]
`)
	mustRun(t, "experiment", "run", "grid.toml", "--out", "out")
	src := must.Get(os.ReadFile("grid.toml"))(t)
	file := must.Get(experiment.Parse(src, "grid.toml", false))(t)
	cell := file.Cells()[0]
	args, dir := append([]string{"execute"}, cell.Args()...), filepath.Join("out", grid.CellsDir, cell.Name())
	read := func() experiment.Row { return grid.ReadRow(&cell, args, &grid.Manifest{Build: cli.ThisBuild()}, dir) }
	cutAfter(t, "2", append(args, "--out", "cut")...)
	must.Do(t, errors.Join(os.RemoveAll(dir), os.Rename("cut", dir)))
	if row := read(); row.Status != experiment.Missing {
		t.Fatalf("a training that was cut off is %s", row.Status)
	}
	mustRun(t, "experiment", "run", "grid.toml", "--out", "out")
	row := read()
	if row.Status != experiment.OK || !strings.Contains(row.Reason, "it went on after step 2") || row.Values[experiment.Joules] == row.Values[experiment.Joules] {
		t.Errorf("%+v", row)
	}
	f := must.Get(os.OpenFile(filepath.Join(dir, record.SummaryFile), os.O_WRONLY|os.O_APPEND, 0))(t)
	if _, err := f.WriteString(" "); errors.Join(err, f.Close()) != nil {
		t.Fatal(err)
	}
	if row := read(); row.Status != experiment.Missing {
		t.Errorf("a cell whose summary was changed is %s", row.Status)
	}
}

// TestExperimentFailure: a cell that in its tiles does not fit the memory of its device says so and leaves the other alone; the exit
// code is 1, and the same command tries it again.
func TestExperimentFailure(t *testing.T) {
	inGrid(t, `
name = "grid"
[run]
command = "simulate"
platform = "emulated"
model = "dahl-cnn-big"
data = "synthetic:3x360x270:60:7"
batch = 60
steps = 1
policy = "heft"
[grid]
devices = ["gpu", "cpu"]
`)
	for _, begin := range []string{"0 have run, 2 to run", "1 have run, 1 to run"} {
		wantEnd(t, cli.ExitFailed, "experiment run grid.toml --out out", "dahl: 1 of 2 cells failed; results.csv in out says why\n", "devices=gpu: FAILED: ", begin)
	}
	rows := csvRows(t, "out")
	if row := rows["devices=gpu"]; row["status"] != "failed" || !strings.Contains(row["reason"], `memory "vram" has 64 MB and would hold 168 MB`) || row["step_s"] != "" || rows["devices=cpu"]["status"] != "ok" {
		t.Errorf("%v", rows)
	}
}

// TestExperimentDiverges: a loss that is not finite is the result of a cell, which does not run again.
func TestExperimentDiverges(t *testing.T) {
	inGrid(t, `
name = "grid"
[run]
command = "execute"
model = "tiny.toml"
data = "digits"
limit = 30
batch = 2
loss = "mse"
lr = 1e9
`)
	for _, begin := range []string{"0 have run, 1 to run", "1 have run, 0 to run"} {
		wantEnd(t, cli.ExitFailed, "experiment run grid.toml --out out", begin)
	}
	if row := csvRows(t, "out")["run"]; row["status"] != "failed" || !strings.Contains(row["reason"], "the loss of step ") {
		t.Errorf("%v", row)
	}
}

// TestExperimentVerifyFinds changes the weights of a cell, its table of losses together with the hash in its manifest,
// and a number of the table of results. Each is found.
func TestExperimentVerifyFinds(t *testing.T) {
	inGrid(t, smallGrid)
	mustRun(t, "experiment", "run", "grid.toml", "--out", "out")
	change := func(path, from, to string) (restore func()) {
		text := must.Get(os.ReadFile(path))(t)
		if !strings.Contains(string(text), from) {
			t.Fatalf("%s holds no %q", path, from)
		}
		writeTestFile(t, path, strings.Replace(string(text), from, to, 1))
		return func() { writeTestFile(t, path, string(text)) }
	}
	const cell = "out/cells/batch=5,devices=cpu%3A1/"
	step := csvRows(t, "out")["batch=3,devices=cpu%3A1"]["step_s"]
	for _, c := range []struct{ path, from, to, want string }{
		{cell + "schedule.json", `1`, `2`, "devices=cpu%3A1: DIFFERENT: damaged: schedule.json"},
		{"out/" + grid.ResultsFile, "," + step, ",9" + step, "results.csv: line 2 is not what the run of cell batch=3,devices=cpu%3A1 says"},
	} {
		restore := change(c.path, c.from, c.to)
		wantEnd(t, cli.ExitFailed, "experiment verify out --cells *cpu%3A1", c.want, "1 of 3 checks failed")
		restore()
	}
	change("out/"+grid.CopyFile, "batch", "batch ")
	wantRefused(t, "experiment verify out", "experiment.toml has changed")
}

// TestExperimentPresets: what ships with dahl is listed and shown, and all cells of all of them, whole and small, could
// begin here, but for those on more cores than there are.
func TestExperimentPresets(t *testing.T) {
	t.Chdir(t.TempDir())
	list := mustRun(t, "experiment", "list")
	for _, name := range experiment.Presets() {
		must.Contain(t, list, name)
		src, err := experiment.Preset(name)
		if err != nil || mustRun(t, "experiment", "show", name) != string(src) {
			t.Errorf("%s is shown otherwise; %v", name, err)
		}
		file := must.Get(experiment.Parse(src, name, true))(t)
		if err := grid.Check(file, file.Cells()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantRefused(t, "experiment show peer", "did you mean peers")
	wantRefused(t, "experiment rum peers", "did you mean run")
}

// TestExperimentOfGraphs: files by a pattern are an axis. Two tasks of 20 and 3 ms that wait for nothing take 20 ms on two
// units, and 2 and 3.5 ms, one after the other, 5.5 ms; both are proven. A graph that cannot be read fails alone.
func TestExperimentOfGraphs(t *testing.T) {
	inGrid(t, `
name = "graphs"
[run]
command = "plan"
platform = "two.toml"
objective = "time"
steps = 1
[grid]
graph = ["graphs/*"]
`)
	writeTestFile(t, "two.toml", twoUnits)
	writeTestFile(t, "graphs/bad.stg", "1\n0 -1 0\n")
	writeTestFile(t, "graphs/both.stg", "2\n1 20 0\n2 3 0\n")
	writeTestFile(t, "graphs/chain.dot", `digraph { a [weight=2]; b [weight=3.5]; a -> b [weight=1] }`)
	wantEnd(t, cli.ExitFailed, "experiment run grid.toml --out out", "dahl: 1 of 3 cells failed; results.csv in out says why\n")
	rows := csvRows(t, "out")
	for name, want := range map[string]float64{"both.stg": 0.02, "chain.dot": 0.0055} {
		row := rows["graph=graphs%2F"+name]
		if run, err := strconv.ParseFloat(row["run_s"], 64); err != nil || math.Abs(run-want) > 1e-9 || row["gap_percent"] != "0" {
			t.Errorf("%s: %v, want %g s, proven", name, row, want)
		}
	}
	if reason := rows["graph=graphs%2Fbad.stg"]["reason"]; reason != `graphs/bad.stg:2: the processing time is "-1"; write a finite number, at least 0` {
		t.Error(reason)
	}
}
