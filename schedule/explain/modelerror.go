package explain

import (
	"math"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// ModelError says how well the durations of a problem's step are known: the standard deviation of
// their sum relative to it, and their sources, by number of tasks.
type ModelError struct {
	Measured int     `json:"measured"`
	Fitted   int     `json:"fitted"`
	Roofline int     `json:"roofline"`
	Given    int     `json:"given"`         // by the graph
	RelError float64 `json:"rel_error"`     // of the sum over one step; durations without an error bar count as exact
	Unknown  float64 `json:"unknown_share"` // the part of the sum without an error bar: rooflines
}

// ModelErrorOf adds up the error bars. All calls of one operation and variant that a fit answers
// for have the same relative error; different operations have independent ones. Measured calls
// vary from run to run, all calls of a device together.
func ModelErrorOf(p *schedule.Problem) *ModelError {
	type fitted struct {
		op, variant string
		device      platform.DeviceID
	}
	e := &ModelError{}
	errNs := map[fitted]float64{}
	var order []fitted
	measuredNs := make([]float64, len(p.Platform.Devices))
	total, unknown := 0.0, 0.0
	for t := range p.Graph.Tasks {
		d, c := cheapest(p, dag.TaskID(t))
		if c == nil {
			continue
		}
		ns := float64(c.Duration)
		total += ns
		switch c.Source {
		case schedule.FromFit:
			e.Fitted++
			k := fitted{p.Graph.Tasks[t].Op, c.Variant, d}
			if _, ok := errNs[k]; !ok {
				order = append(order, k)
			}
			errNs[k] += float64(ns * c.RelError)
		case schedule.FromMeasured:
			e.Measured++
			measuredNs[d] += ns
		case schedule.FromGraph:
			e.Given++
		case schedule.FromRoofline:
			e.Roofline++
			unknown += ns
		}
	}
	if total == 0 {
		return e
	}
	sum := 0.0
	for _, k := range order {
		sum += float64(errNs[k] * errNs[k])
	}
	for d, ns := range measuredNs {
		off := float64(ns * p.Platform.Devices[d].RunSpread)
		sum += float64(off * off)
	}
	e.RelError, e.Unknown = math.Sqrt(sum)/total, unknown/total
	return e
}

// cheapest is the device that runs a task fastest, and its cost; nil if none can.
func cheapest(p *schedule.Problem, t dag.TaskID) (best platform.DeviceID, cost *schedule.Cost) {
	for d, c := range p.Costs.Devices(p.Costs.Class[t]) {
		if cost == nil || c.Duration < cost.Duration {
			best, cost = d, c
		}
	}
	return best, cost
}
