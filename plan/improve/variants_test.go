package improve

import (
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
)

// callOn is a task that runs on one device, and what it takes by its variants.
type callOn struct {
	name, device string
	costs        []dag.Cost
}

// sideBySide prices calls that wait for nothing on a core and a GPU that draw 1 W idle each. They have a low clock if a call has
// costs for it.
func sideBySide(t *testing.T, hostWatts float64, calls ...callOn) (*schedule.Priced, *schedule.Plan) {
	t.Helper()
	own, low := platform.BusyPower{UnitWatts: 10}, platform.BusyPower{UnitWatts: 3}
	p := &platform.Platform{Name: "p", HostPower: platform.Quantity{Value: hostWatts, Source: platform.Guess}, Memories: []platform.Memory{{Name: "ram"}}}
	for _, kind := range []string{"cpu", "emulated"} {
		p.Devices = append(p.Devices, platform.Device{Name: map[string]string{"cpu": "cpu", "emulated": "gpu"}[kind], Kind: kind, Count: 1, IdleWatts: 1, Busy: own, PowerSource: platform.Guess})
	}
	b := dag.NewBuilder("side by side")
	plan := &schedule.Plan{Order: make([][]dag.TaskID, 2)}
	for _, c := range calls {
		for i := range c.costs {
			if c.costs[i].Key = c.device + "/" + c.costs[i].Key; strings.HasSuffix(c.costs[i].Key, "@low") {
				p.Devices[0].Clocks = []platform.Clock{{Name: "own", Scale: 1, Idle: 1, Busy: own}, {Name: "low", Scale: 0.5, Idle: 1, Busy: low}}
			}
		}
		w := map[string]int{"cpu": 0, "gpu": 1}[c.device]
		plan.Order[w] = append(plan.Order[w], b.Task(dag.Task{Name: c.name, Op: c.name, Costs: c.costs}))
	}
	return price(t, b, p), plan
}

// frugal is a call of 60 ns and 1000 nJ, or 100 ns and 900 nJ by another variant.
func frugal(name, device string, others ...dag.Cost) callOn {
	return callOn{name, device, append([]dag.Cost{{Key: "fast", Ns: 60, Joules: 1e-6}, {Key: "frugal", Ns: 100, Joules: 900e-9}}, others...)}
}

// TestVariants: the machine draws 2 W and what the host draws while everything waits, and calls what they draw above that.
func TestVariants(t *testing.T) {
	alone := func(name, device string, ns int64) callOn {
		return callOn{name, device, []dag.Cost{{Key: "only", Ns: ns, Joules: 1e-9}}}
	}
	atClocks := callOn{"a", "cpu", []dag.Cost{{Key: "fast", Ns: 100}, {Key: "fast@low", Ns: 200}, {Key: "other", Ns: 120}, {Key: "other@low", Ns: 110}}}
	for name, c := range map[string]struct {
		host     float64
		calls    []callOn
		inTime   bool
		deadline time.Duration
		want     map[string]string // the variants that the plan names, by call
		step     time.Duration
		joules   float64 // in nJ
	}{
		"fewer joules":                     {calls: []callOn{frugal("a", "cpu")}, want: map[string]string{"a": "frugal"}, step: 100, joules: 2*100 + 900},
		"the longer step takes more":       {host: 3, calls: []callOn{frugal("a", "cpu")}, step: 60, joules: 5*60 + 1000},
		"only time counts":                 {calls: []callOn{frugal("a", "cpu")}, inTime: true, step: 60, joules: 2*60 + 1000},
		"the deadline":                     {calls: []callOn{frugal("a", "cpu")}, deadline: 80, step: 60, joules: 2*60 + 1000},
		"a unit that waits anyway":         {host: 3, calls: []callOn{frugal("a", "gpu"), alone("b", "cpu", 200)}, want: map[string]string{"a": "frugal"}, step: 200, joules: 5*200 + 900 + 1},
		"neither of two side by side":      {host: 9, calls: []callOn{frugal("a", "cpu"), frugal("b", "gpu")}, step: 60, joules: 11*60 + 2000},
		"the one that waits":               {host: 9, calls: []callOn{frugal("a", "cpu"), alone("b", "cpu", 100), frugal("c", "gpu")}, want: map[string]string{"c": "frugal"}, step: 160, joules: 11*160 + 1000 + 1 + 900},
		"the second best of variants":      {host: 3, calls: []callOn{frugal("a", "gpu", dag.Cost{Key: "least", Ns: 1000, Joules: 1e-9}), alone("b", "cpu", 200)}, want: map[string]string{"a": "frugal"}, step: 200, joules: 5*200 + 900 + 1},
		"faster at the clock that is best": {calls: []callOn{atClocks}, want: map[string]string{"a": "other"}, step: 110, joules: (2 + 2) * 110},
	} {
		priced, from := sideBySide(t, c.host, c.calls...)
		o := Options{Aim: problem.Aim{Objective: problem.Energy, Deadline: c.deadline}, Moves: 20}
		if c.inTime {
			o.Objective = problem.Time
		}
		r, err := Search(t.Context(), priced, from, o)
		if err != nil {
			t.Fatal(name, err)
		}
		got := map[string]string{}
		for _, calls := range r.Plan().Variants {
			for call, variant := range calls {
				got[call[:1]] = variant
			}
		}
		if !maps.Equal(got, c.want) || r.Time != c.step || math.Abs(r.Joules*1e9-c.joules) > 1e-6 {
			t.Errorf("%s: variants %v, %d ns, %.6f nJ; want %v, %d ns, %g nJ", name, got, r.Time, r.Joules*1e9, c.want, c.step, c.joules)
		}
	}
}

// TestVariantsOfFewerUnits: with both cores busy wide takes 100 ns and narrow 120, so that wide is the variant of the price, and with
// one it takes 90 ns and narrow 50.
func TestVariantsOfFewerUnits(t *testing.T) {
	p := &platform.Platform{Name: "p", Memories: []platform.Memory{{Name: "ram"}}, Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: 2}}}
	for _, m := range []platform.Model{{Variant: "wide", Active: 2, MedianNs: 100}, {Variant: "narrow", Active: 2, MedianNs: 120}, {Variant: "wide", Active: 1, MedianNs: 90}, {Variant: "narrow", Active: 1, MedianNs: 50}} {
		m.Op, m.Type, m.Device, m.Shape, m.Count = "op", "float32", "cpu", "4", 1
		p.Models = append(p.Models, m)
	}
	b := dag.NewBuilder("one")
	b.Task(dag.Task{Name: "a", Op: "op", Type: dag.Float32, Shape: "4"})
	whole := price(t, b, p)
	for set, want := range map[string]time.Duration{"cpu:2": 100, "cpu:1": 50} {
		priced := must.Get(whole.On(set))(t)
		from := &schedule.Plan{Order: make([][]dag.TaskID, len(priced.Platform.Workers))}
		from.Order[0] = []dag.TaskID{0}
		r := must.Get(Search(t.Context(), priced, from, Options{Aim: problem.Aim{Objective: problem.Time}, Moves: 20}))(t)
		if r.Time != want {
			t.Errorf("%s: %d ns by %v, want %d", set, r.Time, r.Plan().Variants, want)
		}
	}
}
