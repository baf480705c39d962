package main

import (
	"os"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/must"
)

// TestDump: --dump prints the state after each pass, the same for simulate and plan, and keeps no run. A pass that there is not is
// refused in one line with those that there are.
func TestDump(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(command, pass string) string {
		return mustRun(t, command, "--platform", "server", "--model", "mlp", "--batch", "8", "--steps", "1", "--policy", "heft", "--dump", pass)
	}
	// A graph of tasks has its plan after plan, its costs after fix, and its transfers and places after place.
	for pass, has := range map[string][4]bool{
		"check": {}, "plan": {true}, "fix": {true, true}, "verify": {true, true}, "place": {true, true, true, true}, "layout": {true, true, true, true},
	} {
		out := run("simulate", pass)
		for i, text := range []string{"plan by heft\n  cpu0.0:\n    feed\n", "\n  fc1.forward[0:8,0:256]: cpu0 ", "ram0 to hbm", " in hbm0: network + 0\n"} {
			if strings.Contains(out, text) != has[i] {
				t.Errorf("the dump after %s has %q: %v\n%s", pass, text, !has[i], out)
			}
		}
		if !strings.HasPrefix(out, `graph "train" on "server": 20 tasks, `) || run("plan", pass) != out {
			t.Errorf("the dump after %s begins otherwise, or is another one by plan:\n%.80s", pass, out)
		}
	}
	// The ReLUs of mlp are part of the dense layers before them. Its step on a server is not split, so that no pass adds a task.
	if out, want := run("plan", "group"), "graph train\n  flatten1\n  fc1 + relu1\n  fc2 + relu2\n  fc3\n"; out != want {
		t.Errorf("groups are %s, want %s", out, want)
	}
	for _, pass := range []string{"tile", "expand", "stage", "stash", "recompute", "stream", "once"} {
		if out := run("simulate", pass); strings.Count(out, "\ntask ") != 20 {
			t.Errorf("after %s: %s", pass, out)
		}
	}
	for args, want := range map[string]string{
		"--dump fixx":       `pass "fixx" is not one of group, tile, expand, stage, stash, recompute, stream, once, check, plan, fix, verify, place, layout; did you mean fix`,
		"--dump fix --json": "--dump and --json exclude each other",
	} {
		r := dahl(t, t.Context(), append(strings.Fields("simulate --platform laptop --model mlp"), strings.Fields(args)...)...)
		if r.code != cli.ExitBadInput || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, want) || r.stdout != "" {
			t.Errorf("%s: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	if files := must.Get(os.ReadDir("."))(t); len(files) > 0 {
		t.Errorf("files %v", files)
	}
}
