package main

import (
	"os"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/must"
)

// A node of one core: 30 W of the host, and 11 W of the core while it is busy.
const oneCoreNode = `name = "box"
host_power = { watts = "30 W" }
memory = [{ name = "ram" }]
device = [{ name = "cpu", kind = "cpu", memory = "ram", power = { idle = "1 W", busy = "11 W" } }]
`

// TestWhatIf: of two tasks of a second one core takes 2 s and 2 · 41 J. Two nodes take a second and as many joules.
func TestWhatIf(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "box.toml", oneCoreNode)
	writeTestFile(t, "one.toml", "name = \"one\"\nnode = [{ name = \"n\", platform = \"box.toml\", count = 1 }]\n")
	writeTestFile(t, "two.toml", "name = \"two\"\nnode = [{ name = \"n\", platform = \"box.toml\", count = 2 }]\nlink = [{ name = \"net\", from = \"n0\", to = \"n1\", bandwidth = \"1 GB/s\" }]\n")
	writeTestFile(t, "tasks.json", `{"format": "dahl-graph 1", "tasks": [{"name": "a", "ns": {"cpu": 1000000000}}, {"name": "b", "ns": {"cpu": 1000000000}}]}`)
	args := strings.Fields("plan --platform one.toml --graph tasks.json --policy heft --steps 1 --out p --what-if")
	text := mustRun(t, append(args, "two.toml")...)
	if want := "what-if   on two a step takes 1 s, 0.5 times the 2 s on one, and 82 J, 1 times the 82 J\n"; !strings.Contains(text, want) {
		t.Errorf("%s lacks %s", text, want)
	}
	mustRun(t, "verify", "p-what-if")
	mustRun(t, "rerun", "p")
	mustRun(t, "rerun", "p-what-if")
	if text := mustRun(t, append(args, "two.toml", "--json")...); !strings.Contains(text, `"what_if": {`) || !strings.Contains(text, `"times": 0.5`) {
		t.Errorf("%s does not compare", text)
	}
	must.Do(t, os.RemoveAll("p"))
	wantEnd(t, cli.ExitBadInput, strings.Join(append(args, "three.toml"), " "), `--what-if: platform "three.toml": no such file`)
	if _, err := os.Stat("p"); err == nil {
		t.Error("a plan was written before the other platform was read")
	}
}
