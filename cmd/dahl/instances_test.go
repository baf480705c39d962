package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"dahl/cmd/cli"
	"dahl/rundir"
)

// twoUnits is a machine on which a task takes what its graph says.
const twoUnits = `name = "two"
[[memory]]
name = "ram"
bandwidth = "1 GB/s"
[[device]]
name = "cpu"
kind = "cpu"
memory = "ram"
count = 2
power = { idle = "1 W", busy = "2 W" }
`

// writeInstances writes a directory of five graphs for two units, of which one is none, and what is no graph.
// Two tasks of 20 and 3 ms that wait for nothing take 20 ms; 2 and 3.5 ms, one after the other, 5.5 ms; 3 and 4 ms
// that share a buffer 7 ms; on the machine of their own directory, of one unit, the first two take 23 ms.
func writeInstances(t *testing.T) (wantMs map[string]float64) {
	t.Helper()
	const both = "2\n1 20 0\n2 3 0\n"
	writeTestFile(t, "graphs/platform.toml", twoUnits)
	writeTestFile(t, "graphs/notes.md", "no graph")
	writeTestFile(t, "graphs/.hidden/graph.json", "{")
	writeTestFile(t, "graphs/bad.stg", "1\n0 -1 0\n")
	writeTestFile(t, "graphs/both.stg", both)
	writeTestFile(t, "graphs/chain.dot", `digraph { a [weight=2]; b [weight=3.5]; a -> b [weight=1] }`)
	writeTestFile(t, "graphs/own/both.stg", both)
	writeTestFile(t, "graphs/own/platform.toml", strings.Replace(twoUnits, "count = 2", "count = 1", 1))
	writeTestFile(t, "graphs/two.json", twoTasks)
	return map[string]float64{"both.stg": 20, "chain.dot": 5.5, "own": 23, "two.json": 7}
}

// TestInstances: every graph of a directory is planned, the bad one is named and does not end the others, and
// each run directory is as one of plan --graph, with equal bytes in a second run.
func TestInstances(t *testing.T) {
	t.Chdir(t.TempDir())
	want := writeInstances(t)
	r := dahl(t, t.Context(), strings.Fields("plan --instances graphs --objective time --json --out plans")...)
	if r.code != cli.ExitFailed || r.stderr != "dahl: graphs/bad.stg:2: the processing time is \"-1\"; write a finite number, at least 0\ndahl: 1 of 5 instances were not planned\n" {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
	var rows []instanceResult
	if err := json.Unmarshal([]byte(r.stdout), &rows); err != nil || len(rows) != 5 {
		t.Fatalf("%v: %s", err, r.stdout)
	}
	for _, row := range rows {
		if row.Name == "bad.stg" {
			if row.Error == "" {
				t.Errorf("%+v", row)
			}
			continue
		}
		if math.Abs(float64(row.Value)-want[row.Name]/1e3) > 1e-9 || row.Bound != row.Value || row.Gap != 0 || !row.Proven || row.Tasks != 2 || row.Unit != "s" || row.WallS <= 0 {
			t.Errorf("%+v; want %v ms, proven", row, want[row.Name])
		}
		wantVerified(t, row.Dir)
		mustRun(t, "plan", "--graph", row.Graph, "--platform", row.Platform, "--objective", "time", "--out", "one")
		for _, file := range []string{"plan.json", "schedule.json", "summary.json"} {
			sameFiles(t, file, row.Dir, "one")
		}
	}
	if out := mustRun(t, "rerun", "plans/own"); strings.Contains(out, "DIFFERENT") {
		t.Error(out)
	}
	m, err := readManifest("plans/own")
	if args := strings.Join(m.Args, " "); err != nil || args != "plan --objective time --json --graph graphs/own/both.stg --platform graphs/own/platform.toml" {
		t.Errorf("%v: the manifest says %s", err, args)
	}

	if r = dahl(t, t.Context(), strings.Fields("plan --instances graphs --objective time --out one")...); r.code != cli.ExitBadInput || !strings.Contains(r.stderr, "one holds a run") {
		t.Errorf("into a run: exit code %d, %s", r.code, r.stderr)
	}

	r = dahl(t, t.Context(), strings.Fields("plan --instances graphs --objective time --out graphs/plans --platform graphs/own/platform.toml")...)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if r.code != cli.ExitFailed || len(lines) != 6 || lines[5] != "4 of 5 solved, 4 proved, mean gap 0 %" {
		t.Errorf("exit code %d:\n%s", r.code, r.stdout)
	}
	if fields := strings.Fields(lines[1]); strings.Join(fields[:7], " ") != "both.stg 2 0.023 0.023 0 % yes" {
		t.Errorf("with the machine of one unit: %s", lines[1])
	}
	again := dahl(t, t.Context(), strings.Fields("plan --instances graphs --objective time --out graphs/plans")...)
	if strings.Contains(again.stdout+again.stderr, "graphs/plans") {
		t.Errorf("the results are taken for an instance: %s%s", again.stdout, again.stderr)
	}
}

// TestInstancesRefused: a directory of which nothing can be read, and one that is none.
func TestInstancesRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "none/notes.md", "")
	writeTestFile(t, "alone/x.json", twoTasks)
	writeTestFile(t, "many/a/x.json", twoTasks)
	writeTestFile(t, "many/a/y.stg", "")
	writeTestFile(t, "many/platform.toml", twoUnits)
	for line, want := range map[string]string{
		"nope --objective time":                 "nope",
		"none --objective time":                 "--instances none: it holds no graph file and no directory of one",
		"none":                                  "name an --objective",
		"none --objective time --graph x.json":  "exclude each other",
		"alone --objective time":                "alone/x.json: there is no platform.toml beside it; add it, or name the machine with --platform",
		"many --objective time":                 "many/a holds 2 graph files and none of the name graph.json; keep one",
		"alone --objective time --platform new": `platform "new": no such file`,
	} {
		r := dahl(t, t.Context(), append([]string{"plan", "--out", "p", "--instances"}, strings.Fields(line)...)...)
		first, _, _ := strings.Cut(r.stderr, "\n")
		if r.code != cli.ExitBadInput || !strings.Contains(first, want) {
			t.Errorf("--instances %s: exit code %d, %s", line, r.code, r.stderr)
		}
	}
	if names := listing(t); strings.Contains(names, "\np") {
		t.Errorf("something was left behind:\n%s", names)
	}
}

// endsAfter ends a context when a line was written that begins with a word.
type endsAfter struct {
	strings.Builder
	word string
	end  context.CancelFunc
}

func (w *endsAfter) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p), w.word) {
		w.end()
	}
	return w.Builder.Write(p)
}

// TestInstancesInterrupted: what was done until then is printed and kept.
func TestInstancesInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	writeInstances(t)
	ctx, end := context.WithCancel(t.Context())
	stdout, stderr := endsAfter{word: "both.stg", end: end}, strings.Builder{}
	args := strings.Fields("plan --instances graphs --objective energy --out plans")
	code := cli.Run(ctx, newRoot(args), args, &stdout, &stderr)
	if code != cli.ExitInterrupted || !strings.HasSuffix(stdout.String(), "\n1 of 5 solved, 1 proved, mean gap 0 %\n") || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
	}
	wantVerified(t, filepath.Join("plans", "both.stg"))
}

// endsAtLook is a context that ends when it is looked at for the nth time.
type endsAtLook struct {
	context.Context
	end  context.CancelFunc
	left atomic.Int64
}

func newEndsAtLook(t *testing.T, n int) *endsAtLook {
	ctx, end := context.WithCancel(t.Context())
	e := &endsAtLook{Context: ctx, end: end}
	e.left.Store(int64(n))
	return e
}

func (e *endsAtLook) Err() error {
	if e.left.Add(-1) == 0 {
		e.end()
	}
	return e.Context.Err()
}

// TestInstancesEnded: wherever planning a directory ends, the instances until then are printed, and their directories are
// sound: so is that of the one whose search had a plan.
func TestInstancesEnded(t *testing.T) {
	t.Chdir(t.TempDir())
	writeInstances(t)
	o, rows, cut := options{instances: "graphs", Objective: "energy", Budget: 100, DType: "float32", Policy: bestPolicy, Steps: 2}, map[int]bool{}, 0
	for n, ended := 1, true; ended; n += 1 + n/8 {
		ctx, stdout := newEndsAtLook(t, n), strings.Builder{}
		out := filepath.Join("plans", fmt.Sprint(n))
		err := planInstances(ctx, &stdout, io.Discard, &o, &output{dir: out, json: true})
		var results []instanceResult
		if err := json.Unmarshal([]byte(stdout.String()), &results); err != nil {
			t.Fatal(err)
		}
		if ended = ctx.Context.Err() != nil; errors.Is(err, context.Canceled) != ended {
			t.Errorf("after %d looks: %v", n, err)
		}
		rows[len(results)] = true
		for _, r := range results {
			if r.Error != "" {
				continue // bad.stg
			}
			if m := manifestOf(t, r.Dir); m.Interrupted {
				cut++
			}
			if err := rundir.Verify(r.Dir); err != nil {
				t.Errorf("after %d looks: %v", n, err)
			}
		}
	}
	if len(rows) < 4 || cut == 0 {
		t.Errorf("it ended after %v of 5 instances, and %d plans are the best until then: the test tests little", rows, cut)
	}
}
