package main

import (
	"encoding/csv"
	"os"
	"strings"
	"testing"

	"dahl/must"
)

// perseusProfile has one stage. With little time the backward pass goes at the fast clock, since it saves more time for a joule.
const perseusProfile = "stage,instruction,frequency,time,energy\n0,forward,1400,0.001,2\n0,forward,700,0.002,1\n0,backward,1400,0.002,3\n0,backward,700,0.005,2\n"

// TestClocksOfProfile imports a profile of Perseus', plans its clocks and writes the table that a setter of clocks follows. In 4 ms either pass
// may be slow, but not both, in 7 ms both.
func TestClocksOfProfile(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "p.csv", perseusProfile)
	out := mustRun(t, "import", "p.csv", "--out", "p.json")
	if !strings.Contains(out, "p.json: 2 tasks, 1 edges, 0 B along them; a machine of 1 device, 0 links and 0 models; zeus with") {
		t.Errorf("import says %s", out)
	}
	for deadline, want := range map[string]string{"4ms": "forward 700 backward 1400", "7ms": "forward 700 backward 700", "3ms": "forward 1400 backward 1400"} {
		mustRun(t, "plan", "--platform", "p.toml", "--graph", "p.json", "--objective", "energy", "--deadline", deadline, "--steps", "1", "--out", "plan")
		mustRun(t, "trace", "plan", "--format", "clocks")
		file := must.Get(os.Open("plan/clocks.csv"))(t)
		defer file.Close()
		var got []string
		for _, line := range must.Get(csv.NewReader(file).ReadAll())(t)[1:] {
			got = append(got, line[2], line[6])
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("clocks by %s: %s, want %s", deadline, text, want)
		}
	}
}

// TestExports: a graph and its machine go into formats of others and come back.
func TestExports(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "bare.toml", importPlatform)
	writeTestFile(t, "chain.dot", "digraph { a [size=1e6]; b [size=2e6]; a -> b [size=5e6] }")
	mustRun(t, "import", "chain.dot", "--out", "chain.json")
	// 1 and 2 Mflop at 1 Gflop/s are 1 and 2 ms.
	for file, want := range map[string]string{
		"w.wf.json": `"runtimeInSeconds": 0.002`, "t.rec": "EndTime: 2\n", "d.simgrid.dot": `"a" -> "b" [size="5000000"]`, "m.xml": `<host id="accelerator" speed="1000000000f"`,
	} {
		mustRun(t, "graph", "--graph", "chain.json", "--platform", "bare.toml", "--export", file)
		if text := string(must.Get(os.ReadFile(file))(t)); !strings.Contains(text, want) {
			t.Errorf("%s holds\n%s\nwant %q", file, text, want)
		}
		mustRun(t, "import", file)
	}
	wantRefused(t, "graph --graph chain.json --export m.xml", "name it with --platform")
	wantRefused(t, "graph --graph chain.json --export chain.gml", `--export "chain.gml": end the name in .simgrid.dot`)
}
