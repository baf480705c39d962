// Package best finds a plan of one step of a graph that is good by an objective, and proves how far it is
// from the least.
//
// Read first: [Find]. Small graphs go to package exact, which looks at all plans. For others the policies
// plan, on all devices and on parts of them, and the best of their plans is kept. The proof is a
// certificate: multipliers of rows that every plan fulfils, found by the linear relaxation of package
// relax and checked without it.
//
// # Limits
//
// A step that runs alone; tiles, variants, sleep and the order of copies are not searched.
package best

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/energy"
	"dahl/plan/certificate"
	"dahl/plan/exact"
	"dahl/plan/relax"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// Result is the best plan found.
type Result struct {
	exact.Result
	Certificate *certificate.Certificate // of Bound; nil: the search has looked at all plans
	Devices     string                   // the set on which the plan was made; empty: all
	Tried       int                      // plans that were simulated
}

// iterations bounds each linear program, far above what the largest have taken.
const iterations = 200_000

// Find finds a plan of the first graph of a priced program.
func Find(ctx context.Context, priced *schedule.Priced, o exact.Options) (*Result, error) {
	if len(priced.Program.Graphs[0].Tasks) <= exact.MaxTasks {
		found, err := exact.Search(ctx, priced, o)
		if err != nil {
			return nil, err
		}
		r := &Result{Result: *found}
		if r.Proven {
			return r, nil
		}
		return r, r.prove(ctx, priced, o.Objective)
	}
	r := &Result{Result: exact.Result{Value: math.Inf(1)}}
	for _, set := range sets(priced.Platform) {
		for _, policy := range schedule.Policies() {
			if err := r.try(ctx, priced, o.Objective, set, policy); err != nil {
				return nil, err
			}
		}
	}
	if r.Plan == nil {
		return nil, fmt.Errorf("no policy finds a plan of graph %q on %q", priced.Program.Graphs[0].Name, priced.Platform.Name)
	}
	return r, r.prove(ctx, priced, o.Objective)
}

// try keeps what a policy plans on some of the devices, if it is the best. A policy that cannot is left
// out.
func (r *Result) try(ctx context.Context, priced *schedule.Priced, o exact.Objective, set string, policy schedule.PolicyInfo) error {
	part := priced
	if set != "" {
		var err error
		if part, err = priced.On(set); err != nil {
			return nil // the part has no place for some task
		}
	}
	order, err := orderOf(ctx, part, policy)
	if err != nil || order == nil {
		return err
	}
	made := &schedule.Plan{Policy: policy.Name, GraphHash: priced.Program.Graphs[0].Hash(), Order: elsewhere(order, part, priced)}
	d, err := priced.Decide(schedule.Choice{Plans: []*schedule.Plan{made}})
	if err != nil {
		return nil
	}
	ran, err := simulate.Run(ctx, d, 0, 1, simulate.Options{})
	if err != nil {
		return ctx.Err()
	}
	report, err := energy.FromSchedule(ran, d.Problem(0, 1, false))
	if err != nil {
		return err
	}
	r.Tried++
	if value := o.Of(ran.Makespan, report.TotalJoules); value < r.Value {
		r.Plan, r.Makespan, r.Joules, r.Value, r.Devices = made, ran.Makespan, report.TotalJoules, value, set
	}
	return nil
}

// orderOf is what a policy plans, or did in a run; nil: it cannot.
func orderOf(ctx context.Context, priced *schedule.Priced, policy schedule.PolicyInfo) ([][]dag.TaskID, error) {
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
	ran, err := simulate.Run(ctx, d, 0, 1, simulate.Options{})
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
func (r *Result) prove(ctx context.Context, priced *schedule.Priced, o exact.Objective) error {
	c := &certificate.Certificate{Objective: string(o), Graph: priced.Program.Graphs[0].Hash()}
	parts := map[exact.Objective][]certificate.Objective{exact.Time: {certificate.Time}, exact.Energy: {certificate.Energy},
		exact.EDP: {certificate.Time, certificate.Energy}}[o]
	for _, part := range parts {
		m, err := certificate.NewModel(priced, 0, part, false)
		if err != nil {
			return err
		}
		known := float64(r.Joules * 1e9)
		if part == certificate.Time {
			known = float64(r.Makespan)
		}
		proof, err := relax.Bound(ctx, m, known, iterations)
		if err != nil {
			return err
		}
		if err := c.Add(m, proof); err != nil {
			return err
		}
	}
	if bound := c.Bound(); bound > r.Bound {
		r.Bound, r.Certificate = bound, c
		r.Proven = r.Bound >= r.Value
	}
	return nil
}
