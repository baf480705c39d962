//go:build !cuda

package main

import (
	"bytes"
	"testing"

	"dahl/cmd/cli"
	"dahl/must"
)

// TestNoLibrary: a variant of a library that cannot be here, in a program without CUDA, is
// refused before anything is measured. A simulation of a machine with a GPU may name it.
func TestNoLibrary(t *testing.T) {
	t.Chdir(t.TempDir())
	wantRefused(t, "calibrate --out x.toml --model mlp --variant cublas", "dahl: variant cublas: ")
	p := must.Get(cli.LoadPlatform("emulated"))(t)
	p.Devices[1].Kind = "cuda"
	var text bytes.Buffer
	must.Do(t, p.WriteTOML(&text))
	writeTestFile(t, "gpu.toml", text.String())
	mustRun(t, "simulate", "--platform", "gpu.toml", "--model", "mlp", "--variant", "cublas", "--out", "run")
}
