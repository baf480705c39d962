package simulate

import (
	"context"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// how says by what a problem of a test is decided, and what differs from its costs. One of
// the first two is set.
type how struct {
	policy policy.Online
	plan   *schedule.Plan
	Options
}

// run decides a problem and simulates it.
func run(p *schedule.Problem, h how) (*schedule.Schedule, error) {
	d, err := decided(p, h)
	if err != nil {
		return nil, err
	}
	return Run(context.Background(), d, 0, p.Steps, h.Options)
}

// decided is a decision with the orders and places that the problem has: a policy gets no
// others, and a plan only those that its copies need.
func decided(p *schedule.Problem, h how) (*schedule.Decision, error) {
	if err := p.Platform.Complete(); err != nil { // tests change it
		return nil, err
	}
	priced, err := priceOf(p)
	if err != nil {
		return nil, err
	}
	if h.policy != nil {
		if !priced.DecidesLater(h.policy) {
			return priced.Decide(schedule.Choice{Policy: h.policy})
		}
		return &schedule.Decision{Priced: priced, Policy: h.policy, Graphs: []schedule.Decided{{Problem: *p, Timed: p.Costs}}}, nil
	}
	d, err := priced.Decide(schedule.Choice{Plans: []*schedule.Plan{h.plan}})
	if err == nil && d.Graphs[0].Placed.Links == p.Graph.Links {
		d.Graphs[0].Problem = *p
		d.Graphs[0].Problem.Plan = h.plan
	}
	return d, err
}

func priceOf(p *schedule.Problem) (*schedule.Priced, error) {
	return schedule.Price(&dag.Program{Name: p.Graph.Name, Graphs: []*dag.Graph{p.Graph}}, p.Platform, schedule.Unbound)
}

// mustDecide is a decision that has to be possible.
func mustDecide(t *testing.T, p *schedule.Problem, plan *schedule.Plan) *schedule.Decision {
	t.Helper()
	d := must.Get(decided(p, how{plan: plan}))(t)
	return d
}

func problem(t testing.TB, g *dag.Graph, p *platform.Platform, steps int) *schedule.Problem {
	t.Helper()
	priced := must.Get(schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
	return priced.Problem(0, steps)
}

// lowerBound is that of what the problem is about, whatever orders it has.
func lowerBound(t testing.TB, p *schedule.Problem) time.Duration {
	t.Helper()
	priced := must.Get(priceOf(p))(t)
	return priced.LowerBound(0, p.Steps)
}

// dynamic is a policy of the table that decides at run time.
func dynamic(t testing.TB, name string) policy.Online {
	t.Helper()
	found := must.Get(policy.ByName(name))(t)
	return found.(policy.Online)
}

// by is the policy of a scheduler, for one run.
func by(s policy.Scheduler) policy.Online {
	return policy.NewOnline(schedule.Doc{Name: "test"}, func(*schedule.Problem) policy.Scheduler { return s })
}
