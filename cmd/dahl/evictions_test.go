package main

import (
	"strings"
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/plan"
)

// tightNode is a core and an emulated GPU of 150 bytes; on the link a byte takes 1 ns.
const tightNode = `name = "tight"
[[memory]]
name = "ram"
[[memory]]
name = "vram"
capacity = "150 B"
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

// tightGraph reads three operands of 40 bytes in turn. Places are aligned to 64 bytes, so that
// the GPU has two of them.
const tightGraph = `{"format": "dahl-graph 1", "name": "tight",
 "buffers": [{"name": "x", "bytes": 40, "role": "input", "home": "host"}, {"name": "y", "bytes": 40, "role": "input", "home": "host"},
  {"name": "z", "bytes": 40, "role": "input", "home": "host"}],
 "tasks": [{"name": "a", "reads": ["x"], "ns": {"gpu": 10}}, {"name": "b", "reads": ["y"], "ns": {"gpu": 10}}, {"name": "c", "reads": ["z"], "ns": {"gpu": 10}}]}`

// Two of the three operands share a place. In two steps the third is fetched once and these
// four times in turn, 40 bytes each, and each time they leave when they were read. The
// schedule, written and read again, stands up to verify.
func TestSimulateCountsEvictions(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tight.toml", tightNode)
	writeTestFile(t, "tight.json", tightGraph)
	args := []string{"simulate", "--platform", "tight.toml", "--graph", "tight.json", "--policy", "eager", "--steps", "2", "--out", "run"}
	s := decoded[record.Summary](t, mustRun(t, append(args, "--json")...))
	if s.Transfers != 5 || s.BytesMoved != 200 || s.Evictions == nil || *s.Evictions != (plan.TransferTotal{Count: 4, Bytes: 160}) {
		t.Errorf("%d transfers of %d bytes and evictions %v; want 5, 200 and 4 of 160 bytes", s.Transfers, s.BytesMoved, s.Evictions)
	}
	if out := mustRun(t, append(args, "--verbose")...); !strings.Contains(out, "4 evictions of 160 B") {
		t.Errorf("no evictions in\n%s", out)
	}
	mustRun(t, "verify", "run")
}
