package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/rundir/durable"
)

// importPlatform has no overheads, and a link that carries a byte in a nanosecond.
const importPlatform = `
name = "bare"
[[memory]]
name = "ram"
[[memory]]
name = "a0"
capacity = "8 MB"
[[device]]
name = "cpu"
kind = "cpu"
count = 2
memory = "ram"
speed = { float32 = "1 GF/s" }
[[device]]
name = "accelerator"
kind = "cuda"
memory = "a0"
speed = { float32 = "1 GF/s" }
[[link]]
name = "bus"
bandwidth = "1 GB/s"
[[route]]
from = "ram"
to = "a0"
links = ["bus"]
`

// imports are files, what import says of them, and how long a step takes on importPlatform.
var imports = []struct {
	file, text, flags, says string
	makespanS               float64
}{
	// Tasks of 20 and 3 units follow a dummy on two cores.
	{"two.stg", "2\n0 0 0\n1 20 1 0\n2 3 1 0\n3 0 2 1 2\n", "", "graph.json: 4 tasks, 4 edges, 0 B along them; stg with processing times as the time on every device, communication costs as bytes at 1 GB/s; a unit of time is 1ms", 20e-3},
	{"two.stg", "2\n0 0 0\n1 20 1 0\n2 3 1 0\n3 0 2 1 2\n", "--unit 1us", "a unit of time is 1µs", 20e-6},
	// 1 and 2 Mflop one after the other at 1 Gflop/s, where they need not move.
	{"chain.txt", "digraph { a [size=1e6]; b [size=2e6]; a -> b [size=5e6] }", "--format dot", "2 tasks, 1 edges, 5 MB along them; dot with size of nodes as flop, of edges as bytes\n", 3e-3},
	// 2 ms on a core, 3 ms to the accelerator, 1 ms there instead of 50, 4 ms back, 5 ms on a core.
	{"step.json", `{"nodes": [
		{"id": 0, "supportedOnFpga": 0, "cpuLatency": 2, "fpgaLatency": 0, "size": 0},
		{"id": 1, "supportedOnFpga": 1, "cpuLatency": 50, "fpgaLatency": 1, "size": 1000},
		{"id": 2, "supportedOnFpga": 0, "cpuLatency": 5, "fpgaLatency": 0, "size": 0}],
		"edges": [{"sourceId": 0, "destId": 1, "cost": 3}, {"sourceId": 1, "destId": 2, "cost": 4}]}`, "", "3 tasks, 2 edges, 7 MB along them; placement with", 15e-3},
	// Two tasks of 1 ms that take 5 MB each: what the first keeps leaves in 5 ms before the second starts.
	{"full.json", `{"nodes": [
		{"id": 0, "supportedOnFpga": 1, "cpuLatency": 50, "fpgaLatency": 1, "size": 5e6},
		{"id": 1, "supportedOnFpga": 1, "cpuLatency": 50, "fpgaLatency": 1, "size": 5e6}],
		"edges": [{"sourceId": 0, "destId": 1, "cost": 1}]}`, "", "2 tasks, 1 edges, 1 MB along them", 7e-3},
	// One layer in two mini-batches: 1 ms and 2 ms of each on a core of its own. Both backward tasks come before both updates, and these before both gathers.
	{"profile.txt", "a -- x -- forward_compute_time=1, backward_compute_time=2, activation_size=1, parameter_size=2", "--stash --minibatches 2", "8 tasks, 10 edges, 6 B along them; pipedream with compute times", 3e-3},
}

// TestImport simulates what import makes of files in each format.
func TestImport(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "bare.toml", importPlatform)
	for _, c := range imports {
		writeTestFile(t, c.file, c.text)
		out := mustRun(t, strings.Fields("import "+c.file+" --out graph.json "+c.flags)...)
		if !strings.Contains(out, c.says) || !strings.HasSuffix(out, "\nnext: dahl simulate --platform server --graph graph.json\n") {
			t.Errorf("import %s says\n%swant %q", c.file, out, c.says)
		}
		s := decoded[record.Summary](t, mustRun(t, "simulate", "--platform", "bare.toml", "--graph", "graph.json", "--out", "run", "--json"))
		if s.MakespanS != c.makespanS {
			t.Errorf("%s %s takes %v s, want %v", c.file, c.flags, s.MakespanS, c.makespanS)
		}
		mustRun(t, "simulate", "--platform", "server", "--graph", "graph.json", "--out", "run")
	}
}

// TestImportFlags: a flag that a file would not obey is refused, and the format is named.
func TestImportFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.stg", imports[0].text)
	writeTestFile(t, "p.csv", perseusProfile)
	writeTestFile(t, "rec.json", `{"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"cpu_op","pid":1,"tid":1,"name":"aten::mm","ts":100,"dur":30,"args":{}}]}`)
	for line, want := range map[string]string{
		"import rec.json --minibatches 4": "rec.json: a file of format kineto has no use for --minibatches; leave it out",
		"import rec.json --unit 1ms":      "has no use for --unit", "import rec.json --stash": "has no use for --stash", "import rec.json --wait-power 70W": "has no use for --wait-power",
		"import rec.json --alone": "name that by --step", "import two.stg --step 16": "two.stg: a file of format stg has no use for --step; leave it out",
		"import two.stg --ranks 8": "has no use for --ranks", "import two.stg --step 1 --alone": "has no use for --step", "import two.stg --extents 32=64": "has no use for --extents",
		"import p.csv --stash": "has no use for --stash",
	} {
		wantRefused(t, line, want)
	}
	mustRun(t, "import", "rec.json")
}

// TestImportBeside: the machine of a profile goes into the file beside the graph, where no model and no platform of the user's is lost.
func TestImportBeside(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "p.csv", perseusProfile)
	for name, text := range map[string]string{"lenet5": "name = \"mine\"\n", "bare": importPlatform} {
		writeTestFile(t, name+".toml", text)
		wantRefused(t, "import p.csv --out "+name+".json", name+".toml, and the file there is not one that an import wrote")
		if kept := string(must.Get(os.ReadFile(name + ".toml"))(t)); kept != text {
			t.Errorf("%s.toml holds %q, want what was there", name, kept)
		}
		if _, err := os.Stat(name + ".json"); err == nil {
			t.Errorf("%s.json was written without its machine", name)
		}
	}
	must.Do(t, os.Mkdir("dir.toml", 0o777))
	wantRefused(t, "import p.csv --out dir.json", "dir.toml")
	for range 2 { // the second replaces what the first has written
		mustRun(t, "import", "p.csv", "--out", "again.json")
	}
}

// TestImportFull: where the graph cannot be written, the machine beside it is not, either.
func TestImportFull(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "p.csv", perseusProfile)
	durable.Fault = func(op durable.Op, path string) error {
		if op == durable.OpWrite && path == "p.json" {
			return errors.New("the disk is full")
		}
		return nil
	}
	t.Cleanup(func() { durable.Fault = nil })
	if r := dahl(t, t.Context(), "import", "p.csv", "--out", "p.json"); r.code == cli.ExitOK || !strings.Contains(r.stderr, "the disk is full") {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
	if _, err := os.Stat("p.toml"); err == nil {
		t.Error("p.toml was written beside no graph")
	}
}

// TestImportKeeps: a file that cannot be read leaves what was there.
func TestImportKeeps(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "graph.json", "kept")
	writeTestFile(t, "bad.stg", "2\n0 1 0\n")
	wantRefused(t, "import bad.stg --out graph.json", "bad.stg:")
	if text, err := os.ReadFile("graph.json"); err != nil || string(text) != "kept" {
		t.Errorf("graph.json holds %q (%v), want what was there", text, err)
	}
}
