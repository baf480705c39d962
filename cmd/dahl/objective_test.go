package main

import (
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/plan/certificate"
	"dahl/rundir"
)

// TestObjective: plan finds the optima of the graph of the HEFT paper, which come from outside, says so
// in both forms, and simulate repeats them with the plan that it wrote and with those that are kept.
func TestObjective(t *testing.T) {
	data := must.Get(filepath.Abs("../../plan/exact/testdata"))(t)
	t.Chdir(t.TempDir())
	type numbers struct {
		Objective   string
		MakespanS   float64 `json:"makespan_s"`
		LowerBoundS float64 `json:"lower_bound_s"`
		LowerBoundJ float64 `json:"lower_bound_j"`
		Gap         float64
		Proven      bool
		EnergyJ     struct{ Total float64 } `json:"energy_j"`
	}
	run := func(args ...string) (n numbers) {
		t.Helper()
		must.Do(t, json.Unmarshal([]byte(mustRun(t, args...)), &n))
		return n
	}
	for _, c := range []struct {
		machine, objective string
		want               float64
	}{{"heft", "time", 73}, {"heft", "energy", 1136.2}, {"heft-clocks", "energy", 1019.2}} {
		on := []string{"--platform", filepath.Join(data, c.machine+".toml"), "--graph", filepath.Join(data, "heft10.json"), "--json"}
		value := func(n numbers) float64 {
			if c.objective == "time" {
				return n.MakespanS
			}
			return n.EnergyJ.Total
		}
		n := run(append([]string{"plan", "--objective", c.objective, "--out", "p"}, on...)...)
		bound := n.LowerBoundJ
		if c.objective == "time" {
			bound = n.LowerBoundS
		}
		if math.Abs(value(n)-c.want) > 0.05 || math.Abs(bound-c.want) > 0.05 || !n.Proven || n.Gap != 0 || n.Objective != c.objective {
			t.Errorf("plan for %s on %s: %+v; the least is %v", c.objective, c.machine, n, c.want)
		}
		for _, plan := range []string{"p/plan.json", filepath.Join(data, c.machine+"-"+c.objective+".plan.json")} {
			if got := value(run(append([]string{"simulate", "--plan", plan, "--steps", "1", "--out", "s"}, on...)...)); math.Abs(got-c.want) > 0.05 {
				t.Errorf("simulate --plan %s: %v, the least is %v", plan, got, c.want)
			}
		}
	}
	on := []string{"plan", "--platform", filepath.Join(data, "heft-clocks.toml"), "--graph", filepath.Join(data, "heft10.json"), "--out", "p", "--objective", "energy"}
	must.Contain(t, mustRun(t, append(on, "--clock", "P1=fast", "--clock", "P2=fast", "--clock", "P3=fast")...), "optimum   energy 1136.2 J, proven: of these tasks on 7 sets of devices no plan has less (")
	if out := mustRun(t, append(on, "--budget", "1000 nodes")...); !strings.Contains(out, "not proven: of these tasks on 7 sets of devices no plan has less than") || !strings.Contains(out, " nodes)") {
		t.Errorf("with 1000 nodes:\n%s", out)
	}
	must.Contain(t, mustRun(t, append(on, "--budget", "1h")...), "optimum   energy 1019.2 J, proven")
	wantRefused(t, "rerun p", "p was given 1 h to search")
	must.Contain(t, mustRun(t, append(on, "--budget", "1ns")...), "not proven: of these tasks on 7 sets of devices no plan has less than")
}

// TestObjectiveOfLargeGraph: of a graph that is too large to search the best plan of the policies is
// taken, with a bound that a certificate proves. Verify proves it again, and refuses one that claims more, or
// is of other choices than the plan's. A layer that is cut otherwise than the others saves energy here.
func TestObjectiveOfLargeGraph(t *testing.T) {
	t.Chdir(t.TempDir())
	objectives := []string{"energy", "time", "edp"}
	if testing.Short() {
		objectives = objectives[:1]
	}
	for _, objective := range objectives {
		var n struct {
			StepS        float64 `json:"steady_step_s"`
			StepJ        float64 `json:"steady_step_j"`
			LowerBoundS  float64 `json:"lower_bound_s"`
			LowerBoundJ  float64 `json:"lower_bound_j"`
			LowerBoundJS float64 `json:"lower_bound_js"`
			Gap          float64
			Proven       bool
		}
		out := mustRun(t, "plan", "--platform", "manycore", "--model", "mlp", "--batch", "64", "--objective", objective, "--budget", "20000 nodes", "--json", "--out", objective)
		must.Do(t, json.Unmarshal([]byte(out), &n))
		value, bound := n.StepS, n.LowerBoundS
		switch objective {
		case "energy":
			value, bound = n.StepJ, n.LowerBoundJ
		case "edp":
			value, bound = n.StepJ*n.StepS, n.LowerBoundJS
		}
		if math.Abs(n.Gap-(value/bound-1)) > 1e-9 || n.Gap < 0 || n.Gap > 0.4 {
			t.Errorf("%s: gap %v of %v above %v", objective, n.Gap, value, bound)
		}
		wantVerified(t, objective)
	}
	file := filepath.Join("energy", rundir.CertificateFile)
	c := must.Get(cli.ReadJSON[certificate.Certificate](file))(t)
	refused := func(want string) {
		t.Helper()
		text := must.Get(json.Marshal(c))(t)
		writeTestFile(t, file, string(text))
		wantEnd(t, cli.ExitFailed, "verify energy", want)
	}
	before := c.Leaves[0].Claims[0].Bound
	c.Leaves[0].Claims[0].Bound *= 1.001
	refused("it claims that no plan takes less energy than")
	c.Leaves[0].Claims[0].Bound = before
	c.Layers.Leaves[0].Bounds[0] *= 1.001
	refused("bound for all lowerings: it claims that no plan takes less energy than")
	c.Layers.Leaves[0].Bounds[0] /= 1.001

	m := must.Get(record.ReadManifest("energy"))(t)
	graph := m.Graphs[0].SHA256
	for i := range c.Leaves {
		if c.Leaves[i].Graph == graph {
			c.Leaves[i].Graph = strings.Repeat("0", len(graph))
		}
	}
	refused("no leaf bounds plans of the run's graph")
}
