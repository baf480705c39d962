package main

import (
	"encoding/json"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/grid"
	"dahl/must"
	"dahl/rundir/durable"
)

// TestExperimentErrors: before anything runs, each mistake is told in one line with its place, and leaves nothing.
func TestExperimentErrors(t *testing.T) {
	inGrid(t, smallGrid)
	writeTestFile(t, "foreign/notes", "not dahl's")
	before := listing(t)
	replaced := func(from, to string) string { return strings.Replace(smallGrid, from, to, 1) }
	for _, c := range []struct{ text, args, want string }{
		{"[[", "", "grid.toml:1: "},
		{replaced("simulate", "simulat"), "", `grid.toml:4: command = "simulat": want simulate, plan or execute; did you mean simulate`},
		{replaced("steps", "stebs"), "", "grid.toml:7: stebs: dahl simulate has no such flag for cells"},
		{replaced("steps", "stebs"), "", "did you mean steps"},
		{replaced("[3, 5]", `["x"]`), "", `grid.toml:9: batch = "x": `},
		{replaced("tiny.toml", "lenet"), "", `grid.toml:6: model = "lenet": `},
		{replaced("laptop", "laptob"), "", "did you mean laptop"},
		{replaced("cpu:2", "gpu"), "", `grid.toml: cell batch=3,devices=gpu: --devices: `},
		{replaced("steps = 3", "steps = 3\nout = \"x\""), "", "grid.toml:8: out: dahl simulate has no such flag for cells"},
		{replaced("steps = 3", "data = \"nope\""), "", "no such directory"},
		{replaced("steps = 3", "contestant = \"tensorflow\""), "", `grid.toml:7: contestant = "tensorflow": want dahl`},
		{replaced("steps = 3", "schedule = \"nope\""), "", "cell batch=3,devices=cpu%3A1: --schedule: "},
		{replaced("steps = 3", "lowering = \"nope.toml\""), "", `grid.toml:7: lowering = "nope.toml": `},
		{replaced("[3, 5]", "[9999]"), "", "there are 2999 training samples in digits"},
		{smallGrid, "--small", "grid.toml:1: [small] is missing"},
		{smallGrid, "--data nope", `--data "nope": write the name of a case and its data`},
		{smallGrid, "--data a=b", "--data: grid.toml has no case with data"},
		{smallGrid, "--out foreign", "foreign is not empty and not that of an experiment"},
		{smallGrid, "--out grid.toml", "grid.toml"},
	} {
		writeTestFile(t, "grid.toml", c.text)
		r := dahl(t, t.Context(), append(strings.Fields("experiment run grid.toml"), strings.Fields(c.args)...)...)
		if r.code != cli.ExitBadInput || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, c.want) || r.stdout != "" {
			t.Errorf("exit code %d, %q, want %q", r.code, r.stderr, c.want)
		}
		if after := listing(t); after != before {
			t.Fatalf("%q left something behind:\n%s", c.want, after)
		}
	}
}

// TestExperimentOthers: results of another program or machine are not mixed with those of this one.
func TestExperimentOthers(t *testing.T) {
	inGrid(t, smallGrid)
	mustRun(t, "experiment", "run", "grid.toml", "--out", "out")
	m := must.Get(grid.ReadManifest("out"))(t)
	for want, change := range map[string]func(*grid.Manifest){
		"are of dahl":            func(m *grid.Manifest) { m.Build.Commit = "another" },
		"are of another machine": func(m *grid.Manifest) { m.CPU = "Z80" },
		`format "x"`:             func(m *grid.Manifest) { m.Format = "x" },
	} {
		other := *m
		change(&other)
		text := must.Get(json.Marshal(other))(t)
		writeTestFile(t, "out/"+grid.HeadFile, string(text))
		if r := dahl(t, t.Context(), "experiment", "run", "grid.toml", "--out", "out"); r.code != cli.ExitBadInput || !strings.Contains(r.stderr, want) && want != `format "x"` {
			t.Errorf("%s: exit code %d, %s", want, r.code, r.stderr)
		}
	}
}

// TestExperimentHeld: two processes do not write into one directory.
func TestExperimentHeld(t *testing.T) {
	inGrid(t, smallGrid)
	dir := must.Get(durable.MakeDir("out"))(t)
	defer dir.Close()
	lock := must.Get(dir.Lock(grid.LockFile, "another process"))(t)
	defer lock.Unlock()
	if again := dahl(t, t.Context(), "experiment", "run", "grid.toml", "--out", "out"); again.code != cli.ExitBadInput || !strings.Contains(again.stderr, "wait for it, or name another directory") {
		t.Errorf("exit code %d, %s", again.code, again.stderr)
	}
}
