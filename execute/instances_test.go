package execute

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/place"
	"dahl/schedule/policy"
)

// inCopies has so many copies of buffers wherever a plan's tasks need them; of a buffer that there is
// only one version of, one. Different numbers make tasks that work on the same copies only after
// many steps.
func inCopies(t testing.TB, prog *dag.Program, h how, number func(at int) int) how {
	t.Helper()
	d, err := decided(prog, h)
	if err != nil {
		t.Fatal(err)
	}
	plans := slices.Clone(h.Plans)
	for i, g := range prog.Graphs {
		plan := *h.Plans[i]
		for at, is := range d.Placed.Written(i).Places {
			name, _, _ := strings.Cut(is.Buffer, "@")
			b, _ := g.BufferByName(name)
			if g.WrittenStorages()[b] && !g.Carried(b) && g.Buffers[b].Home == "" {
				plan.Versions = append(plan.Versions, place.PlannedVersions{Memory: is.Memory, Buffer: name, Versions: number(at)})
			}
		}
		plans[i] = &plan
	}
	h.Plans = plans
	return h
}

// TestSplitsGiveTheSameBits trains with every split of the network over cores and emulated GPUs, with one
// version of each buffer and, by turns, with one to four, recorded and, in batches, not. The truth is one
// core in program order. Batches are captured for each turn.
func TestSplitsGiveTheSameBits(t *testing.T) {
	const steps = 13
	prog := testProgram(t)
	want := trained(t, prog, how{Platform: machine(t, 1), Plans: spreadPlans(prog, 1, func(*dag.Task) int { return 0 }), Variant: "go"}, steps)
	captured := [2]int{}
	for _, c := range []struct{ cores, gpus int }{{3, 0}, {1, 1}, {2, 2}} {
		for _, split := range splits {
			workers := c.cores + c.gpus
			plans := spreadPlans(prog, workers, func(task *dag.Task) int { return split.of(task, workers) })
			plain := how{Platform: node(t, c.cores, c.gpus), Plans: plans, Variant: "go"}
			for most, h := range map[int]how{1: plain, 4: inCopies(t, prog, plain, func(at int) int { return 1 + at%4 })} {
				t.Run(fmt.Sprintf("%d cores, %d GPUs, %s, up to %d", c.cores, c.gpus, split.name, most), func(t *testing.T) {
					if got := trained(t, prog, h, steps); got != want {
						t.Error("recorded: the weights differ from those of one core")
					}
					h.Hooks = testHooks(nil)
					r := newRunner(t, prog, h)
					if got := unrecorded(t, r, steps); got != want {
						t.Error("the weights differ from those of one core")
					}
					if n := r.Issue(0); n.Segments > n.Tasks || n.Captured < captureLeast*n.Graphs || (n.Segments == 0) != (c.gpus == 0) {
						t.Errorf("%+v", n)
					}
					for _, parts := range r.graphs[0].batches {
						for i := 0; parts != nil && i < len(parts.list); i++ {
							if n := len(parts.list[i].captured); n > 0 {
								captured[min(n, 2)-1]++
							}
						}
					}
				})
			}
		}
	}
	if captured[0] == 0 || captured[1] == 0 {
		t.Errorf("%d batches are captured for one turn and %d for several", captured[0], captured[1])
	}
}

// TestPoliciesKnowCopies: a policy that decides at run time gives the same bits where the graph has
// copies, on cores and, by the plan that it makes, on several memories.
func TestPoliciesKnowCopies(t *testing.T) {
	const steps = 13
	prog := testProgram(t)
	want := trained(t, prog, how{Platform: machine(t, 1), Variant: "go"}, steps)
	for i, g := range prog.Graphs {
		copies := slices.Repeat([]int32{1}, len(g.Buffers))
		for b := range copies {
			if id := dag.BufferID(b); g.Storage(id) == id && g.WrittenStorages()[b] && !g.Carried(id) && g.Buffers[b].Home == "" {
				copies[b] = 1 + int32(b%4)
			}
		}
		with, err := g.WithVersions(copies)
		if err != nil {
			t.Fatal(err)
		}
		prog.Graphs[i] = with
	}
	for _, name := range dynamicPolicies() {
		for _, p := range []*platform.Platform{machine(t, 3), node(t, 1, 1), node(t, 2, 2)} {
			if got := trained(t, prog, how{Platform: p, Policy: name, Variant: "go"}, steps); got != want {
				t.Errorf("%s on %d devices: the weights differ from those of one core", name, len(p.Devices))
			}
		}
	}
}

// dynamicPolicies are the names of those that decide at run time.
func dynamicPolicies() (names []string) {
	for _, info := range policy.All() {
		if _, online := info.(policy.Online); online {
			names = append(names, info.Doc().Name)
		}
	}
	return names
}

// TestWritersRunAhead: feed writes the number of the step into one of n copies of a buffer, and fetch, on
// another core, reads it. The first fetch does not end before the feed of step n−1 has: with n copies
// it may, since no feed before that overwrites anything. Each fetch finds the number of its step.
func TestWritersRunAhead(t *testing.T) {
	const steps = 10
	for n := 1; n <= 4; n++ {
		b := dag.NewBuilder("ahead")
		access := func(buf dag.Buffer, mode dag.Mode) dag.Access {
			return dag.Access{Region: dag.Region{Buffer: b.Buffer(buf)}, Mode: mode}
		}
		index := access(dag.Buffer{Name: "index", Shape: []int{1}, Type: dag.Int32, Versions: n}, dag.Write)
		kernels.Add(b, dag.Task{Name: "feed", Op: "feed", Type: dag.Float32, Accesses: []dag.Access{index}})
		index.Mode = dag.Read
		kernels.Add(b, dag.Task{Name: "fetch", Op: "fetch", Type: dag.Float32, Accesses: []dag.Access{access(dag.Buffer{Name: "loss", Shape: []int{1}, Type: dag.Float32}, dag.Read), index}})
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		ahead := make(chan struct{})
		hooks := map[string]Hook{
			"feed": func(step int, call *calls.Call) error {
				if calls.Data[int32](&call.Args[0])[0] = int32(step); step == n-1 {
					close(ahead)
				}
				return nil
			},
			"fetch": func(step int, call *calls.Call) error {
				<-ahead
				if got := calls.Data[int32](&call.Args[1])[0]; got != int32(step) {
					return fmt.Errorf("it finds %d", got)
				}
				return nil
			},
		}
		r := newRunner(t, &dag.Program{Name: "ahead", Graphs: []*dag.Graph{g}}, how{Platform: machine(t, 2), Plans: []*schedule.Plan{{Order: [][]dag.TaskID{{0}, {1}}}}, Options: Options{Hooks: hooks}})
		if _, err := r.Run(context.Background(), 0, steps, false); err != nil {
			t.Errorf("%d copies: %v", n, err)
		}
	}
}
