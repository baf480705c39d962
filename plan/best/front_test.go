package best

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"dahl/must"
	"dahl/plan/certificate"
	"dahl/plan/exact"
	"dahl/plan/problem"
	"dahl/plan/relax"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/schedule"
)

// Of five plans the third is beaten by the second in both, and the last by the first in joules.
func TestFront(t *testing.T) {
	plan := func(ms time.Duration, joules float64) Attempt {
		return Attempt{Makespan: ms * time.Millisecond, Joules: joules, Plan: &schedule.Plan{}}
	}
	tried := []Attempt{plan(3, 2), plan(2, 5), plan(4, 6), plan(1, 9), plan(3, 3)}
	want := []int{3, 1, 0}
	front := Front(tried)
	if len(front) != len(want) {
		t.Fatalf("%d plans, want %d", len(front), len(want))
	}
	for i, at := range want {
		if front[i].Plan != tried[at].Plan {
			t.Errorf("plan %d of the front takes %v and %v J, want those of plan %d", i, front[i].Makespan, front[i].Joules, at)
		}
	}
}

// With the least time of any plan as the deadline, the plan that takes it is one that keeps it. So no bound of the joules of
// those that do is above that plan's, and many are above the one without a deadline. What is written says the
// deadline, and is refused without it where a plan that takes longer has fewer joules.
func TestBoundsWithDeadline(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 13))
	compared, higher := 0, 0
	for compared < 60 {
		in, ok := randomInstance(t, r)
		if !ok {
			continue
		}
		compared++
		fastest := must.Get(exact.Search(t.Context(), in.priced, exact.Options{Objective: problem.Time, Nodes: 20_000}))(t)
		var bounds [2]float64
		for i, deadline := range []time.Duration{0, fastest.Makespan} {
			m := must.Get(certificate.NewModel(in.priced, problem.Energy, false))(t)
			m.Within(deadline)
			proof := must.Get(relax.Bound(t.Context(), m, 3e9*fastest.Joules))(t)
			c := &certificate.Certificate{Objective: "energy", Deadline: deadline, Devices: []string{""}, Tiles: []tiling.Tiling{{}}, Leaves: []certificate.Leaf{{Graph: in.priced.Program.Graphs[0].Hash()}}}
			must.Do(t, c.Leaves[0].Add(m, proof))
			bounds[i] = c.Bound()
			var file bytes.Buffer
			must.Do(t, c.Write(&file))
			again, err := certificate.Read(&file)
			if err == nil {
				err = again.Check(space.Of(in.priced, again.Devices))
			}
			if err != nil {
				t.Errorf("graph %d within %v: %v", compared, deadline, err)
				continue
			}
			if again.Deadline = 0; again.Bound()*1e9 > in.least[problem.Energy]*(1+tolerance) && again.Check(space.Of(in.priced, again.Devices)) == nil {
				t.Errorf("graph %d: %.9g J are accepted without the deadline, and a plan takes %.9g nJ", compared, again.Bound(), in.least[problem.Energy])
			}
		}
		if bounds[1] > fastest.Joules*(1+tolerance) || bounds[1] < bounds[0]*(1-tolerance) {
			t.Errorf("graph %d: %.9g J within %v, of which a plan takes %.9g J; %.9g J without a deadline", compared, bounds[1], fastest.Makespan, fastest.Joules, bounds[0])
		}
		if bounds[1] > 1.01*bounds[0] {
			higher++
		}
	}
	if higher < compared/4 {
		t.Errorf("%d of %d bounds rise by the deadline", higher, compared)
	}
}

// A search with a deadline finds a plan that keeps it, and says so where it finds none.
func TestDeadline(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 13))
	kept := 0
	for kept < 20 {
		in, ok := randomInstance(t, r)
		if !ok {
			continue
		}
		deadline := time.Duration(1.2 * in.least[problem.Time])
		s := space.Of(in.priced, space.Sets(in.priced.Platform, in.priced.Program.Graphs[0]))
		o := Options{Aim: problem.Aim{Objective: problem.Energy, Deadline: deadline}, Nodes: 20_000}
		found, err := Find(t.Context(), s, o)
		if err != nil {
			if !strings.Contains(err.Error(), "the shortest takes ") {
				t.Fatal(err)
			}
			continue
		}
		kept++
		if found.Makespan > deadline || found.Bound > found.Joules*(1+tolerance) || found.Certificate == nil || found.Certificate.Deadline != deadline {
			t.Errorf("deadline %v: a step of %v, %.9g J of at least %.9g", deadline, found.Makespan, found.Joules, found.Bound)
			continue
		}
		if err := found.Certificate.Check(s); err != nil {
			t.Error(err)
		}
		for _, on := range Front(found.Simulated) {
			if on.Makespan <= found.Makespan && on.Joules < found.Joules {
				t.Errorf("the front has %v and %.9g J, which beat what was found", on.Makespan, on.Joules)
			}
		}
	}
	in, _ := randomInstance(t, r)
	for in.priced == nil {
		in, _ = randomInstance(t, r)
	}
	_, err := Find(t.Context(), space.Of(in.priced, []string{""}), Options{Aim: problem.Aim{Objective: problem.EDP, Deadline: 1}, Nodes: 2000})
	if err == nil || !strings.Contains(err.Error(), "no plan that was found takes at most 1ns for a step; the shortest takes ") {
		t.Errorf("a deadline of a nanosecond: %v", err)
	}
}
