package main

import (
	"os"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/platforms"
)

// TestRecomputationMakesRoom: a plan that does not fit a memory is refused with the layers that make it fit if they are
// recomputed, and with these it does. In cifar-cnn, which needs 62 MB, the largest output is that of conv1 with its ReLU, 64·32·32·32
// numbers of 4 bytes, 8.4 MB. Its place is that of as large gradients later, so that a memory of 61 MB is enough without it. None is of 20 MB,
// since the weights with their velocity and the samples have 23.5.
func TestRecomputationMakesRoom(t *testing.T) {
	t.Chdir(t.TempDir())
	source := must.Get(platforms.Open("laptop"))(t)
	const advice = "it fits with recompute = true for conv1 in a file for --lowering"
	network := []string{"--platform", "small.toml", "--model", "cifar-cnn"}
	for _, c := range []struct{ capacity, lowering string }{{"20 MB", ""}, {"61 MB", advice}} {
		writeTestFile(t, "small.toml", strings.Replace(string(source), `"16 GB"`, `"`+c.capacity+`"`, 1))
		r := wantEnd(t, cli.ExitBadInput, "simulate --policy heft "+strings.Join(network, " "), c.lowering)
		if strings.Contains(r.stderr, "recompute") != (c.lowering != "") {
			t.Errorf("%s: %q; want %q", c.capacity, r.stderr, c.lowering)
		}
	}
	mustRun(t, append([]string{"graph", "--export", "layers.toml"}, network...)...)
	lowering := must.Get(os.ReadFile("layers.toml"))(t)
	writeTestFile(t, "layers.toml", strings.Replace(string(lowering), "[layer.\"conv1\"]\n", "[layer.\"conv1\"]\nrecompute = true\n", 1))
	s := decoded[record.Summary](t, mustRun(t, append([]string{"simulate", "--json", "--lowering", "layers.toml"}, network...)...))
	if got := s.ReservedBytes["ram"]; got == 0 || got > 61e6 {
		t.Errorf("%d bytes are reserved, of 61 MB", got)
	}
	must.Contain(t, mustRun(t, append([]string{"graph", "--lowering", "layers.toml", "--export", "again.toml"}, network...)...), "recompute")
	if exported, err := os.ReadFile("again.toml"); err != nil || strings.Count(string(exported), "recompute = true\n") != 1 {
		t.Errorf("%v: exported is\n%s", err, exported)
	}
}
