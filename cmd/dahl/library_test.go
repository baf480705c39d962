//go:build !cuda

package main

import (
	"bytes"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/must"
)

// TestNoLibrary: a variant of a library that cannot be here, in a program without CUDA, is
// refused before anything is measured. A simulation of a machine with a GPU may name it.
func TestNoLibrary(t *testing.T) {
	t.Chdir(t.TempDir())
	r := dahl(t, t.Context(), "calibrate", "--out", "x.toml", "--model", "mlp", "--variant", "cublas")
	if r.code != cli.ExitBadInput || !strings.HasPrefix(r.stderr, "dahl: variant cublas: ") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("exit code %d, %q", r.code, r.stderr)
	}
	p := must.Get(cli.LoadPlatform("emulated"))(t)
	p.Devices[1].Kind = "cuda"
	var text bytes.Buffer
	must.Do(t, p.WriteTOML(&text))
	writeTestFile(t, "gpu.toml", text.String())
	mustRun(t, "simulate", "--platform", "gpu.toml", "--model", "mlp", "--variant", "cublas", "--out", "run")
}
