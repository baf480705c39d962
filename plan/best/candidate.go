package best

import (
	"context"
	"math"
	"slices"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/plan/exact"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// first plans what the choice is compared by: with all policies, or quickly with HEFT.
func (c *candidate) first(ctx context.Context, o *Options) error {
	if !o.Quick {
		return c.planAll(ctx, o)
	}
	heft, err := schedule.PolicyByName("heft")
	if err != nil {
		panic("best: " + err.Error())
	}
	return c.try(ctx, o, heft)
}

// planAll keeps the best of what all policies plan. A step that runs alone and has few tasks goes to branch and
// bound, which looks at all plans.
func (c *candidate) planAll(ctx context.Context, o *Options) error {
	if !o.Steady && o.Deadline == 0 && len(c.priced.Program.Graphs[0].Tasks) <= exact.MaxTasks {
		return c.search(ctx, o)
	}
	for _, policy := range schedule.Policies() {
		if err := c.try(ctx, o, policy); err != nil {
			return err
		}
	}
	return nil
}

// search looks at all plans, as far as the nodes go.
func (c *candidate) search(ctx context.Context, o *Options) error {
	of := o.Options
	of.Clocks = o.clocks(c.priced.Platform)
	within, cancel := ctx, func() {}
	if o.Time > 0 {
		within, cancel = context.WithTimeout(ctx, o.Time/2)
	}
	defer cancel()
	found, err := exact.Search(within, c.priced, of)
	if err != nil {
		c.err = err
		return ctx.Err()
	}
	c.Plan, c.Makespan, c.Joules, c.Value = found.Plan, found.Makespan, found.Joules, found.Value
	c.Policy, c.bound, c.proven, c.nodes, c.plans = found.Plan.Policy, found.Bound, found.Proven, found.Nodes, 1
	return nil
}

// clocks lists the clocks that tasks may have, by device; nil: all.
func (o *Options) clocks(p *platform.Platform) [][]int32 {
	allowed := make([][]int32, len(p.Devices))
	for i := range p.Devices {
		if slices.Contains(o.Held, p.Devices[i].Name) {
			allowed[i] = []int32{int32(p.Devices[i].AtClock)}
		}
	}
	return allowed
}

// shortRun is how many steps tell plans apart that are far from each other.
const shortRun = 6

// try keeps what a policy plans, if it is the best. A policy that cannot is left out.
func (c *candidate) try(ctx context.Context, o *Options, policy schedule.PolicyInfo) error {
	made, err := planOf(ctx, c.priced, policy, o.Steady)
	if err != nil || made == nil {
		return err
	}
	before := c.Try
	if err := c.take(ctx, o, made, shortRun); err != nil {
		c.err = err
		return ctx.Err() // the plan cannot run
	}
	if c.Policy = policy.Name; before.Plan != nil && !better(&c.Try, &before) {
		c.Try = before
	}
	return nil
}

// better compares two plans of a choice. Where neither keeps the deadline, the shorter step is better.
func better(a, b *Try) bool {
	if math.IsInf(a.Value, 1) && math.IsInf(b.Value, 1) {
		return a.Makespan < b.Makespan
	}
	return a.Value < b.Value
}

// take simulates a plan and makes it that of the choice.
func (c *candidate) take(ctx context.Context, o *Options, plan *schedule.Plan, steps int) error {
	d, err := c.priced.Decide(schedule.Choice{Plans: []*schedule.Plan{plan}})
	if err != nil {
		return err
	}
	span, joules, err := worth(ctx, d, o.Steady, steps)
	if err != nil {
		return err
	}
	c.plans++
	c.Plan, c.Makespan, c.Joules, c.Value = plan, span, joules, o.Objective.Of(span, joules)
	if o.Deadline > 0 && span > o.Deadline {
		c.Value = math.Inf(1)
	}
	return nil
}

// worth is what a step takes: alone, or what it adds to so many steps and as many before them.
func worth(ctx context.Context, d *schedule.Decision, steady bool, steps int) (span time.Duration, joules float64, err error) {
	runs := []int{1}
	if steady {
		runs = []int{steps, 2 * steps}
	}
	for _, n := range runs {
		ran, err := simulate.Run(ctx, d, 0, n, simulate.Options{})
		if err != nil {
			return 0, 0, err
		}
		report, err := energy.FromSchedule(ran, d.Problem(0, n, false))
		if err != nil {
			return 0, 0, err
		}
		span, joules = ran.Makespan-span, report.TotalJoules-joules
	}
	if steady {
		span, joules = span/time.Duration(steps), joules/float64(steps)
	}
	return span, joules, nil
}

// planOf is what a policy plans, or did in a run; nil: it cannot.
func planOf(ctx context.Context, priced *schedule.Priced, policy schedule.PolicyInfo, steady bool) (*schedule.Plan, error) {
	if policy.Static == nil && policy.Dynamic == nil {
		return nil, nil
	}
	d, err := priced.Decide(schedule.Choice{Policy: policy})
	if err != nil {
		return nil, nil
	}
	graph := priced.Program.Graphs[0]
	order := [][]dag.TaskID(nil)
	if made := d.Graphs[0].Plan; made != nil {
		order = made.Order
	} else {
		steps := 1
		if steady {
			steps = 5 // of which PlanFrom takes the one in the middle
		}
		ran, err := simulate.Run(ctx, d, 0, steps, simulate.Options{})
		if err != nil {
			return nil, ctx.Err()
		}
		order = schedule.PlanFrom(ran, policy.Name, d.Graphs[0].Problem.Graph).Order
	}
	return &schedule.Plan{Policy: policy.Name, GraphHash: graph.Hash(), Order: order}, nil
}
