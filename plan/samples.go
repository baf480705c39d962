package plan

import (
	"context"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
	"dahl/stats"
)

// Interval is where a quantity lies: half of the samples are below the median, and at most a
// twentieth below Low and above High.
type Interval struct {
	Median float64 `json:"median"`
	Low    float64 `json:"p5"`
	High   float64 `json:"p95"`
}

// NewInterval sorts samples, and is where they lie.
func NewInterval(samples []float64) Interval {
	slices.Sort(samples)
	return Interval{stats.Median(samples), stats.Quantile(samples, 0.05), stats.Quantile(samples, 0.95)}
}

// Samples are the results of simulations with drawn durations.
type Samples struct {
	Count    int      `json:"count"`
	Seed     uint64   `json:"seed"`
	Makespan Interval `json:"makespan_s"`
	Step     Interval `json:"step_s"` // the mean of the steps after the first
	Energy   Interval `json:"energy_j"`
	// Missing says why nothing was drawn; Count is 0 then.
	Missing string `json:"missing,omitempty"`
}

// NoDistributions says why nothing can be drawn.
const NoDistributions = "every duration of this run is one number: the platform file has no distributions, which dahl calibrate measures"

// Sample simulates a segment of a decided program a number of times with drawn durations. Equal
// seeds draw the same.
func Sample(ctx context.Context, d *schedule.Decision, seg dag.Segment, count int, seed uint64) (*Samples, error) {
	p := d.Problem(seg.Graph, 1, false)
	if !hasDistributions(p) {
		return &Samples{Seed: seed, Missing: NoDistributions}, nil
	}
	makespan, step, joules := make([]float64, count), make([]float64, count), make([]float64, count)
	for k := range count {
		a, err := account(ctx, d, seg.Graph, SimulatedSteps(p.Graph.NumTasks(), seg.Steps), simulate.Options{Scale: newDrawing(p, seed, uint64(k)).scale})
		if err != nil {
			return nil, err
		}
		one := NewTotals(schedule.Simulated, p.Platform)
		one.Add(a, p.Graph, Piece{Segment: seg, Recorded: true, First: seg.Steps > 1})
		makespan[k], step[k], joules[k] = one.Run.Seconds(), one.Counted.StepS(), one.Joules
	}
	return &Samples{Count: count, Seed: seed, Makespan: NewInterval(makespan), Step: NewInterval(step), Energy: NewInterval(joules)}, nil
}

// Draw is a draw of the durations of a graph, for [simulate.Options]; nil means nothing can be drawn. Equal seeds and
// samples draw the same for a device of one name, whatever other devices the problem has, so that plans
// on unlike sets of devices can be compared draw by draw.
func Draw(p *schedule.Problem, seed, sample uint64) func(dag.Instance, platform.WorkerID) float64 {
	if !hasDistributions(p) {
		return nil
	}
	return newDrawing(p, seed, sample).scale
}

// hasDistributions reports whether anything can be drawn of a graph's durations.
func hasDistributions(p *schedule.Problem) bool {
	spreads := func(d platform.Device) bool { return d.RunSpread > 0 }
	drawn := func(c schedule.Cost) bool { return c.Spread.Known() || c.Source == schedule.FromFit && c.RelError > 0 }
	return slices.ContainsFunc(p.Platform.Devices, spreads) ||
		slices.ContainsFunc(p.Costs.ByClass, func(row []schedule.Cost) bool { return slices.ContainsFunc(row, drawn) })
}

// drawing is one draw of all durations, as factors of what they are expected to be.
// Three things are drawn, each around 1:
//
//   - the run, once for each device: normal with its RunSpread
//   - the error of a fit, once for each operation, variant and device with that fit: normal with the error bar of each of its calls, within which two of three
//     errors lie
//   - each instance of a measured call, from its distribution
//
// What an instance draws depends on the seed, the sample, its task and its step alone,
// not on the order of events; the other two depend on the names of what they are drawn for.
type drawing struct {
	p       *schedule.Problem
	key     uint64
	factors []float64 // by class and device: run and fit
}

// leastFactor keeps what is drawn from a wide normal distribution positive.
const leastFactor = 0.1

func newDrawing(p *schedule.Problem, seed, sample uint64) *drawing {
	devices := len(p.Platform.Devices)
	d := &drawing{p: p, key: rand.NewPCG(seed, sample).Uint64(), factors: make([]float64, len(p.Costs.ByClass)*devices)}
	run := make([]float64, devices)
	for i := range run {
		of := &p.Platform.Devices[i]
		run[i] = 1 + float64(of.RunSpread*d.normal("run", of.Name))
	}
	type fitted struct {
		op, variant string
		device      int
	}
	off := map[fitted]float64{}
	for t := range p.Graph.Tasks {
		class := p.Costs.Class[t]
		if d.factors[int(class)*devices] > 0 {
			continue // drawn for another task
		}
		for i := range devices {
			c := p.Costs.At(class, platform.DeviceID(i))
			factor := run[i]
			if c.Source == schedule.FromFit {
				k := fitted{p.Graph.Tasks[t].Op, c.Variant, i}
				z, ok := off[k]
				if !ok {
					z = d.normal("fit", k.op, k.variant, p.Platform.Devices[i].Name)
					off[k] = z
				}
				factor *= 1 + float64(c.RelError*z)
			}
			d.factors[int(class)*devices+i] = max(leastFactor, factor)
		}
	}
	return d
}

// normal draws for what has these names.
func (d *drawing) normal(names ...string) float64 {
	h := fnv.New64a()
	for _, name := range names {
		io.WriteString(h, name)
		h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(d.key, h.Sum64())).NormFloat64()
}

// scale is the factor of an instance on a worker.
func (d *drawing) scale(i dag.Instance, w platform.WorkerID) float64 {
	class, device := d.p.Costs.Class[i.Task], d.p.Platform.Workers[w].Device
	factor := d.factors[int(class)*len(d.p.Platform.Devices)+int(device)]
	if spread := &d.p.Costs.At(class, device).Spread; spread.Known() {
		factor *= spread[d.hash(i.Task, i.Step)%platform.DistributionParts]
	}
	return factor
}

// hash mixes a task and a step with the sample's key (the finaliser of SplitMix64,
// Steele, Lea, Flood, Fast splittable pseudorandom number generators, OOPSLA 2014).
func (d *drawing) hash(t dag.TaskID, step int32) uint64 {
	x := d.key + (uint64(t)<<32|uint64(uint32(step)))*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
