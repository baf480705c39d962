package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"dahl/cmd/cli"
	"dahl/must"
)

// TestManual: there is a page for every command, and groff has no warning of any.
func TestManual(t *testing.T) {
	t.Chdir(t.TempDir())
	mustRun(t, "man", "--out", "made/here")
	t.Chdir("made/here")
	pages := must.Get(filepath.Glob("*.1"))(t)
	if n := len(cli.Commands(newRoot(nil))); len(pages) != n || !slices.Contains(pages, "dahl-experiment-run.1") {
		t.Errorf("%d pages, want %d: %v", len(pages), n, pages)
	}
	page := must.Get(os.ReadFile("dahl-plot.1"))(t)
	must.Contain(t, string(page), `dahl\-plot \- draw figures`, "dahl plot DIR [FIGURE\\[u2026]]", `\fB\-\-format format\fR`, "  dahl plot dahl\\-demo gantt", `\fBdahl\fR(1)`)
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("there is no groff to read the pages")
	}
	if said, err := exec.Command(groff, append([]string{"-man", "-Tutf8", "-ww", "-z"}, pages...)...).CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("groff: %v\n%s", err, said)
	}
}
