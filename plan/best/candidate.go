package best

import (
	"context"
	"math"
	"slices"
	"time"

	"dahl/dag"
	"dahl/plan"
	"dahl/plan/exact"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// first plans by HEFT what the choice is compared by. Where several GPUs are in the set,
// they get parts of the batch as well.
func (c *candidate) first(ctx context.Context, f *finder) error {
	c.planned = true
	if policy.HasStages(c.priced.Program.Graphs[0]) {
		return c.planByEach(ctx, f, c.orders())
	}
	policies := []schedule.Policy{policy.HEFT}
	if _, others := c.classes(); others > 1 {
		policies = append(policies, policy.DataParallel)
	}
	return c.planByEach(ctx, f, append(policies, c.apart()...))
}

// orders are the policies for stages: the one that a strategy names, HEFT for a strategy without an order, or else all orders.
func (c *candidate) orders() []schedule.Policy {
	if c.Strategy == "" {
		return policy.Pipelines()
	}
	if order := orderOf(c.Strategy); order != nil {
		return []schedule.Policy{order}
	}
	return []schedule.Policy{policy.HEFT}
}

// apart is the policy for processors together with other devices.
func (c *candidate) apart() []schedule.Policy {
	if processors, others := c.classes(); processors > 0 && others > 0 {
		return []schedule.Policy{policy.Apart}
	}
	return nil
}

// classes counts the devices that may run any task: processors and others.
func (c *candidate) classes() (processors, others int) { return c.units().classes() }

// planByAll keeps the best of what all policies plan.
func (c *candidate) planByAll(ctx context.Context, f *finder) error {
	c.planned, c.byAll = true, true
	return c.planByEach(ctx, f, append(policy.For(c.priced.Program.Graphs[0]), c.apart()...))
}

// planByEach keeps the best of what some policies plan. A brief search leaves out the others once some have taken all nodes.
func (c *candidate) planByEach(ctx context.Context, f *finder, policies []schedule.Policy) error {
	var known [][][]dag.TaskID
	for _, policy := range policies {
		order, err := c.planBy(ctx, f.Options, policy, known)
		if err != nil {
			return err
		}
		known = append(known, order)
		if f.Brief && c.plans*c.nodesOfPlan() > f.left {
			break
		}
	}
	return nil
}

// isSmall reports whether branch and bound can look at all plans.
func (c *candidate) isSmall(o *Options) bool {
	return !o.Steady && o.Deadline == 0 && len(c.priced.Program.Graphs[0].Tasks) <= exact.MaxTasks
}

// search looks at all plans, as far as the nodes go.
func (c *candidate) search(ctx context.Context, o *Options, nodes int) error {
	c.planned, c.lookedAt = true, nodes
	found, err := exact.Search(ctx, c.priced, exact.Options{Objective: o.Objective, Nodes: nodes, Clocks: o.freeClocks(c.priced.Platform)})
	if err != nil {
		c.err = err
		return ctx.Err()
	}
	before := c.Attempt
	c.Plan, c.Makespan, c.Joules, c.Value = found.Plan, found.Makespan, found.Joules, found.Value
	c.Policy, c.bound, c.proven, c.long, c.short = found.Plan.Policy, max(c.bound, found.Bound), found.Proven, true, found.Value
	c.nodes += found.Nodes
	c.plans++
	if c.short < c.listed {
		c.list, c.listed, c.used = c.Plan, c.short, c.usedBy(c.Plan)
	}
	c.simulated(c.Attempt)
	if before.Plan != nil && better(&before, &c.Attempt) { // of another search, and the nodes did not suffice for it here
		c.Attempt = before
	}
	return nil
}

// freeClocks lists the clocks that tasks may have, by device.
func (o *Options) freeClocks(p *platform.Platform) [][]platform.ClockID {
	if o.Brief {
		return p.ClocksUsed()
	}
	allowed := make([][]platform.ClockID, len(p.Devices))
	for i := range p.Devices {
		allowed[i] = p.Devices[i].FreeClocks()
	}
	return allowed
}

// shortRun is how many steps tell plans apart that are far from each other, and longRun how many results are told in.
const (
	shortRun = 6
	longRun  = 50
)

// planBy keeps what a policy plans, if it is the best, and returns its order. It skips failing policies and known orders.
func (c *candidate) planBy(ctx context.Context, o *Options, policy schedule.Policy, known [][][]dag.TaskID) ([][]dag.TaskID, error) {
	made, err := o.Evaluator.Policy(ctx, c.priced, policy, o.Steady)
	if made == nil && err == nil {
		return nil, nil
	}
	var order [][]dag.TaskID
	if err == nil {
		order = made.Plan().Order
		if slices.ContainsFunc(known, func(other [][]dag.TaskID) bool { return slices.EqualFunc(other, order, slices.Equal) }) {
			return nil, nil
		}
		err = c.enlist(ctx, o, made, policy.Doc().Name)
	}
	if err != nil {
		if ctx.Err() == nil {
			c.err = err // the plan cannot run
		}
		return nil, ctx.Err()
	}
	return order, nil
}

// enlist offers the choice the plan of a policy, and notes the best of these plans.
func (c *candidate) enlist(ctx context.Context, o *Options, e *plan.Evaluated, policy string) error {
	if err := c.offer(ctx, o, e, policy, shortRun); err != nil {
		return err
	}
	step, err := o.step(ctx, e, shortRun) // which the plan keeps
	if value := o.value(step.Time, step.Joules); err == nil && (c.list == nil || value < c.listed) {
		c.list, c.listed, c.used = e.Plan(), value, c.usedBy(e.Plan())
	}
	return err
}

// offer gives the choice the plan of a policy unless the choice has one as good. Steps is the length of the simulated run. A plan
// that was looked at in many steps is compared with another by as many.
func (c *candidate) offer(ctx context.Context, o *Options, e *plan.Evaluated, policy string, steps int) error {
	before := c.Attempt
	c.Policy = policy
	err := c.adopt(ctx, o, e, steps)
	if err == nil && before.long && !c.long && c.short < before.short {
		err = c.adopt(ctx, o, e, longRun)
	}
	if err != nil || before.Plan != nil && !better(&c.Attempt, &before) {
		c.Attempt = before
	}
	return err
}

// better compares two plans. Where neither keeps the deadline, the shorter step is better. Plans of different lengths of runs are
// compared by few steps.
func better(a, b *Attempt) bool {
	is, than := a.Value, b.Value
	if a.long != b.long {
		is, than = a.short, b.short
	}
	if math.IsInf(is, 1) && math.IsInf(than, 1) {
		return a.Makespan < b.Makespan
	}
	return is < than
}

// adoptPlan is adopt for a plan that may not be evaluated yet.
func (c *candidate) adoptPlan(ctx context.Context, o *Options, plan *schedule.Plan, steps int) error {
	e, err := o.Evaluator.Plan(c.priced, plan)
	if err != nil {
		return err
	}
	return c.adopt(ctx, o, e, steps)
}

// adopt makes a plan the plan of the choice. Steps is the length of the simulated run.
func (c *candidate) adopt(ctx context.Context, o *Options, e *plan.Evaluated, steps int) error {
	step, err := o.step(ctx, e, shortRun)
	if err != nil {
		return err
	}
	c.short = o.value(step.Time, step.Joules)
	c.plans++
	if placed := e.Decision.Placed; placed != nil { // each attempt takes as long as a simulation
		c.plans += placed.Attempts - 1
	}
	if steps != shortRun && o.Steady {
		began := time.Now()
		if step, err = o.step(ctx, e, steps); err != nil {
			return err
		}
		c.plans += steps / shortRun
		c.took = time.Since(began)
	}
	c.Plan, c.Makespan, c.Joules, c.Value, c.long = e.Plan(), step.Time, step.Joules, o.value(step.Time, step.Joules), steps >= longRun || !o.Steady
	c.simulated(c.Attempt)
	return nil
}

// step returns the time and the joules of a step of a plan. A brief search for the least time asks for no joules.
func (o *Options) step(ctx context.Context, e *plan.Evaluated, steps int) (step plan.Step, err error) {
	if o.Brief && o.Objective == problem.Time {
		step.Time, err = e.StepTime(ctx, o.Steady, steps)
		return step, err
	}
	return e.Step(ctx, o.Steady, steps)
}

// value returns the objective for a step; infinite where it takes too long.
func (o *Options) value(span time.Duration, joules float64) float64 {
	if o.Deadline > 0 && span > o.Deadline {
		return math.Inf(1)
	}
	return o.Objective.Of(span, joules)
}
