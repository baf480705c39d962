package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/strategy"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/layout"
	"dahl/schedule/policy"
)

// stashBytes is what a stage keeps of a micro-batch from its forward pass to the end of its backward pass: a cache line for each
// stage up to this one, so that all differ.
func stashBytes(stage int) int64 { return int64(64 * (stage + 1)) }

// pipelineOf is a training step of stages on devices in turn, in micro-batches. A stage takes a micro-batch 1 ms forward and 2 ms backward.
// Nothing moves between stages: tasks follow each other. Without updates no step waits for the one before.
func pipelineOf(t testing.TB, devices, chunks, batches int, updates bool) *dag.Graph {
	t.Helper()
	b, stages := dag.NewBuilder("pipeline"), devices*chunks
	stash, weights := map[[2]int]dag.BufferID{}, make([]dag.BufferID, stages)
	tasks := map[[2]int]dag.TaskID{} // of the last pass of a micro-batch
	access := func(id dag.BufferID, m dag.Mode) dag.Access {
		return dag.Access{Region: dag.Region{Buffer: id}, Mode: m}
	}
	add := func(s, m int, phase string, ns int64, follows []dag.TaskID, accesses ...dag.Access) dag.TaskID {
		return b.Task(dag.Task{Name: fmt.Sprint(phase, " ", s, " ", m), Labels: dag.Labels{Phase: phase, MicroBatch: int32(m), Stage: int32(s + 1)},
			Costs: []dag.Cost{{Key: dag.AnyDevice, Ns: ns}}, Placement: &dag.Placement{Device: fmt.Sprint("d", s%devices)}, After: follows, Accesses: accesses})
	}
	for s := range stages {
		weights[s] = b.Buffer(dag.Buffer{Name: fmt.Sprint("w", s), Shape: []int{1}, Type: dag.Float32, Role: dag.Parameter, Home: fmt.Sprint("d", s%devices, ".mem")})
		for m := 1; m <= batches; m++ {
			stash[[2]int{s, m}] = b.Buffer(dag.Buffer{Name: fmt.Sprint("stash ", s, " ", m), Shape: []int{int(stashBytes(s))}, Type: dag.Uint8})
		}
	}
	for m := 1; m <= batches; m++ {
		var before []dag.TaskID
		for s := range stages {
			at := [2]int{s, m}
			tasks[at] = add(s, m, "forward", 1e6, before, access(weights[s], dag.Read), access(stash[at], dag.Write))
			before = []dag.TaskID{tasks[at]}
		}
		for s := stages - 1; s >= 0; s-- {
			at := [2]int{s, m}
			tasks[at] = add(s, m, "backward", 2e6, before, access(weights[s], dag.Read), access(stash[at], dag.Read))
			before = []dag.TaskID{tasks[at]}
		}
	}
	for s := range stages {
		if !updates {
			break
		}
		var all []dag.TaskID
		for m := 1; m <= batches; m++ {
			all = append(all, tasks[[2]int{s, m}])
		}
		add(s, 0, "update", 0, all, access(weights[s], dag.ReadWrite))
	}
	return must.Get(b.Build())(t)
}

// TestOrdersOfPipelines holds orders to the formulas of their papers. With p devices, m micro-batches and v stages on each device, all of which
// take f = 1 ms forward and b = 2 ms backward, a step takes m·v·(f + b), and in addition
//
//	gpipe, 1f1b  (p - 1)(f + b), which is (p - 1)/(m + p - 1) of the whole
//	interleaved  (p - 1)(f + b), which is (p - 1)/(v·m) of the rest
//
// Steps follow each other without a gap on the first device, whose first forward pass waits for its update: the period is a step.
// Stage s holds m micro-batches with gpipe, and min(p - s, m) with 1f1b. Device r of interleaved holds 2(p - 1 - r) + (v - 1)p + 1 at a time, or
// all m·v if that is less. The last group of micro-batches may have empty places, p - m mod p, each of which costs f + b.
func TestOrdersOfPipelines(t *testing.T) {
	for _, c := range []struct {
		order                    string
		devices, chunks, batches int
	}{
		{"gpipe", 4, 1, 8}, {"1f1b", 4, 1, 8}, {"gpipe", 3, 1, 7}, {"1f1b", 3, 1, 7}, {"1f1b", 5, 1, 3}, {"gpipe", 1, 1, 5}, {"1f1b", 1, 1, 5},
		{"interleaved", 2, 2, 8}, {"interleaved", 4, 2, 8}, {"interleaved", 3, 3, 9}, {"interleaved", 4, 2, 4}, {"interleaved", 3, 2, 7}, {"gpipe", 2, 3, 4},
	} {
		what := fmt.Sprintf("%s on %d devices, %d stages each, %d micro-batches", c.order, c.devices, c.chunks, c.batches)
		var devices []platform.Device
		for i := range c.devices {
			devices = append(devices, testmachine.GPU(fmt.Sprint("d", i)))
		}
		g := pipelineOf(t, c.devices, c.chunks, c.batches, true)
		d := decided(t, program(g), how{platform: testmachine.Node(t, devices...), policy: c.order})
		p, m, v := c.devices, c.batches, c.chunks
		want := time.Duration(3*(m*v+p-1)) * time.Millisecond
		one, three := simulated(t, d, 0, 1), simulated(t, d, 0, 3)
		if c.order == "interleaved" && m%p > 0 {
			want += time.Duration(3*(p-m%p)) * time.Millisecond // the places of the last group that are empty
		}
		if one.Makespan != want || three.Makespan != 3*want {
			t.Errorf("%s: one step takes %v and three take %v, want %v each", what, one.Makespan, three.Makespan, want)
		}
		if of, ok := strategy.StepOf(d.Problem(0, 1, false), d.Graphs[0].Plan, nil, nil); !ok || math.Abs(of.Seconds-0.003*float64(m*v+p-1)) > 1e-12 {
			t.Errorf("%s: the formula says %+v", what, of)
		}
		for r := range p {
			held := map[string]int{"gpipe": m * v, "1f1b": min(p-r, m), "interleaved": min(2*(p-1-r)+(v-1)*p+1, m*v)}[c.order]
			if c.order == "interleaved" && (m%p > 0 || m == p) {
				held = m * v // all go forward first
			}
			if got := heldAtOnce(one, g, r, p); got != held {
				t.Errorf("%s: device %d holds %d micro-batches at once, want %d", what, r, got, held)
			}
			if bytes := d.Layouts(0)[1+r].ArenaBytes[layout.StepArena]; v == 1 && bytes != int64(held)*stashBytes(r) {
				t.Errorf("%s: device %d keeps %d bytes, want %d of %d", what, r, bytes, held, stashBytes(r))
			}
		}
	}
}

// TestStepsOfPipelinesOverlap: without updates to wait for, p devices with a stage each take m micro-batches of a step in m·(f + b) in the order 1f1b. To fill
// and to drain the pipeline takes (p - 1)(f + b) once. The formula is the former. Stage s still holds p - s micro-batches at most. With fewer micro-batches than devices, and in other orders, a
// step begins behind the last one.
func TestStepsOfPipelinesOverlap(t *testing.T) {
	for _, c := range []struct {
		order            string
		devices, batches int
		overlaps         bool
	}{{"1f1b", 4, 8, true}, {"1f1b", 3, 7, true}, {"1f1b", 5, 5, true}, {"1f1b", 5, 3, false}, {"gpipe", 4, 8, false}} {
		what := fmt.Sprintf("%s on %d devices, %d micro-batches", c.order, c.devices, c.batches)
		var devices []platform.Device
		for i := range c.devices {
			devices = append(devices, testmachine.GPU(fmt.Sprint("d", i)))
		}
		g := pipelineOf(t, c.devices, 1, c.batches, false)
		d := decided(t, program(g), how{platform: testmachine.Node(t, devices...), policy: c.order})
		if overlaps := d.Graphs[0].Plan.Lags != nil; overlaps != c.overlaps {
			t.Errorf("%s: steps overlap %v, want %v", what, overlaps, c.overlaps)
		} else if !overlaps {
			continue
		}
		p, m := c.devices, c.batches
		five := simulated(t, d, 0, 5)
		if want := time.Duration(3*(5*m+p-1)) * time.Millisecond; five.Makespan != want {
			t.Errorf("%s: five steps take %v, want %v", what, five.Makespan, want)
		}
		if of, ok := strategy.StepOf(d.Problem(0, 1, false), d.Graphs[0].Plan, nil, nil); !ok || math.Abs(of.Seconds-0.003*float64(m)) > 1e-12 {
			t.Errorf("%s: the formula says %+v", what, of)
		}
		for r := range p {
			if got := heldAtOnce(five, g, r, p); got != p-r {
				t.Errorf("%s: device %d holds %d micro-batches at once, want %d", what, r, got, p-r)
			}
		}
	}
}

// heldAtOnce counts the micro-batches of stages on a device, among so many in turn, whose passes forward have begun while their passes backward have
// not ended. It counts none that no pass backward ends.
func heldAtOnce(s *schedule.Schedule, g *dag.Graph, device, devices int) (most int) {
	type pass struct{ stage, batch, step int32 }
	from, to := map[pass]time.Duration{}, map[pass]time.Duration{}
	for _, span := range s.Spans { // by start
		of := &g.Tasks[span.Task].Labels
		at := pass{of.Stage, of.MicroBatch, span.Step}
		switch _, begun := from[at]; {
		case of.Stage == 0 || of.MicroBatch == 0 || (int(of.Stage)-1)%devices != device:
		case of.Phase == "forward" && !begun:
			from[at] = span.Start
		case of.Phase == "backward":
			to[at] = max(to[at], span.End)
		}
	}
	for at := range to {
		now := 0
		for other, end := range to {
			if from[other] <= from[at] && from[at] < end {
				now++
			}
		}
		most = max(most, now)
	}
	return most
}

// TestOrdersRefuseStages: 1f1b has one stage on each device, interleaved has several, and the devices in turn.
func TestOrdersRefuseStages(t *testing.T) {
	p := testmachine.Node(t, testmachine.GPU("d0"), testmachine.GPU("d1"))
	for _, c := range []struct {
		order  string
		chunks int
		want   string
	}{
		{"1f1b", 2, `policy 1f1b: "d0" has 2 stages, and 1f1b orders devices of one stage; write order interleaved or gpipe`},
		{"interleaved", 1, `policy interleaved: "d0" has stages [1]; interleaved wants the devices in turn, as in a, b, a, b`},
	} {
		priced := must.Get(schedule.Price(program(pipelineOf(t, 2, c.chunks, 3, true)), p, schedule.Unbound))(t)
		_, err := priced.Decide(schedule.Choice{Policy: must.Get(policy.ByName(c.order))(t)})
		if err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s with %d stages on each device: %v, want %s", c.order, c.chunks, err, c.want)
		}
	}
}

// TestOrdersOfAnyGraph: whatever stages, micro-batches and phases tasks say, and whatever they follow, an order plans them or refuses them in words of its own.
func TestOrdersOfAnyGraph(t *testing.T) {
	p := testmachine.Node(t, testmachine.CPU(2), testmachine.GPU("d0"), testmachine.GPU("d1"))
	rng := rand.New(rand.NewPCG(5, 43))
	planned := 0
	for range 300 {
		b, n := dag.NewBuilder("any"), 1+rng.IntN(14)
		for i := range n {
			task := dag.Task{Name: fmt.Sprint("t", i), Costs: []dag.Cost{{Key: dag.AnyDevice, Ns: rng.Int64N(4)}}, Labels: dag.Labels{
				Phase: []string{"load", "forward", "loss", "backward", "recompute", "reduce", "update", ""}[rng.IntN(8)], MicroBatch: rng.Int32N(4) - 1, Stage: rng.Int32N(5) - 1}}
			if device := []string{"", "d0", "d1", "cpu", "cpu.1"}[rng.IntN(5)]; device != "" {
				task.Placement = &dag.Placement{Device: device}
			}
			for before := range i {
				if rng.IntN(4) == 0 {
					task.After = append(task.After, dag.TaskID(before))
				}
			}
			b.Task(task)
		}
		priced := must.Get(schedule.Price(program(must.Get(b.Build())(t)), p, schedule.Unbound))(t)
		for _, order := range policy.Pipelines() {
			d, err := priced.Decide(schedule.Choice{Policy: order})
			if err == nil {
				simulated(t, d, 0, 2)
				planned++
			} else if !strings.Contains(err.Error(), "waits for what it does later") && !strings.Contains(err.Error(), "has stages [") && !strings.Contains(err.Error(), "and 1f1b orders devices of one stage") {
				t.Errorf("%s: %v", order.Doc().Name, err)
			}
		}
	}
	if planned < 100 {
		t.Errorf("%d plans", planned)
	}
}

// TestFlush: steps of a pipeline train as the step without stages does, to the bit, on cores and on emulated GPUs, in all orders. A device has one stage
// or two, with layers that are recomputed, branches over the bounds of stages, and tiles along all dimensions. The last batch has
// fewer micro-batches. A stage may do no more than load samples. Evaluations pass through the stages as well.
//
// The highest byte that a step touches in the memory of cores is the planned one. With 1f1b stage s of p holds at most p - s micro-batches at once.
func TestFlush(t *testing.T) {
	for _, model := range []string{"digits-cnn", branching} {
		n := newNetwork(t, model, dag.Float64, 1)
		l := n.mixedLowering()
		l.MicroBatches = 4 // of 2, 2 and 1 samples, since a batch has 5
		n.lower(t, l)
		plain := n.execute(t, how{platform: machine(t, 1), policy: "eager"})
		names := []string{"input"}
		for _, s := range n.model.Stages {
			names = append(names, s.Name)
		}
		at := func(part, of int) string { return names[len(names)*part/of] }
		two := func(a, b string) []dag.Stage {
			return []dag.Stage{{From: "input", Device: a}, {From: at(1, 2), Device: b}}
		}
		chunks := []dag.Stage{{From: "input", Device: "gpu"}, {From: names[1], Device: "cpu.0"}, {From: at(2, 4), Device: "gpu"}, {From: at(3, 4), Device: "cpu.0"}}
		for _, c := range []struct {
			order    string
			platform *platform.Platform
			stages   []dag.Stage
		}{
			{"1f1b", machine(t, 2), two("cpu.0", "cpu.1")},
			{"gpipe", emulatedNode(t, 1), two("cpu", "gpu")},
			{"1f1b", emulatedNode(t, 2), two("gpu", "gpu1")},
			{"interleaved", emulatedNode(t, 1), chunks},
			{"gpipe", emulatedNode(t, 1), chunks},
		} {
			if testing.Short() && model == branching && c.order == "gpipe" {
				continue
			}
			what := fmt.Sprintf("%s, %s on %v", model, c.order, c.stages)
			l.Stages = c.stages
			n.lower(t, l)
			tr := n.execute(t, how{platform: c.platform, policy: c.order, poison: true})
			if tr.hash() != plain.hash() || !slices.Equal(tr.losses, plain.losses) {
				t.Errorf("%s: weights %.8s and losses %v, want %.8s and %v", what, tr.hash(), tr.losses, plain.hash(), plain.losses)
			}
			if high, planned := must.Get(tr.runner.HighWater(0))(t), tr.plannedHighWater(); len(c.platform.Memories) == 1 && high[layout.StepArena] != planned[layout.StepArena] {
				t.Errorf("%s: a step touches bytes up to %d, planned are %d", what, high[layout.StepArena], planned[layout.StepArena])
			}
			for _, r := range tr.runs {
				for s := range c.stages {
					if held := heldAtOnce(r.schedule, r.problem.Graph, s, len(c.stages)); c.order == "1f1b" && held > len(c.stages)-s {
						t.Errorf("%s: stage %d of %d held %d micro-batches at once", what, s, len(c.stages), held)
					}
				}
				for _, span := range r.schedule.Spans {
					task, worker := &r.problem.Graph.Tasks[span.Task], r.problem.Platform.Workers[span.Worker]
					if on := c.stages[task.Labels.Stage-1].Device; task.Op != "feed" && task.Op != "fetch" && on != worker.Name && on != r.problem.Platform.Devices[worker.Device].Name {
						t.Errorf("%s: %s ran on %s", what, task.Name, worker.Name)
					}
				}
			}
		}
	}
}

// TestSumsBetweenRecomputedLayers: recomputed layers of the last micro-batch wait for sums of gradients, of which one has an accumulator of that micro-batch and the sum of two accumulators of
// earlier ones. The orders of pipelines take it as a part of the last micro-batch, and give the bits of HEFT.
func TestSumsBetweenRecomputedLayers(t *testing.T) {
	n := newNetwork(t, branching, dag.Float32, 1)
	l := fixtureLowering()
	l.MicroBatches, l.Default.Recompute = 3, true
	l.Stages = []dag.Stage{{From: "input", Device: "cpu.0"}, {From: "conv4", Device: "cpu.1"}}
	n.lower(t, l)
	want := n.execute(t, how{platform: machine(t, 2), policy: "heft"}).hash()
	for _, order := range []string{"gpipe", "1f1b"} {
		if got := n.execute(t, how{platform: machine(t, 2), policy: order}).hash(); got != want {
			t.Errorf("%s: weights %.8s, want %.8s", order, got, want)
		}
	}
}
