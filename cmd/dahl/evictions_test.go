package main

import (
	"strings"
	"testing"
)

// tightNode is a core and an emulated GPU of 90 bytes; on the link a byte takes 1 ns.
const tightNode = `name = "tight"
[[memory]]
name = "ram"
[[memory]]
name = "vram"
capacity = "90 B"
[[device]]
name = "cpu"
kind = "cpu"
memory = "ram"
[[device]]
name = "gpu"
kind = "emulated"
memory = "vram"
copy_engines = { in = 1, out = 1 }
[[link]]
name = "bus"
bandwidth = "1 GB/s"
[[route]]
from = "ram"
to = "vram"
links = ["bus"]
`

// tightGraph reads three operands of 40 bytes, of which two fit the GPU.
const tightGraph = `{"format": "dahl-graph 1", "name": "tight",
 "buffers": [{"name": "x", "bytes": 40, "role": "input", "home": "host"}, {"name": "y", "bytes": 40, "role": "input", "home": "host"},
  {"name": "z", "bytes": 40, "role": "input", "home": "host"}],
 "tasks": [{"name": "a", "reads": ["x"], "ns": {"gpu": 10}}, {"name": "b", "reads": ["y"], "ns": {"gpu": 10}}, {"name": "c", "reads": ["z"], "ns": {"gpu": 10}}]}`

// With eager each of the three reads evicts the operand that the next but one needs: in
// two steps six reads fetch 40 bytes, and all but the first two evict 40. The schedule,
// written and read again, stands up to verify.
func TestSimulateCountsEvictions(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tight.toml", tightNode)
	writeTestFile(t, "tight.json", tightGraph)
	args := []string{"simulate", "--platform", "tight.toml", "--graph", "tight.json", "--policy", "eager", "--steps", "2", "--out", "run"}
	var s summary
	decodeObject(t, mustRun(t, append(args, "--json")...), &s)
	if s.Transfers != 6 || s.BytesMoved != 240 || s.Evictions == nil || *s.Evictions != (transferTotal{4, 160}) {
		t.Errorf("%d transfers of %d bytes and evictions %v; want 6, 240 and 4 of 160 bytes", s.Transfers, s.BytesMoved, s.Evictions)
	}
	if out := mustRun(t, append(args, "--verbose")...); !strings.Contains(out, "4 evictions of 160 B") {
		t.Errorf("no evictions in\n%s", out)
	}
	mustRun(t, "verify", "run")
}
