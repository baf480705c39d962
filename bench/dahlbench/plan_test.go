package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/plan/best"
	"dahl/plan/exact"
	"dahl/plan/space"
	"dahl/schedule"
)

// A plan of 3 mJ with a bound of 2.5 mJ has a gap of 20 %. It is 50 % above a policy's 2 mJ, and no worse than one of
// 3 mJ, also where the last bit of a sum differs.
func TestPlanRow(t *testing.T) {
	row := func(plan, policy float64) *planRow {
		r := &planRow{machine: "laptop", network: "mlp", objective: exact.Energy, value: plan, leastValue: policy, found: &best.Result{Choice: space.Choice{Devices: "cpu:2"}}, sets: 3, allSets: 4}
		r.found.Bound, r.least.policy = 2.5e-3, schedule.PolicyInfo{Name: "heft"}
		return r
	}
	for _, c := range []struct {
		row  *planRow
		want string
		good bool
	}{
		{row(3e-3, 2e-3), "| 3 | 2.5 | 20.00 |  | 2 | -20.00 | 50.00 | **no** |", false},
		{row(3e-3, 3e-3*(1-1e-15)), "| 0.00 | yes |", true},
	} {
		if got := c.row.format(); !strings.Contains(got, c.want) || c.row.noWorse() != c.good {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
	table := planTable{rows: []*planRow{row(3, 2), row(2, 3)}}
	if got := table.summary(); !strings.Contains(got, "1 of 2 plans") || strings.Count(got, "laptop: 3 of 4") != 1 {
		t.Error(got)
	}
}

// Of four sets two at equal distances are the second and the last, all devices.
func TestSpreadOver(t *testing.T) {
	all := []string{"a", "b", "c", ""}
	if got := spreadOver(all, 2); !slices.Equal(got, []string{"b", ""}) {
		t.Errorf("%q", got)
	}
	for _, n := range []int{0, 4, 9} {
		if got := spreadOver(all, n); !slices.Equal(got, all) {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// The laptop has two clocks, and one where its name says so.
func TestOneClock(t *testing.T) {
	for name, want := range map[string]int{"laptop": 2, "laptop" + oneClock: 1} {
		p, err := planMachine(name)
		if err != nil || len(p.Devices[0].Clocks) != want {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

// A row has a bound that its certificate proves.
func TestPlanTable(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, stderr := run(t, strings.Fields("plan --networks digits-cnn --platforms laptop --objectives time --batch 8 --budget 500ms --sets 1 --out table.md")...)
	if code != cli.ExitOK || !strings.Contains(out, "| laptop | digits-cnn | time, ms |") {
		t.Fatalf("exit code %d, %s\n%s", code, stderr, out)
	}
	file, err := os.ReadFile("table.md")
	if err != nil || !strings.HasSuffix(string(file), out) {
		t.Errorf("%v: the file has\n%s\nprinted was\n%s", err, file, out)
	}
}
