package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/platform"
)

// Package kernels, which imports no platform, has its own names for the codes that devices run.
// They are the platform's, and a product has a variant in each.
func TestKernelsKnowTheCodesOfDevices(t *testing.T) {
	if calls.GoCode != platform.GoCode || calls.CUDACode != platform.CUDACode || kernels.HostKind != platform.CPU {
		t.Error("kernels and platform call a code or a kind of devices by two names")
	}
	dense, _ := kernels.KernelByName("dense")
	for _, k := range platform.Kinds() {
		if v := dense.DefaultFor(k.Code); v == nil || !v.RunsOn(k.Code) {
			t.Errorf("devices of kind %s run variant %+v of dense", k.Name, v)
		}
	}
}

// In these packages nothing but the table of kinds spells a kind out.
func TestKindsAreSpelledOnce(t *testing.T) {
	t.Chdir("..")
	for _, dir := range []string{"cmd/cli", "cmd/dahl", "energy", "execute", "nn", "plan", "platform", "platforms", "plots", "schedule", "simulate", "train"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", dir, files, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || file == filepath.Join("platform", "kind.go") || file == filepath.Join("execute", "load.go") { // which reads /proc/stat
				continue
			}
			f := must.Get(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t)
			ast.Inspect(f, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					text, _ := strconv.Unquote(lit.Value)
					if slices.ContainsFunc(platform.Kinds(), func(k platform.Kind) bool { return k.Name == text }) {
						t.Errorf("%s: %s is written out; ask platform.Device what it is", file, lit.Value)
					}
				}
				return true
			})
		}
	}
}
