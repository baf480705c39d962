package simulate

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/codec"
	"dahl/schedule/policy"
)

// FuzzPlanWithGraph reads a graph and a plan for it, decides, and simulates two steps. What is
// accepted gives a schedule that is sound and follows the plan; what is refused, one line.
func FuzzPlanWithGraph(f *testing.F) {
	p := twoMemories(f)
	g := pingPong(f)
	d := must.Get(priceAndPlan(g, p, nil))(f)
	recorded, bare := d.PlanOf(0, nil), &schedule.Plan{Order: d.Graphs[0].Plan.Order}
	var graph bytes.Buffer
	must.Do(f, g.WriteJSON(&graph))
	for _, plan := range []*schedule.Plan{recorded, bare} {
		var file bytes.Buffer
		must.Do(f, codec.WritePlan(&file, plan, g, p))
		f.Add(graph.String(), file.String())
	}
	f.Fuzz(func(t *testing.T, graph, file string) {
		g, err := dag.ReadJSON(strings.NewReader(graph), "graph")
		if refused(t, err) {
			return
		}
		plan, err := codec.ReadPlan(strings.NewReader(file), "plan", g, p)
		if refused(t, err) {
			return
		}
		d, err := priceAndPlan(g, p, plan)
		if refused(t, err) {
			return
		}
		s, err := Run(context.Background(), d, 0, 2, Options{})
		if refused(t, err) {
			return
		}
		if err := audit.Check(s, d.Problem(0, 2, false)); err != nil {
			t.Error(err)
		}
		if err := audit.Follows(s, d.Problem(0, 2, false), plan); err != nil {
			t.Error(err)
		}
	})
}

// priceAndPlan makes a decision by a plan; nil: by HEFT.
func priceAndPlan(g *dag.Graph, p *platform.Platform, plan *schedule.Plan) (*schedule.Decision, error) {
	priced, err := schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound)
	if err != nil {
		return nil, err
	}
	return priced.Decide(schedule.Choice{Policy: policy.HEFT, Plans: []*schedule.Plan{plan}})
}

// refused reports whether there is an error, which is one line.
func refused(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q is not one line", err)
	}
	return err != nil
}
