package main

import (
	"math"
	"strings"
	"testing"

	"dahl/cmd/dahl/inspect"
)

// TestMeasuredProductOfB200: a product of the b200's table takes what was measured. Of 4096 tokens through 8192×8192 weights it reached 0.46252750766024464
// of 2250 TF/s: 2·4096·8192·8192 / 1.0407e15 s = 528.27 us.
func TestMeasuredProductOfB200(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "layer.toml", `name = "layer"
input = [4096]
[train]
batch = 1
optimizer = "adamw"
[[layer]]
kind = "embedding"
tokens = 257
width = 8192
[[layer]]
kind = "dense"
name = "o_proj"
outputs = 8192
bias = false
`)
	writeTestFile(t, "whole.toml", "") // no layer is cut
	layer := "--model layer.toml --dtype bfloat16 --lowering whole.toml"
	r := decoded[inspect.GraphReport](t, mustRun(t, strings.Fields("graph --json --platform b200 "+layer)...))
	want, found := 2*4096*8192*8192/(2250e12*0.46252750766024464), 0.0
	for _, p := range r.Parts {
		if p.Layer == "o_proj" && p.Phase == "forward" {
			found = p.BestS
		}
	}
	if math.Abs(found-want) > 1e-8 {
		t.Errorf("the product takes %g s, want %g", found, want)
	}
}
