package main

import (
	"os"
	"strings"
	"testing"

	"dahl/must"
	"dahl/plan/problem"
	"dahl/schedule/policy"
)

// TestPlan lays what a program says beside what contenders find of mlp on laptop. A plan of 3 mJ with a gap of 20 % has a bound of
// 2.5 mJ. No choice is better: 0.104 GFLOP take eight cores of 60.8 GF/s 0.21 ms, for which 6 + 15 W are 4.5 mJ, and at the
// slow clock 0.34 ms, for which 6 + 8 W are 4.7 mJ. A plan of 1 J is above each. A default of 3 ms is half more than 2 ms.
func TestPlan(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ value, row, summary string }{
		{"0.003", "| 3 | 2.5 | 20.00 | ", "Of 1 plans 0 are above the best choice by hand, and 0 above the climb."},
		{"1", "| 1000 | 833.33 | 20.00 | ", "Of 1 plans 1 are above the best choice by hand, and 1 above the climb."},
	} {
		said := `{"step_s": 0.003, "gap": 0.2, "chosen": {"devices": "cpu:2", "tiles": "default", "figures": {"value": ` + c.value + `}}}`
		must.Do(t, os.WriteFile("said.json", []byte(said), 0o666))
		must.Do(t, os.WriteFile("dahl", []byte("#!/bin/sh\ncat said.json\n"), 0o777))
		code, out, stderr := run(t, strings.Fields("plan --dahl ./dahl --networks mlp --platforms laptop --batches 32 --objectives energy --budgets 1s --hand 5 --climb 3 --out p.md")...)
		if code != 0 {
			t.Fatal(stderr)
		}
		must.Contain(t, out, "| laptop | mlp | 32 | energy, mJ | 1s "+c.row, "| cpu:2, tiles default |", c.summary)
		must.Contain(t, string(must.Get(os.ReadFile("p.md"))(t)), c.row, c.summary, "seed 1")
	}
	must.Do(t, os.WriteFile("said.json", []byte(`{"step_s": 0.003, "gap": 0.2, "chosen": {"figures": {"value": 0.002}}}`), 0o666))
	_, out, _ := run(t, strings.Fields("plan --dahl ./dahl --networks mlp --platforms laptop --batches 32 --objectives time --budgets 1s --hand 0 --default")...)
	must.Contain(t, out, "| 2 | 1.6667 | 20.00 |", "| 3 | 50.00 |", "Of 1 plans 0 are above", "Of 1 defaults of simulate 1 are above 1.1 times the plan.")
}

// TestPlanBudgets: the plan of a larger budget has a gap and a strategy of its own, 3 mJ no less than 3/1.5 = 2 and 2 mJ no less than 2/1.25 = 1.6.
func TestPlanBudgets(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.WriteFile("1s.json", []byte(`{"gap": 0.5, "chosen": {"devices": "cpu:2", "tiles": "default", "figures": {"value": 0.003}}}`), 0o666))
	must.Do(t, os.WriteFile("2s.json", []byte(`{"gap": 0.25, "chosen": {"devices": "cpu:4", "strategy": "1f1b:2x4", "figures": {"value": 0.002}}}`), 0o666))
	must.Do(t, os.WriteFile("dahl", []byte("#!/bin/sh\ncat $5.json\n"), 0o777)) // plan --objective energy --budget 1s
	_, out, stderr := run(t, strings.Fields("plan --dahl ./dahl --networks mlp --platforms laptop --batches 32 --objectives energy --budgets 1s,2s --hand 0")...)
	must.Contain(t, out+stderr, "| 1s | 3 | 2 | 50.00 |", "| cpu:2, tiles default |", "| 2s | 2 | 1.6 | 25.00 |", "| cpu:4, strategy 1f1b:2x4 |")
}

// TestContenders: a hill climb begins with HEFT's plan of default tiles on all devices, and more evaluations and equal seeds find
// nothing worse. Choices by hand do not depend on goroutines.
func TestContenders(t *testing.T) {
	c := must.Get(newContender("manycore", "", "mlp", 8))(t)
	w := must.Get(c.on(""))(t)
	f := found{lowering: *w.Lowering, policy: policy.HEFT}
	must.Do(t, c.run(t.Context(), &f, longRun))
	last := problem.Energy.Of(f.Time, f.Joules)
	for _, evaluations := range []int{1, 10, 20} {
		got, again := must.Get(c.climb(t.Context(), problem.Energy, evaluations, 2))(t), must.Get(c.climb(t.Context(), problem.Energy, evaluations, 2))(t)
		if got.value > last*1.001 || got.value != again.value || evaluations == 1 && got.value != last { // a shorter run chooses
			t.Errorf("after %d evaluations %v, then %v, before %v J", evaluations, got.value, again.value, last)
		}
		last = got.value
	}
	hand, again := must.Get(c.byHand(t.Context(), 7, 2))(t), must.Get(c.byHand(t.Context(), 7, 2))(t)
	for i := range hand {
		if hand[i].Step != again[i].Step || hand[i].String() != again[i].String() {
			t.Errorf("choice %d is %s, then %s", i, &hand[i], &again[i])
		}
	}
}
