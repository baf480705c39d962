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
		{replaced("[3, 5]", `["x"]`), "", `grid.toml:10: batch = "x": `},
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
		if r := wantEnd(t, cli.ExitBadInput, "experiment run grid.toml "+c.args, c.want); r.stdout != "" {
			t.Errorf("printed is %s", r.stdout)
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
		"":                       func(m *grid.Manifest) { m.Format = "x" },
	} {
		other := *m
		change(&other)
		text := must.Get(json.Marshal(other))(t)
		writeTestFile(t, "out/"+grid.HeadFile, string(text))
		wantRefused(t, "experiment run grid.toml --out out", want)
	}
}

// TestExperimentHeld: two processes do not write into one directory.
func TestExperimentHeld(t *testing.T) {
	inGrid(t, smallGrid)
	dir := must.Get(durable.MakeDir("out"))(t)
	defer dir.Close()
	lock := must.Get(dir.Lock(grid.LockFile, "another process"))(t)
	defer lock.Unlock()
	wantRefused(t, "experiment run grid.toml --out out", "wait for it, or name another directory")
}
