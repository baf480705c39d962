package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

// mixed is two cores and two devices of another kind, one of them with a clock.
func mixed(t *testing.T) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "mixed", Memories: []platform.Memory{{Name: "ram", BandwidthBytesPerSec: 1e9}},
		Devices: []platform.Device{
			{Name: "cpu", Kind: "cpu", Count: 2, PowerSource: platform.Guess, FlopsPerSec: map[string]float64{"float32": 1e9, "float64": 1e9}},
			{Name: "e0", Kind: "emulated", Count: 1, PowerSource: platform.Guess},
			{Name: "e1", Kind: "emulated", Count: 1, PowerSource: platform.Guess, Clocks: []platform.Clock{{Name: "fast", Scale: 1}}},
		},
		Models: []platform.Model{{Op: "f", Variant: "ref", Type: "float32", Device: "cpu", Shape: "3", MedianNs: 200, P95Ns: 200, Count: 5, Active: 1},
			{Op: "f", Variant: "go", Type: "float32", Device: "cpu", Shape: "3", MedianNs: 100, P95Ns: 100, Count: 5, Active: 1}},
	}
	must.Do(t, p.Complete())
	return p
}

func oneTask(t *testing.T, task dag.Task) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("one")
	task.Name = "task"
	b.Task(task)
	g := must.Get(b.Build())(t)
	return g
}

// TestGivenCosts: -1 marks a device on which the task cannot run.
func TestGivenCosts(t *testing.T) {
	p := mixed(t)
	for _, c := range []struct {
		words   string
		costs   []dag.Cost
		placed  string
		variant string
		want    [3]time.Duration // cpu, e0, e1
	}{
		{"by kind", []dag.Cost{{Key: "emulated", Ns: 5}}, "", "", [3]time.Duration{-1, 5, 5}},
		{"a device wins over its kind", []dag.Cost{{Key: "emulated", Ns: 5}, {Key: "e1", Ns: 9}}, "", "", [3]time.Duration{-1, 5, 9}},
		{"any device gives way", []dag.Cost{{Key: "*", Ns: 7}, {Key: "cpu", Ns: 9}}, "", "", [3]time.Duration{9, 7, 7}},
		{"the fastest variant", []dag.Cost{{Key: "cpu/go", Ns: 6}, {Key: "cpu/ref", Ns: 8}}, "", "", [3]time.Duration{6, -1, -1}},
		{"a pinned variant", []dag.Cost{{Key: "cpu/go", Ns: 6}, {Key: "cpu/ref", Ns: 8}}, "", "ref", [3]time.Duration{8, -1, -1}},
		{"only the clock in force", []dag.Cost{{Key: "emulated@fast", Ns: 3}, {Key: "emulated@slow", Ns: 1}}, "", "", [3]time.Duration{-1, -1, 3}},
		{"placed on a device", []dag.Cost{{Key: "*", Ns: 4}}, "e0", "", [3]time.Duration{-1, 4, -1}},
		{"placed on a worker", []dag.Cost{{Key: "*", Ns: 4}}, "cpu.1", "", [3]time.Duration{4, -1, -1}},
		{"placed on a kind", []dag.Cost{{Key: "*", Ns: 4}}, "emulated", "", [3]time.Duration{-1, 4, 4}},
	} {
		g := oneTask(t, dag.Task{Op: "f", Costs: c.costs, Placement: &dag.Placement{Device: c.placed}})
		costs, err := newCosts(g, p, costOptions{target: oneOffer{c.variant}})
		if err != nil {
			t.Errorf("%s: %v", c.words, err)
			continue
		}
		for d, want := range c.want {
			got, ok := costs.Of(0, platform.DeviceID(d))
			if got.Duration != want || ok != (want >= 0) || ok && got.Source != FromGraph {
				t.Errorf("%s: %v on %s, want %d", c.words, got, p.Devices[d].Name, want)
			}
		}
	}
}

// TestGivenCostsAtAClock: at the slow clock of e1, half as fast, a cost of the first clock answers,
// stretched, where there is none of the slow one for the same key. Its joules do not hold there.
func TestGivenCostsAtAClock(t *testing.T) {
	base := mixed(t)
	base.Devices[2].Clocks = append(base.Devices[2].Clocks, platform.Clock{Name: "slow", Scale: 0.5}, platform.Clock{Name: "turbo", Scale: 2})
	base.Devices[2].FlopsPerSec = map[string]float64{"float32": 1e9}
	p := must.Get(base.WithClock("e1", "slow"))(t)
	for _, c := range []struct {
		words  string
		costs  []dag.Cost
		moves  int64
		joules float64
		want   time.Duration // -1: it cannot run
	}{
		{"twice as long", []dag.Cost{{Key: "e1", Ns: 20, Joules: 3}}, 0, 0, 40},
		{"the first by its name", []dag.Cost{{Key: "e1@fast", Ns: 20, Joules: 3}}, 0, 0, 40},
		{"of any device", []dag.Cost{{Key: "*", Ns: 20}}, 0, 0, 40},
		{"one of the clock comes first, though it is longer", []dag.Cost{{Key: "e1", Ns: 20, Joules: 3}, {Key: "e1@slow", Ns: 70, Joules: 2}}, 0, 2, 70},
		{"of another variant", []dag.Cost{{Key: "e1/a", Ns: 20}, {Key: "e1/b@slow", Ns: 70}}, 0, 0, 40},
		{"a device wins over its kind at the clock", []dag.Cost{{Key: "e1", Ns: 20}, {Key: "emulated@slow", Ns: 70}}, 0, 0, 40},
		{"not of a third clock", []dag.Cost{{Key: "e1@turbo", Ns: 20}, {Key: "cpu", Ns: 1}}, 0, 0, -1},
		{"10 operations at 1 per ns, 30 bytes at 1 per ns: a quarter follows the clock", []dag.Cost{{Key: "e1", Ns: 20}}, 30, 0, 25},
	} {
		costs := must.Get(newCosts(oneTask(t, dag.Task{Op: "f", Type: dag.Float32, Flops: 10, MovedBytes: c.moves, Costs: c.costs}), p, costOptions{target: Unbound}))(t)
		if got, _ := costs.Of(0, 2); got.Duration != c.want || got.Joules != c.joules {
			t.Errorf("%s: %v and %g J, want %d and %g", c.words, got.Duration, got.Joules, c.want, c.joules)
		}
	}
}

// TestModelCosts: without costs of its own a task takes the platform's: the
// faster of two measured variants, the pinned one, or for an unknown operation
// 50 flops at 1 GF/s, 50 ns.
func TestModelCosts(t *testing.T) {
	p := mixed(t)
	for _, c := range []struct {
		op, pinned string
		want       time.Duration
		variant    string
		source     CostSource
	}{
		{"f", "", 100, "go", FromMeasured},
		{"f", "ref", 200, "ref", FromMeasured},
		{"g", "", 50, "", FromRoofline},
		{"g", "ref", 50, "ref", FromRoofline},
	} {
		g := oneTask(t, dag.Task{Op: c.op, Type: dag.Float32, Shape: "3", Flops: 50, MovedBytes: 1})
		costs := must.Get(newCosts(g, p, costOptions{target: oneOffer{c.pinned}}))(t)
		got, ok := costs.Of(0, 0)
		if !ok || got.Duration != c.want || got.Source != c.source || c.source == FromMeasured && got.Variant != c.variant {
			t.Errorf("%s, pinned %q: %+v, want %v of variant %q, %s", c.op, c.pinned, got, c.want, c.variant, c.source)
		}
	}
}

// TestCostsWithoutTiming: on a device where being timed adds 200 ns, a call that took 900,
// 1000 with its operands far and 50 with them near, is to take 700, 800, and no less than 1
// where it is not timed. One that took 800 in steps, and 1100 in the first, is to take 600 and
// 900. The same call on another device of the kind, one by its roofline (50 flops at 1 GF/s are
// 50 ns), and one whose time the graph gives stay as they are.
func TestCostsWithoutTiming(t *testing.T) {
	p := mixed(t)
	p.Devices[1].Timing = 200
	p.Devices[1].FlopsPerSec = map[string]float64{"float32": 1e9}
	model := platform.Model{Op: "f", Variant: "ref", Type: "float32", Device: "emulated", Shape: "5", MedianNs: 900, WarmNs: 50, FarNs: 1000, P95Ns: 900, Count: 5, Active: 1}
	inSteps := model
	inSteps.Shape, inSteps.StepNs, inSteps.FirstNs = "7", 800, 1100
	p.Models = append(p.Models, model, inSteps)
	for _, c := range []struct {
		words       string
		task        dag.Task
		device      platform.DeviceID
		timed, want Cost
	}{
		{"by itself", dag.Task{Op: "f", Shape: "5"}, 1,
			Cost{Duration: 900, Alone: platform.CacheTimes{Warm: 50, Near: 900, Far: 1000}}, Cost{Duration: 700, Alone: platform.CacheTimes{Warm: 1, Near: 700, Far: 800}}},
		{"in steps", dag.Task{Op: "f", Shape: "7"}, 1, Cost{Duration: 800, First: 1100}, Cost{Duration: 600, First: 900}},
		{"elsewhere", dag.Task{Op: "f", Shape: "7"}, 2, Cost{Duration: 800, First: 1100}, Cost{Duration: 800, First: 1100}},
		{"by its roofline", dag.Task{Op: "g", Shape: "5", Flops: 50}, 1, Cost{Duration: 50}, Cost{Duration: 50}},
		{"given", dag.Task{Op: "f", Shape: "5", Costs: []dag.Cost{{Key: "e0", Ns: 900}}}, 1, Cost{Duration: 900}, Cost{Duration: 900}},
	} {
		c.task.Type = dag.Float32
		for recorded, want := range map[bool]Cost{true: c.timed, false: c.want} {
			costs := must.Get(newCosts(oneTask(t, c.task), p, costOptions{target: Unbound, timed: recorded}))(t)
			got, ok := costs.Of(0, c.device)
			if !ok || got.Duration != want.Duration || got.First != want.First || got.Alone != want.Alone || got.Busy != want.Alone {
				t.Errorf("%s, recorded %v: %+v, want %+v", c.words, recorded, got, want)
			}
		}
	}
}

// TestClasses: equal tasks share a class, and a difference in any of what a cost
// depends on makes another.
func TestClasses(t *testing.T) {
	base := dag.Task{Op: "f", Shape: "3", Type: dag.Float32, Flops: 5}
	tasks := []dag.Task{base, base, base, base, base, base, base}
	tasks[2].Shape = "4"
	tasks[3].Type = dag.Float64
	tasks[4].Flops = 6
	tasks[5].Costs = []dag.Cost{{Key: "cpu", Ns: 1}}
	tasks[6].Placement = &dag.Placement{Device: "cpu"}
	b := dag.NewBuilder("classes")
	for i, task := range tasks {
		task.Name = string(rune('a' + i))
		b.Task(task)
	}
	g := must.Get(b.Build())(t)
	costs := must.Get(unboundCosts(g, mixed(t)))(t)
	if costs.Class[0] != costs.Class[1] || len(costs.ByClass) != 6 {
		t.Errorf("classes %v", costs.Class)
	}
}

func TestNowhereToRun(t *testing.T) {
	for want, task := range map[string]dag.Task{
		"gives a cost (cuda, tpu)": {Op: "f", Costs: []dag.Cost{{Key: "cuda", Ns: 1}, {Key: "tpu", Ns: 1}}},
		`placed on "cuda"`:         {Op: "f", Type: dag.Float32, Flops: 1, Placement: &dag.Placement{Device: "cuda"}},
	} {
		if _, err := unboundCosts(oneTask(t, task), mixed(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	// Two tasks that are to share a worker, one for each kind.
	b := dag.NewBuilder("apart")
	b.Task(dag.Task{Name: "a", Costs: []dag.Cost{{Key: "cpu", Ns: 1}}, Placement: &dag.Placement{Colocate: "k"}})
	b.Task(dag.Task{Name: "b", Costs: []dag.Cost{{Key: "e0", Ns: 1}}, Placement: &dag.Placement{Colocate: "k"}})
	g := must.Get(b.Build())(t)
	p := mixed(t)
	costs := must.Get(unboundCosts(g, p))(t)
	if _, err := NewFit(&Problem{Graph: g, Platform: p, Costs: costs, Steps: 1}); err == nil || !strings.Contains(err.Error(), `colocate "k"`) {
		t.Errorf("error %v", err)
	}
}

// A device for placed tasks only runs those that name it or its kind; a graph in
// which nothing is placed sees the others.
func TestPlacedOnly(t *testing.T) {
	p := mixed(t)
	p.Devices[0].PlacedOnly = true
	for placed, want := range map[string][3]time.Duration{
		"": {-1, 4, 4}, "cpu": {4, -1, -1}, "cpu.1": {4, -1, -1}, "emulated": {-1, 4, 4},
	} {
		task := dag.Task{Costs: []dag.Cost{{Key: "*", Ns: 4}}}
		if placed != "" {
			task.Placement = &dag.Placement{Device: placed}
		}
		costs := must.Get(unboundCosts(oneTask(t, task), p))(t)
		for d, want := range want {
			if got, ok := costs.Of(0, platform.DeviceID(d)); ok != (want >= 0) || ok && got.Duration != want {
				t.Errorf("placed on %q, device %d: %v %v, want %v", placed, d, got.Duration, ok, want)
			}
		}
	}
}

// TestCheckGiven: a cost is for a device of the platform, for a kind, or for any device.
func TestCheckGiven(t *testing.T) {
	p := &platform.Platform{Name: "node", Devices: []platform.Device{{Name: "big", Kind: "cpu"}}}
	for key, want := range map[string]string{
		"big": "", "big/go@1GHz": "", "cpu": "", "cuda/cublas": "", "*": "",
		"bigg": `task "t" has a cost for "bigg", which is neither a device of platform "node" nor a kind of devices; there are *, big, cpu, cuda, emulated`,
		"Cpu":  `a cost for "Cpu"`,
	} {
		err := CheckGiven(&dag.Graph{Tasks: []dag.Task{{Name: "s"}, {Name: "t", Costs: []dag.Cost{{Key: "*"}, {Key: key}}}}}, p)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
}

// TestLeastKnown: 2 of 300 ns are less than a hundredth, and 4 of 302 are more. Tasks count, not classes: two tasks of 2 ns are 4 ns.
func TestLeastKnown(t *testing.T) {
	of := func(source CostSource, ns time.Duration) []Cost {
		return []Cost{{Duration: ns, Source: source}, {Duration: -1}}
	}
	costs := Costs{Class: []int32{0, 1}, ByClass: [][]Cost{of(FromMeasured, 298), of(FromRoofline, 2)}}
	if got := Sources[costs.LeastKnown()]; got != FromMeasured {
		t.Errorf("a small part by roofline: least known is %s", got)
	}
	costs.Class = append(costs.Class, 1)
	if got := Sources[costs.LeastKnown()]; got != FromRoofline {
		t.Errorf("more by roofline: least known is %s", got)
	}
	if sure := slices.Index(Sources, FromFit); costs.Guessed(0, sure) || !costs.Guessed(1, sure) {
		t.Error("of the tasks the second alone is guessed")
	}
}
