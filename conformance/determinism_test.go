package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"

	"dahl/energy"
	"dahl/must"
	"dahl/schedule"
	"dahl/schedule/codec"
)

// simulations cover one memory and several, transfers, and each policy.
var simulations = []struct{ platform, model, policy string }{
	{"laptop", "lenet5", "heft"},
	{"server", "digits-cnn", "dmda"},
	{"server", "mlp", "heft"},
	{"manycore", "dahl32", "eager"},
}

// TestSimulatingTwiceGivesTheSameBytes goes from the model to the files twice in one
// process, where maps are visited in other orders each time.
func TestSimulatingTwiceGivesTheSameBytes(t *testing.T) {
	for _, c := range simulations {
		first, again := simulationFiles(t, c.platform, c.model, c.policy), simulationFiles(t, c.platform, c.model, c.policy)
		for name, want := range first {
			if !bytes.Equal(again[name], want) || len(want) == 0 {
				t.Errorf("%v: %s differs the second time, or is empty", c, name)
			}
		}
	}
}

// simulationFiles lowers, simulates and writes everything that follows from it.
func simulationFiles(t *testing.T, platformName, model, policy string) map[string][]byte {
	t.Helper()
	p := shipped(t, platformName)
	g := trainingStep(t, model, 23, p)
	d := decided(t, program(g), how{platform: p, policy: policy})
	s := simulated(t, d, 0, 3)
	report := must.Get(energy.FromSchedule(s, d.Problem(0, 3, false)))(t)
	plans := []*schedule.Plan{schedule.PlanFrom(s, policy, g)}
	plan := decided(t, program(g), how{platform: p, plans: plans}).Graphs[0].Plan
	files := map[string][]byte{}
	note := func(name string, write func(*bytes.Buffer) error) {
		var b bytes.Buffer
		must.Do(t, write(&b))
		files[name] = b.Bytes()
	}
	note("graph", func(b *bytes.Buffer) error { return g.WriteJSON(b) })
	note("schedule", func(b *bytes.Buffer) error { return codec.WriteSchedule(b, s, g, p) })
	note("plan", func(b *bytes.Buffer) error { return codec.WritePlan(b, plan, g, p) })
	note("energy", func(b *bytes.Buffer) error { return json.NewEncoder(b).Encode(report) })
	return files
}

// TestSimulateWritesTheSameFilesAtEveryLevel runs the command as built for
// GOAMD64=v1 and as built for v3, where the compiler fuses multiplications with
// additions, and compares all files: schedule, energy, plan, figures, manifest.
func TestSimulateWritesTheSameFilesAtEveryLevel(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the command twice, 30 s")
	}
	dir := t.TempDir()
	v1 := buildCommand(t, dir, "v1")
	second := v1
	if runtime.GOARCH == "amd64" && cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI1 && cpu.X86.HasBMI2 {
		second = buildCommand(t, dir, "v3")
	} else {
		t.Logf("this machine, %s, cannot run code for GOAMD64=v3: only v1 is compared, with itself", runtime.GOARCH)
	}
	for i, c := range simulations {
		args := []string{"simulate", "--platform", c.platform, "--model", c.model, "--policy", c.policy, "--batch", "23", "--steps", "3"}
		var outputs []map[string]string
		for k, program := range []string{v1, second} {
			out := filepath.Join(dir, fmt.Sprintf("run.%d.%d", i, k))
			if text, err := exec.Command(program, append(args, "--out", out)...).CombinedOutput(); err != nil {
				t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, text)
			}
			outputs = append(outputs, readTree(t, out))
		}
		for _, name := range []string{"schedule.json", "energy.json", "plan.json", "manifest.json", "gantt.svg"} {
			if outputs[0][name] == "" {
				t.Errorf("%v: no %s", c, name)
			}
		}
		if len(outputs[1]) != len(outputs[0]) {
			t.Errorf("%v: %d files, built for v3 %d", c, len(outputs[0]), len(outputs[1]))
		}
		for name, want := range outputs[0] {
			if outputs[1][name] != want {
				t.Errorf("%v: %s differs built for v3", c, name)
			}
		}
	}
}

// buildCommand compiles cmd/dahl, without the stamp of the working tree, which
// others may change meanwhile.
func buildCommand(t *testing.T, dir, level string) string {
	t.Helper()
	path := filepath.Join(dir, "dahl."+level)
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "dahl/cmd/dahl")
	build.Env = append(os.Environ(), "GOAMD64="+level)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building for GOAMD64=%s: %v\n%s", level, err, text)
	}
	return path
}

// readTree reads all files under a directory by their relative names.
func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must.Do(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(data)
		return err
	}))
	return files
}
