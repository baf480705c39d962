//go:build !cuda

package main

import (
	"strings"
	"testing"
)

// TestNoLibrary: a variant of a library that cannot be here, in a program without CUDA, is
// refused before anything is measured. A simulation may name it.
func TestNoLibrary(t *testing.T) {
	t.Chdir(t.TempDir())
	r := dahl(t, t.Context(), "calibrate", "--out", "x.toml", "--model", "mlp", "--variant", "cublas")
	if r.code != exitBadInput || !strings.HasPrefix(r.stderr, "dahl: variant cublas: ") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("exit code %d, %q", r.code, r.stderr)
	}
	mustRun(t, "simulate", "--platform", "laptop", "--model", "mlp", "--variant", "cublas", "--out", "run")
}
