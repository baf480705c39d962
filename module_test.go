package dahl_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// maxForeignLines is how long a program may be that predicts, trains, compares, and brings a
// policy.
const maxForeignLines = 60

// TestForeignModule vets and runs a program of another module, which has nothing but what
// packages export. Its own policy is simulated and executed, and the weights are those of
// HEFT, to the last bit. It needs no network: the checksums are those of dahl.
func TestForeignModule(t *testing.T) {
	const folder = "testdata/module"
	text, err := os.ReadFile(filepath.Join(folder, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("\n")); n >= maxForeignLines {
		t.Errorf("the program has %d lines, want fewer than %d", n, maxForeignLines)
	}
	own := t.TempDir() // go writes what dahl requires into the files beside go.mod
	for from, to := range map[string]string{filepath.Join(folder, "go.mod"): "go.mod", "go.sum": "go.sum"} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(own, to), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var out []byte
	for _, verb := range []string{"vet", "run"} {
		cmd := exec.Command("go", verb, "-modfile="+filepath.Join(own, "go.mod"), ".")
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		if out, err = cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", verb, err, out)
		}
	}
	lines := regexp.MustCompile(`(?m)^(\w+): step of ([\d.e+-]+) ms predicted, ([\d.e+-]+) ms measured; test accuracy ([\d.]+) %; weights ([0-9a-f]{12})$`).FindAllStringSubmatch(string(out), -1)
	if len(lines) != 2 || lines[0][1] != "heft" || lines[1][1] != "random" {
		t.Fatalf("want a line of heft and one of random:\n%s", out)
	}
	for _, line := range lines {
		// One image in ten is guessed; an epoch teaches more than half.
		if accuracy, err := strconv.ParseFloat(line[4], 64); err != nil || accuracy < 50 || line[5] != lines[0][5] {
			t.Errorf("%s: accuracy %s %%, weights %s, want those of heft, %s", line[1], line[4], line[5], lines[0][5])
		}
		for _, step := range line[2:4] {
			if ms, err := strconv.ParseFloat(step, 64); err != nil || ms <= 0 {
				t.Errorf("%s: a step of %s ms", line[1], step)
			}
		}
	}
}
