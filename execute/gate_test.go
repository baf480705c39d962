package execute

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"dahl/kernels/calls"
	"dahl/must"
	"dahl/schedule/audit"
)

// TestGate: goroutines begin steps as fast as they can while the gate closes. Each ends with the
// same step, which is the furthest that any has begun.
func TestGate(t *testing.T) {
	const lanes = 7
	for range 200 {
		var g gate
		var begun [lanes]int32
		var ended sync.WaitGroup
		for l := range lanes {
			ended.Go(func() {
				for step := int32(0); g.begin(step); step++ {
					begun[l] = step
				}
			})
		}
		g.close()
		ended.Wait()
		for l, last := range begun {
			if last != begun[0] || g.steps(1<<30) != int(last)+1 || g.over(last) || !g.over(last+1) {
				t.Fatalf("lane %d ended with step %d, lane 0 with %d; %d steps", l, last, begun[0], g.steps(1<<30))
			}
		}
	}
}

// TestRunUntil ends runs at a step, at different moments, under plans and under policies that
// decide at run time, on cores and with devices, recorded and not. The weights are then those of
// as many steps on one core, and those of all steps after the rest has run.
func TestRunUntil(t *testing.T) {
	const steps, seeds = 100, 3
	prog := testProgram(t)
	reference := map[int]string{}
	want := func(n int) string {
		if reference[n] == "" {
			r := newRunner(t, prog, how{Platform: machine(t, 1), Policy: "heft", Variant: "go", Options: Options{Hooks: testHooks(nil)}})
			must.Get(r.Run(t.Context(), 0, n, false))(t)
			reference[n] = weights(r)
			r.Close()
		}
		return reference[n]
	}
	cases := []how{{Platform: machine(t, 1), Policy: "heft"}, {Platform: machine(t, 3), Policy: "heft"},
		{Platform: node(t, 1, 1), Policy: "heft"}, {Platform: node(t, 2, 2), Plans: spreadPlans(prog, 4, bySamples(4))}}
	for _, policy := range dynamicPolicies() {
		cases = append(cases, how{Platform: machine(t, 2), Policy: policy}, how{Platform: node(t, 2, 1), Policy: policy})
	}
	early := 0
	for i, c := range cases {
		for seed := range uint64(seeds) {
			name := fmt.Sprintf("case %d (%s, %d workers), seed %d", i, c.Policy, len(c.Platform.Workers), seed)
			rng := rand.New(rand.NewPCG(seed, 43))
			at, record := int64(rng.IntN(20)), seed%2 == 0
			enough, end := context.WithCancel(t.Context())
			var before int // steps of earlier runs
			var begun atomic.Int64
			c.Variant, c.Hooks = "go", testHooks(nil)
			feed := c.Hooks["feed"]
			c.Hooks["feed"] = func(step int, call *calls.Call) error {
				if begun.Add(1) == at {
					end()
				}
				return feed(before+step, call)
			}
			if at == 0 {
				end()
			}
			r := newRunner(t, prog, c)
			s, err := r.RunUntil(t.Context(), enough, 0, steps, record)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			before = s.Steps
			if got := begun.Load(); int(got) != before {
				t.Errorf("%s: %d steps, and %d were begun", name, before, got)
			}
			if got := weights(r); got != want(before) {
				t.Errorf("%s: the weights after %d steps differ from those of one core", name, before)
			}
			if record {
				if err := audit.Check(s, r.Problem(0, before)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if before < steps {
				early++
				if _, err := r.Run(t.Context(), 0, steps-before, record); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if weights(r) != want(steps) {
					t.Errorf("%s: the weights after the rest differ from those of one core", name)
				}
			}
			r.Close()
			end()
		}
	}
	t.Logf("%d of %d runs ended early", early, seeds*len(cases))
	if early < seeds*len(cases)/2 {
		t.Errorf("only %d of %d runs ended early", early, seeds*len(cases))
	}
}
