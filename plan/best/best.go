// Package best finds a plan of a step of a graph that is good by an objective, and proves how far it is from
// the least.
//
// Read first: [Find]. A step that runs alone goes to package exact, which looks at all plans, if its tasks
// are few. For others the policies plan, on all devices and on parts of them, and the best of their plans
// is kept. The proof is a certificate: multipliers of rows that every plan fulfils, found by the linear
// relaxation of package relax and checked without it.
//
// # Units
//
// A steady step is what one step more adds to a long run: a hundred steps less fifty, over fifty. Its bound is
// that of the mean over ever more steps.
//
// # Limits
//
// Tiles, variants, sleep, the order of copies and more copies of a buffer than the graph says are not
// searched, and bounds of a machine of one memory hold for these copies.
package best

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/plan/certificate"
	"dahl/plan/exact"
	"dahl/plan/relax"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// Options say what to look for.
type Options struct {
	exact.Options
	Steady bool // of a step among many; else of one that runs alone
}

// Result is the best plan found. Makespan and Joules are of the step.
type Result struct {
	exact.Result
	Certificate *certificate.Certificate // of Bound; nil: the search has looked at all plans
	Devices     string                   // the set on which the plan was made; empty: all
	Tried       int                      // plans that were simulated
}

// iterations bounds each linear program, far above what the largest have taken.
const iterations = 200_000

// Find finds a plan of the first graph of a priced program.
func Find(ctx context.Context, priced *schedule.Priced, o Options) (*Result, error) {
	if !o.Steady && len(priced.Program.Graphs[0].Tasks) <= exact.MaxTasks {
		found, err := exact.Search(ctx, priced, o.Options)
		if err != nil {
			return nil, err
		}
		r := &Result{Result: *found}
		if r.Proven {
			return r, nil
		}
		return r, r.prove(ctx, priced, &o)
	}
	r := &Result{Result: exact.Result{Value: math.Inf(1)}}
	for _, set := range sets(priced.Platform) {
		for _, policy := range schedule.Policies() {
			if err := r.try(ctx, priced, &o, set, policy); err != nil {
				return nil, err
			}
		}
	}
	if r.Plan == nil {
		return nil, fmt.Errorf("no policy finds a plan of graph %q on %q", priced.Program.Graphs[0].Name, priced.Platform.Name)
	}
	d, err := priced.Decide(schedule.Choice{Plans: []*schedule.Plan{r.Plan}})
	if err == nil {
		r.Makespan, r.Joules, err = worth(ctx, d, o.Steady, 50)
	}
	if err != nil {
		return nil, err
	}
	r.Value = o.Objective.Of(r.Makespan, r.Joules)
	return r, r.prove(ctx, priced, &o)
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

// try keeps what a policy plans on some of the devices, if it is the best. A policy that cannot is left
// out.
func (r *Result) try(ctx context.Context, priced *schedule.Priced, o *Options, set string, policy schedule.PolicyInfo) error {
	part := priced
	if set != "" {
		var err error
		if part, err = priced.On(set); err != nil {
			return nil // the part has no place for some task
		}
	}
	order, err := orderOf(ctx, part, policy, o.Steady)
	if err != nil || order == nil {
		return err
	}
	made := &schedule.Plan{Policy: policy.Name, GraphHash: priced.Program.Graphs[0].Hash(), Order: elsewhere(order, part, priced)}
	d, err := priced.Decide(schedule.Choice{Plans: []*schedule.Plan{made}})
	if err != nil {
		return nil
	}
	span, joules, err := worth(ctx, d, o.Steady, 6)
	if err != nil {
		return ctx.Err() // the plan cannot run
	}
	r.Tried++
	if value := o.Objective.Of(span, joules); value < r.Value {
		r.Plan, r.Value, r.Devices = made, value, set
	}
	return nil
}

// orderOf is what a policy plans, or did in a run; nil: it cannot.
func orderOf(ctx context.Context, priced *schedule.Priced, policy schedule.PolicyInfo, steady bool) ([][]dag.TaskID, error) {
	if policy.Static == nil && policy.Dynamic == nil {
		return nil, nil
	}
	d, err := priced.Decide(schedule.Choice{Policy: policy})
	if err != nil {
		return nil, nil
	}
	if made := d.Graphs[0].Plan; made != nil {
		return made.Order, nil
	}
	steps := 1
	if steady {
		steps = 5 // of which PlanFrom takes the one in the middle
	}
	ran, err := simulate.Run(ctx, d, 0, steps, simulate.Options{})
	if err != nil {
		return nil, ctx.Err()
	}
	return schedule.PlanFrom(ran, policy.Name, d.Graphs[0].Problem.Graph).Order, nil
}

// elsewhere gives lists of workers of a part of a machine to the same units of all of it.
func elsewhere(order [][]dag.TaskID, part, all *schedule.Priced) [][]dag.TaskID {
	moved := make([][]dag.TaskID, len(all.Platform.Workers))
	for w, list := range order {
		of := part.Platform.Workers[w]
		name := part.Platform.Devices[of.Device].Name
		for to, worker := range all.Platform.Workers {
			if worker.Index == of.Index && all.Platform.Devices[worker.Device].Name == name {
				moved[to] = list
			}
		}
	}
	return moved
}

// sets are lists of devices for [platform.Platform.Select]: all, and each kind of choice among devices that
// are not processors (none, the first, all) with one, two, four … of the units of the processors.
func sets(p *platform.Platform) []string {
	var processors, others []string
	for i := range p.Devices {
		if d := &p.Devices[i]; d.IsProcessor() {
			processors = append(processors, d.Name)
		} else {
			others = append(others, d.Name)
		}
	}
	list := []string{""}
	for _, chosen := range [][]string{nil, others[:min(1, len(others))], others} {
		if len(chosen) > 0 {
			list = append(list, strings.Join(chosen, ","))
		}
		if len(processors) != 1 {
			continue
		}
		cpu, _ := p.DeviceByName(processors[0])
		for n := 1; n <= p.Devices[cpu].Count; n *= 2 {
			list = append(list, strings.Join(append([]string{fmt.Sprintf("%s:%d", processors[0], n)}, chosen...), ","))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// prove finds the bound of the objective, where it is above what is known.
func (r *Result) prove(ctx context.Context, priced *schedule.Priced, o *Options) error {
	parts, err := certificate.Parts(string(o.Objective))
	if err != nil {
		return err
	}
	leaf := certificate.Leaf{Graph: priced.Program.Graphs[0].Hash()}
	for _, part := range parts {
		m, err := certificate.NewModel(priced, 0, part, o.Steady)
		if err != nil {
			return err
		}
		known := map[certificate.Objective]float64{certificate.Time: float64(r.Makespan), certificate.Energy: float64(r.Joules * 1e9), certificate.EDP: float64(r.Value * 1e18)}[part]
		proof, err := relax.Bound(ctx, m, known, known, iterations)
		if err != nil {
			return err
		}
		if err := leaf.Add(m, proof); err != nil {
			return err
		}
	}
	c := &certificate.Certificate{Objective: string(o.Objective), Steady: o.Steady, Devices: []string{""}, Tiles: []string{""}, Leaves: []certificate.Leaf{leaf}}
	if bound := c.Bound(); bound > r.Bound {
		r.Bound, r.Certificate = bound, c
		r.Proven = r.Bound >= r.Value
	}
	return nil
}
