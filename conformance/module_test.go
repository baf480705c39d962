package conformance

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"dahl/must"
)

// maxForeignLines is how long a program may be that predicts, trains, compares, and brings a
// policy.
const maxForeignLines = 60

const foreignModule = "testdata/module"

// TestForeignModule runs a program of another module as README says, in an empty folder. It has nothing but what
// packages export. Its own policy is simulated and executed, and the weights are those of
// HEFT, to the last bit.
func TestForeignModule(t *testing.T) {
	text := must.Get(os.ReadFile(filepath.Join(foreignModule, "main.go")))(t)
	if n := bytes.Count(text, []byte("\n")); n >= maxForeignLines {
		t.Errorf("the program has %d lines, want fewer than %d", n, maxForeignLines)
	}
	lines := linesLike(runAsReadme(t), `^(\w+): step of ([\d.e+-]+) ms predicted, ([\d.e+-]+) ms measured; test accuracy ([\d.]+) %; weights ([0-9a-f]{12})$`)
	if len(lines) != 2 || lines[0][1] != "heft" || lines[1][1] != "random" {
		t.Fatalf("want a line of heft and one of random: %q", lines)
	}
	for _, line := range lines {
		// One sample in ten is guessed; an epoch teaches more than half.
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

// TestForeignLayer does the same with a program that brings layers and their kernels, among them normalisations, an
// embedding and the whole numbers that it reads. It is predicted and trained by two policies to the same
// weights, cut along samples, and by a plan that a search finds. Its own tests compare gradients with differences.
func TestForeignLayer(t *testing.T) {
	lines := linesLike(runLayer(t), `^(\w+): step of ([\d.e+-]+) ms predicted; test accuracy ([\d.]+) %; weights ([0-9a-f]{12})$`)
	if len(lines) != 4 {
		t.Fatalf("want four lines: %q", lines)
	}
	for _, line := range lines {
		if accuracy, err := strconv.ParseFloat(line[3], 64); err != nil || accuracy < 50 {
			t.Errorf("%s: accuracy %s %%", line[1], line[3])
		}
		if ms, err := strconv.ParseFloat(line[2], 64); err != nil || ms <= 0 {
			t.Errorf("%s: a step of %s ms", line[1], line[2])
		}
	}
	if lines[0][4] != lines[1][4] { // the others may sum in another order
		t.Errorf("weights %s by %s and %s by %s", lines[0][4], lines[0][1], lines[1][4], lines[1][1])
	}
}

// runAsReadme types the commands of README for a module of its own in an empty folder, and returns what they print. A workspace reads the go.mod
// of all modules, also of those that only GPUs need, which go may have to fetch.
func runAsReadme(t *testing.T) []byte {
	t.Helper()
	readme, root := string(must.Get(os.ReadFile("../README.md"))(t)), must.Get(filepath.Abs(".."))(t)
	commands := regexp.MustCompile(`(?m)^    go mod init .*\n(?:    .*\n)+`).FindString(readme)
	cmd := exec.Command("sh", "-ec", strings.ReplaceAll(commands, "/path/to/dahl", root))
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GOFLAGS=", "GOWORK=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the commands of README\n%s: %v\n%s", commands, err, out)
	}
	return out
}

// linesLike finds the lines of an expression.
func linesLike(out []byte, line string) [][]string {
	return regexp.MustCompile("(?m)"+line).FindAllStringSubmatch(string(out), -1)
}

// runLayer vets (not in short tests: the facts about all that is imported take ten seconds), tests and runs the program with layers, and
// returns what it prints. It needs no network: the checksums are those of dahl.
func runLayer(t *testing.T) []byte {
	t.Helper()
	own := t.TempDir() // go writes what dahl requires into the files beside go.mod
	for from, to := range map[string]string{filepath.Join(foreignModule, "go.mod"): "go.mod", "../go.sum": "go.sum"} {
		data := must.Get(os.ReadFile(from))(t)
		must.Do(t, os.WriteFile(filepath.Join(own, to), data, 0o666))
	}
	var out []byte
	verbs := []string{"vet", "test", "run"}
	if testing.Short() {
		verbs = verbs[1:]
	}
	for _, verb := range verbs {
		cmd := exec.Command("go", verb, "-modfile="+filepath.Join(own, "go.mod"), "./layer")
		cmd.Dir, cmd.Env = foreignModule, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		var err error
		if out, err = cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", verb, err, out)
		}
	}
	return out
}
