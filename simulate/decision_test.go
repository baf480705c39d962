package simulate

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/codec"
	"dahl/schedule/layout"
	"dahl/schedule/policy"
)

// unevenMachine is a random platform on which what a task takes depends on how many units
// there are: by the units' share of the memory's bandwidth, and by models of an operation
// that were measured with one unit and with all.
func unevenMachine(t *testing.T, r *rand.Rand) *platform.Platform {
	t.Helper()
	p := randomPlatform(t, r)
	vary(t, p, r)
	p.Memories[0].Host = true
	for i := range p.Devices {
		d := &p.Devices[i]
		d.Count = 1 + r.IntN(4)
		d.FlopsPerSec = map[string]float64{"float32": 1e9}
		if i > 0 {
			d.CopyEnginesIn, d.CopyEnginesOut = r.IntN(3), r.IntN(3)
		}
		for _, variant := range []string{"a", "b"} {
			for _, active := range slices.Compact([]int{1, d.Count}) {
				ns := float64(1 + r.IntN(30))
				p.Models = append(p.Models, platform.Model{Op: "measured", Variant: variant, Type: "float32", Device: d.Name, Shape: "3", Active: active, MedianNs: ns, P95Ns: ns, Count: 5})
			}
		}
	}
	must.Do(t, p.Complete())
	return p
}

// unevenGraph is a random graph of which some tasks have no costs of their own.
func unevenGraph(t *testing.T, r *rand.Rand, p *platform.Platform) *dag.Graph {
	tasks := randomGraph(r, p)
	for i := range tasks.tasks {
		task := &tasks.tasks[i]
		switch r.IntN(4) {
		case 0:
			task.Costs, task.Op, task.Type, task.Shape = nil, "measured", dag.Float32, "3"
		case 1:
			task.Costs, task.Op, task.Type, task.Flops, task.MovedBytes = nil, "bound by memory", dag.Float32, 5, int64(1+r.IntN(40))
		}
	}
	return tasks.build(t, inOrder(len(tasks.tasks)))
}

// someDevices is a random list for Priced.On that has the first device in it, where tasks
// may be placed.
func someDevices(r *rand.Rand, p *platform.Platform) string {
	list := ""
	for i, d := range p.Devices {
		if i == 0 || r.IntN(3) > 0 {
			list += fmt.Sprintf(",%s:%d", d.Name, 1+r.IntN(d.Count))
		}
	}
	return list[1:]
}

// tighten leaves the memories of devices between a half and all of what a decision reserves.
func tighten(t *testing.T, r *rand.Rand, p *platform.Platform, d *schedule.Decision) {
	t.Helper()
	for m, bytes := range d.ReservedBytes() {
		if platform.MemoryID(m) != p.HostMemory() {
			p.Memories[m].CapacityBytes = layout.Align(max(1, bytes) * int64(5+r.IntN(6)) / 10)
		}
	}
	must.Do(t, p.Complete())
}

// scheduleBytes simulates a decision and writes the schedule.
func scheduleBytes(t *testing.T, d *schedule.Decision, steps int) []byte {
	t.Helper()
	s, err := Run(context.Background(), d, 0, steps, Options{})
	if err == nil {
		err = audit.Check(s, d.Problem(0, steps, false))
	}
	var out bytes.Buffer
	if err == nil {
		err = codec.WriteSchedule(&out, s, d.Priced.Program.Graphs[0], d.Priced.Platform)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// fromFiles makes a decision from what a run directory has of another one: its platform,
// graph and plan.
func fromFiles(t *testing.T, d *schedule.Decision) *schedule.Decision {
	t.Helper()
	var machine, graph, written bytes.Buffer
	g, p := d.Priced.Program.Graphs[0], d.Priced.Platform
	plan := *d.PlanOf(0, nil)
	plan.Variants = d.Priced.Costs(0).Variants(g, p)
	for _, err := range []error{p.WriteTOML(&machine), g.WriteJSON(&graph), codec.WritePlan(&written, &plan, g, p)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	q, err := platform.Parse(machine.Bytes(), "platform.toml")
	if err != nil {
		t.Fatalf("%v\n%s", err, machine.String())
	}
	h := must.Get(dag.ReadJSON(&graph, "graph.json"))(t)
	read := must.Get(codec.ReadPlan(&written, "plan.json", h, q))(t)
	priced := must.Get(schedule.Price(&dag.Program{Name: h.Name, Graphs: []*dag.Graph{h}}, q, schedule.Unbound))(t)
	again, err := priced.Decide(schedule.Choice{Plans: []*schedule.Plan{read}})
	if err != nil {
		t.Fatalf("from files: %v", err)
	}
	return again
}

// TestOneDecision: a decision on a part of a random machine, with memories that may be too
// small for everything, gives the same schedule to the byte from its plan, and from
// platform, graph and plan as files. Policies give the same schedule twice.
func TestOneDecision(t *testing.T) {
	evictions, copies, parts, cases := 0, 0, 0, 1000
	if testing.Short() {
		cases = 100
	}
	for seed := range uint64(cases) {
		r := rand.New(rand.NewPCG(seed, 31))
		p := unevenMachine(t, r)
		prog := &dag.Program{Name: "random", Graphs: []*dag.Graph{unevenGraph(t, r, p)}}
		steps := 1 + r.IntN(6)
		list := someDevices(r, p)
		decide := func(policy schedule.Policy) (*schedule.Decision, error) {
			whole := must.Get(schedule.Price(prog, p, schedule.Unbound))(t)
			part, err := whole.On(list)
			if err != nil {
				return nil, err
			}
			return part.Decide(schedule.Choice{Policy: policy, Seed: seed})
		}
		heft := must.Get(policy.ByName("heft"))(t)
		roomy, err := decide(heft)
		if err != nil {
			continue // some task can run on none of the devices
		}
		parts++
		tighten(t, r, p, roomy)
		for _, info := range policy.All() {
			d, err := decide(info)
			if err != nil {
				continue // too little memory
			}
			want := scheduleBytes(t, d, steps)
			if got := scheduleBytes(t, d, steps); !bytes.Equal(got, want) {
				t.Fatalf("seed %d, %s: another schedule the second time", seed, info.Doc().Name)
			}
			evictions += bytes.Count(want, []byte(`"evict"`))
			if d.Placed == nil {
				continue
			}
			replayed, err := d.Priced.Decide(schedule.Choice{Plans: []*schedule.Plan{d.PlanOf(0, nil)}})
			if err != nil {
				t.Fatalf("seed %d: by its plan: %v", seed, err)
			}
			if got := scheduleBytes(t, replayed, steps); !bytes.Equal(got, want) {
				t.Fatalf("seed %d: another schedule by its plan", seed)
			}
			if got := scheduleBytes(t, fromFiles(t, d), steps); !bytes.Equal(got, want) {
				t.Fatalf("seed %d: another schedule from files:\n%s\n%s", seed, got, want)
			}
			for _, m := range d.Graphs[0].Placed.Moves() {
				if m != nil {
					copies++
				}
			}
		}
	}
	if parts < cases/2 || evictions < cases/2 || copies < 2*cases {
		t.Errorf("%d parts of machines, %d evictions, %d copies: the test tests little", parts, evictions, copies)
	}
}
