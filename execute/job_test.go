package execute

import (
	"context"
	"testing"
	"time"

	"dahl/dag"
	"dahl/kernels/calls"
)

// TestPeriodWithoutRecord brackets the period of runs that note nothing else. Of 8 steps, it
// is (e7 − e3)/4, where ei is when step i had ended, by schedule.Schedule. Step 3 ends after
// its loss was fetched, and so does step 7, before Run returns. On one core in program order,
// step 3 ends before step 4 is fed.
func TestPeriodWithoutRecord(t *testing.T) {
	const steps = 8
	prog := testProgram(t)
	onDevice := func(*dag.Task) int { return 1 }
	for _, c := range []struct {
		name    string
		opt     how
		ordered bool // steps follow each other
	}{
		{"one core", how{Platform: machine(t, 1), Plans: spreadPlans(prog, 1, func(*dag.Task) int { return 0 })}, true},
		{"a policy", how{Platform: machine(t, 2), Policy: "eager"}, false},
		{"a device", how{Platform: node(t, 1, 1), Plans: spreadPlans(prog, 2, onDevice)}, false},
		{"a policy on a device", how{Platform: node(t, 1, 1), Policy: "dmda"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			var fed, fetched [steps]time.Duration // begin of the one, end of the other
			inner := testHooks(nil)
			c.opt.Hooks = map[string]Hook{
				"feed": func(step int, call *calls.Call) error {
					fed[step] = time.Since(begin)
					return inner["feed"](step, call)
				},
				"fetch": func(step int, call *calls.Call) error {
					defer func() { fetched[step] = time.Since(begin) }()
					return inner["fetch"](step, call)
				},
			}
			r := newRunner(t, prog, c.opt)
			for range 2 { // the second after a run whose ends must not count
				s, err := r.Run(context.Background(), 0, steps, false)
				if err != nil {
					t.Fatal(err)
				}
				ended := time.Since(begin)
				if most := ended - fetched[3]; s.Period <= 0 || 4*s.Period > most {
					t.Errorf("period %v, want more than 0 and at most %v/4", s.Period, most)
				}
				if least := fetched[7] - fed[4]; c.ordered && 4*(s.Period+1) < least { // it is rounded down
					t.Errorf("period %v, want at least %v/4", s.Period, least)
				}
				if s, err = r.Run(context.Background(), 0, 1, false); err != nil || s.Period != 0 {
					t.Errorf("one step has a period of %v (%v)", s.Period, err)
				}
			}
		})
	}
}
