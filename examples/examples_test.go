package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dahl/must"
)

// outputs are what the examples print. Measured numbers are whatever they are.
var outputs = map[string]string{
	"predict": `^laptop: an epoch takes [\d.]+ms, a step [\d.]+µs and [\d.e-]+ J\nserver: an epoch takes .*\n$`,
	"train":   `^epoch 1: loss [\d.]+, test accuracy [\d.]+ %, \d+ samples/s\nepoch 2: .*\nconv1\.weight \[\d+ 1 3 3\]\n`,
	"compare": `^step: \d+ us predicted, \d+ us measured: [+-][\d.]+ %, of which kernels .*\n(.*: \d+ % of the time, predicted [+-][\d.]+ %\n){3}$`,
	"policy":  `(?m)^heft          a step takes [\d.]+µs\ndata-parallel a step takes [\d.]+µs\nleast-work    a step takes [\d.]+µs$`,
	// Four tasks of 3 ms on two cores take 6 ms; the one that reads what all of them wrote
	// comes after them and takes 2.
	"graph": `^part 0   0s to  3ms on cpu\.0\npart 1   0s to  3ms on cpu\.1\npart 2  3ms to  6ms on cpu\.0\npart 3  3ms to  6ms on cpu\.1\nsum     6ms to  8ms on cpu\.\d\n$`,
}

// TestExamples runs every example, and finds it in the list.
func TestExamples(t *testing.T) {
	list := must.Get(os.ReadFile("README.md"))(t)
	entries := must.Get(os.ReadDir("."))(t)
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(e.Name(), "main.go")); err != nil { // the tutorial is followed by a test of cmd/dahl
			continue
		}
		want, ok := outputs[e.Name()]
		if !ok || !strings.Contains(string(list), "`go run ./examples/"+e.Name()+"`") {
			t.Errorf("%s is not in the table of outputs, or not in README.md", e.Name())
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			out, err := exec.Command("go", "run", "./"+e.Name()).CombinedOutput()
			if err != nil || !regexp.MustCompile(want).Match(out) {
				t.Errorf("%v; it printed\n%s", err, out)
			}
		})
	}
}
