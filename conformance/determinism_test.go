package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"

	"dahl/dag"
	"dahl/energy"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
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
	note("schedule", func(b *bytes.Buffer) error { return schedule.WriteSchedule(b, s, g, p) })
	note("plan", func(b *bytes.Buffer) error { return schedule.WritePlan(b, plan, g, p) })
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

// TestOrderOfIndependentTasksDoesNotMatter builds real training steps in other
// program orders, random ones that keep every dependence: tasks have the same names,
// and the schedule is the same name for name, whatever the policy.
func TestOrderOfIndependentTasksDoesNotMatter(t *testing.T) {
	for _, c := range simulations {
		p := shipped(t, c.platform)
		g := trainingStep(t, c.model, 23, p)
		for _, policy := range []string{"eager", "dmda", "heft"} {
			want := spansByName(t, g, p, policy)
			for seed := range uint64(3) {
				other := inAnotherOrder(t, g, seed)
				if slices.EqualFunc(g.Tasks, other.Tasks, func(a, b dag.Task) bool { return a.Name == b.Name }) {
					t.Fatal("the order is the same")
				}
				if got := spansByName(t, other, p, policy); got != want {
					t.Errorf("%s on %s, %s, order %d: another schedule", c.model, c.platform, policy, seed)
				}
			}
		}
	}
}

// inAnotherOrder rebuilds a graph with its buffers and tasks added in a random order
// that the dependences within a step allow.
func inAnotherOrder(t *testing.T, g *dag.Graph, seed uint64) *dag.Graph {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 13))
	b := dag.NewBuilder(g.Name)
	for _, i := range rng.Perm(len(g.Buffers)) {
		if g.Buffers[i].ViewOf == dag.None {
			b.Buffer(g.Buffers[i])
		}
	}
	for _, buf := range g.Buffers {
		if buf.ViewOf != dag.None {
			owner, _ := b.BufferNamed(g.Buffers[buf.ViewOf].Name)
			b.View(buf.Name, owner, buf.Shape...)
		}
	}
	waits := make([]int, len(g.Tasks))
	var ready []dag.TaskID
	for i := range g.Tasks {
		if waits[i] = len(g.Preds(dag.TaskID(i))); waits[i] == 0 {
			ready = append(ready, dag.TaskID(i))
		}
	}
	for len(ready) > 0 {
		k := rng.IntN(len(ready))
		id := ready[k]
		ready = slices.Delete(ready, k, k+1)
		task := g.Tasks[id]
		task.Accesses = slices.Clone(task.Accesses)
		for i := range task.Accesses {
			task.Accesses[i].Buffer, _ = b.BufferNamed(g.Buffers[task.Accesses[i].Buffer].Name)
		}
		b.Task(task)
		for _, s := range g.Succs(id) {
			if waits[s]--; waits[s] == 0 {
				ready = append(ready, dag.TaskID(s))
			}
		}
	}
	return must.Get(b.Build())(t)
}

// spansByName simulates a graph and writes its schedule with names for indices.
func spansByName(t *testing.T, g *dag.Graph, p *platform.Platform, policy string) string {
	t.Helper()
	s := simulated(t, decided(t, program(g), how{platform: p, policy: policy}), 0, 3)
	var text strings.Builder
	for _, span := range s.Spans {
		fmt.Fprintln(&text, g.Tasks[span.Task].Name, span.Step, span.Worker, span.Ready, span.Start, span.End)
	}
	for _, tr := range s.Transfers {
		fmt.Fprintln(&text, g.Buffers[tr.Buffer].Name, tr.Bytes, tr.From, tr.To, g.Tasks[tr.For].Name, tr.Step, tr.Start, tr.End)
	}
	fmt.Fprintln(&text, s.Makespan, s.FirstStep, s.Period, s.PeakBytes, s.Memory)
	return text.String()
}
