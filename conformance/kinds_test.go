package conformance

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dahl/kernels"
	"dahl/kernels/calls"
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

// Nothing but the table of kinds spells a kind out.
func TestKindsAreSpelledOnce(t *testing.T) {
	t.Chdir("..")
	own := []string{"kernels/", "examples/", // which have names of their own
		"execute/host/load.go", "train/setclock/cpufreq.go", // files of the system
		"platform/kind.go", "platforms/testmachine/"}
	eachGoFile(t, func(file string, _ *token.FileSet, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") || slices.ContainsFunc(own, func(start string) bool { return strings.HasPrefix(file, start) }) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value)
				if slices.ContainsFunc(platform.Kinds(), func(k platform.Kind) bool { return k.Name == text }) {
					t.Errorf("%s: %s is written out; ask platform.Device what it is", file, lit.Value)
				}
			}
			return true
		})
	})
}
