package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/runs"
	"dahl/must"
	"dahl/naming"
	"dahl/nn/npz"
)

// TestCompareAnyRuns lays three runs of a graph beside each other that takes 3 + 4 ms: one step, five of them, and
// one with a second task of 11 ms. So the steps' times are as 7 to 7 to 14, apart from dispatches of microseconds.
func TestCompareAnyRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.json", twoTasks)
	writeTestFile(t, "long.json", strings.Replace(twoTasks, "4000000", "11000000", 1))
	mustRun(t, "simulate", "--platform", "laptop", "--graph", "two.json", "--steps", "1", "--out", "one")
	mustRun(t, "simulate", "--platform", "laptop", "--graph", "two.json", "--steps", "5", "--out", "five")
	mustRun(t, "simulate", "--platform", "manycore", "--graph", "long.json", "--steps", "1", "--out", "long")

	c := decoded[runs.RunsComparison](t, mustRun(t, "compare", "one", "five", "long", "--out", ".", "--json"))
	inputs := map[string][]string{}
	for _, in := range c.Differ {
		inputs[in.Name] = in.Values
	}
	for name, want := range map[string][]string{
		"steps": {"1", "5", "1"}, "graph": {"two.json", "two.json", "long.json"}, "platform": {"laptop", "laptop", "manycore"},
	} {
		if !slices.Equal(inputs[name], want) {
			t.Errorf("%s: %v, want %v", name, inputs[name], want)
		}
	}
	for _, same := range []string{"command", "dtype", "seed"} {
		if v, differs := inputs[same]; differs {
			t.Errorf("%s is said to differ: %v", same, v)
		}
	}
	step := c.Figures[slices.IndexFunc(c.Figures, func(f runs.Figure) bool { return f.Name == "step" })]
	for i, want := range []float64{7e-3, 7e-3, 14e-3} {
		if got := *step.Values[i]; got < want || got > 1.02*want {
			t.Errorf("step of %s: %v s, want %v and dispatches", c.Runs[i], got, want)
		}
	}
	picture := must.Get(os.ReadFile(record.CompareFile))(t)
	for _, name := range c.Runs {
		if !strings.Contains(string(picture), name+": ") {
			t.Errorf("the picture does not name %s", name)
		}
	}
	text := mustRun(t, "compare", "one", "long")
	if !strings.Contains(text, "(×2)") || strings.Index(text, "two.json") > strings.Index(text, "step ") {
		t.Errorf("want the graphs first and a step twice as long:\n%s", text)
	}
	must.Contain(t, mustRun(t, "compare", "one", "one"), "equal inputs")
}

// TestCompareWeights: two trainings that differ in their seeds differ in nearly all weights, and a training from itself in none.
func TestCompareWeights(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	for seed := range 2 {
		mustRun(t, strings.Fields(fmt.Sprintf("execute --model tiny.toml --data digits --limit 6 --batch 3 --workers 1 --seed %d --out r%d", seed, seed))...)
	}
	must.Contain(t, mustRun(t, "compare", "r0", "r1"), "the weights differ; number by number: dahl compare r0/weights.npz r1/weights.npz\n")
	d := decoded[npz.Difference](t, mustRun(t, "compare", "r0/weights.npz", "r1/weights.npz", "--json", "--numbers", "2"))
	if d.Arrays == 0 || d.Differ < d.Numbers*9/10 || len(d.First) != 2 || len(d.Worst) != 2 || d.Worst[0].ULP < d.Worst[1].ULP {
		t.Errorf("they differ by %+v", d)
	}
	text := mustRun(t, "compare", "r0/weights.npz", "r1/weights.npz", "--numbers", "1")
	must.Contain(t, text, "differ    ", "\nfirst 1 ", "\nworst 1 ", fmt.Sprintf("[%s] ", naming.JoinInts(d.Worst[0].Index, ",")), " "+d.Worst[0].A+" ", " "+d.Worst[0].B+" ")
	must.Contain(t, mustRun(t, "compare", "r0/weights.npz", "r0/weights.npz"), "equal     ", ", to the last bit\n")
}
