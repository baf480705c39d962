package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/rundir"
)

// twoUnits is a machine on which a task takes what its graph says.
const twoUnits = `name = "two"
[[memory]]
name = "ram"
bandwidth = "1 GB/s"
[[device]]
name = "cpu"
kind = "cpu"
memory = "ram"
count = 2
power = { idle = "1 W", busy = "2 W" }
`

// TestPlanEnded: wherever a search ends, a plan that is written is the best until then, and its directory is sound.
func TestPlanEnded(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.toml", twoUnits)
	writeTestFile(t, "chain.dot", `digraph { a [weight=2]; b [weight=3.5]; a -> b [weight=1] }`)
	whole, cut := 0, 0
	for n, ended := 1, true; ended; n += 1 + n/8 {
		o := flags.Options{Platform: "two.toml", Graph: "chain.dot", Objective: "energy", Budget: 100, DType: "float32", Policy: flags.BestPolicy, Steps: 2}
		ctx, out := must.EndsAtLook(t, n), fmt.Sprint("plan", n)
		err := runPlan(ctx, io.Discard, &o, &flags.Output{Dir: out})
		if ended = ctx.Context.Err() != nil; errors.Is(err, context.Canceled) != ended {
			t.Errorf("after %d looks: %v", n, err)
		}
		if !there(out) {
			continue
		}
		if err := rundir.Verify(out); err != nil {
			t.Errorf("after %d looks: %v", n, err)
		}
		if manifestOf(t, out).Interrupted {
			cut++
		} else {
			whole++
		}
	}
	if whole == 0 || cut == 0 {
		t.Errorf("%d plans are whole, and %d the best until then: the test tests little", whole, cut)
	}
}

// TestPlanIsNoWorseThanSimulate: with a budget for one node a plan takes no longer than what simulate takes by default, which is one GPU
// of four. All devices together, with which the search begins, take twice that.
func TestPlanIsNoWorseThanSimulate(t *testing.T) {
	t.Chdir(t.TempDir())
	var planned, usual record.Summary
	decodeObject(t, mustRun(t, strings.Fields("plan --platform nvlink --model lenet5 --objective time --budget 1node --json --out p")...), &planned)
	decodeObject(t, mustRun(t, strings.Fields("simulate --platform nvlink --model lenet5 --json --out s")...), &usual)
	if planned.StepS > 1.001*usual.StepS {
		t.Errorf("a step takes %v s, and %v s by default", planned.StepS, usual.StepS)
	}
}

// TestSearchSaysHowLong: without a terminal a long search says in a line how long it may take, and a time that is given is said
// beside what was taken. Of a graph that is searched at once there is nothing to say.
func TestSearchSaysHowLong(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.toml", twoUnits)
	writeTestFile(t, "two.json", twoTasks)
	line := strings.Fields("plan --platform two.toml --graph two.json --objective time --out p")
	for more, want := range map[string]string{
		"--steps 1": "", "--steps 2": "dahl: the search looks at up to 200,000 nodes, which takes ", "--steps 2 --budget 9nodes": "", "--steps 2 --budget 1h": "dahl: the search may take 1 h\n",
	} {
		r := dahl(t, t.Context(), append(line, strings.Fields(more)...)...)
		if r.code != 0 || !strings.HasPrefix(r.stderr, want) || strings.Count(r.stderr, "\n") != min(1, len(want)) {
			t.Errorf("%s: exit code %d, %q, want %q", more, r.code, r.stderr, want)
		}
		if said := strings.Contains(r.stdout, "\nbudget    of 1 h it took "); said != strings.HasSuffix(more, "1h") {
			t.Errorf("%s:\n%s", more, r.stdout)
		}
	}
}
