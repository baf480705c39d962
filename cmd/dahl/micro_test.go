package main

import (
	"os"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/must"
)

// TestMicroBatchesOfAFile: graph says what a lowering file asks for and exports it, a plan keeps it for those who follow the plan, and a batch of 2
// has no 3 micro-batches.
func TestMicroBatchesOfAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "three.toml", "micro_batches = 3\n")
	text := mustRun(t, "graph", "--model", "digits-cnn", "--batch", "7", "--lowering", "three.toml", "--export", "again.toml")
	must.Contain(t, text, "; 3 micro-batches, updates by themselves behind the last")
	if exported, err := os.ReadFile("again.toml"); err != nil || !strings.Contains(string(exported), "micro_batches = 3\n") {
		t.Errorf("%v: exported is\n%s", err, exported)
	}
	network := []string{"--platform", "laptop", "--model", "digits-cnn", "--batch", "7", "--policy", "heft"}
	mustRun(t, append([]string{"plan", "--lowering", "three.toml", "--out", "p"}, network...)...)
	mustRun(t, append([]string{"simulate", "--plan", "p/plan.json"}, network[:6]...)...)
	if r := dahl(t, t.Context(), "graph", "--model", "digits-cnn", "--batch", "2", "--lowering", "three.toml"); r.code != cli.ExitBadInput ||
		!strings.Contains(r.stderr, "three.toml") || !strings.HasSuffix(r.stderr, "micro_batches is 3; want 1 to 2, the samples of a batch, or 0 for one\n") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
}
