package best

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"dahl/must"
	"dahl/plan"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/schedule"
)

// TestEnded: wherever a search is ended, it says why if it has no plan yet. Else its plan takes what the simulator says of
// as many steps as results are told in, its bound is no more than what the whole search found, and its certificate,
// where there is one, is sound. It is explained too.
func TestEnded(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 41))
	none, some, certified := 0, 0, 0
	for compared := 0; compared < 6; {
		in, ok := randomInstance(t, r)
		if !ok {
			continue
		}
		compared++
		s := space.Of(in.priced, space.Sets(in.priced.Platform, in.priced.Program.Graphs[0]))
		for _, o := range []Options{{Aim: problem.Aim{Objective: problem.Energy, Steady: true}, Nodes: 5000}, {Aim: problem.Aim{Objective: problem.Time}, Nodes: 5000}} {
			counted := must.EndsAtLook(t, math.MaxInt)
			whole := must.Get(Find(counted, s, o))(t)
			looks := math.MaxInt - counted.Left()
			for n := 1; n <= 2*looks; n = n*3/2 + 1 {
				if n > looks && n*2/3 < looks {
					n = looks // the last one, while bounds are proved
				}
				ctx := must.EndsAtLook(t, n)
				found, err := Find(ctx, s, o)
				ended := ctx.Context.Err() != nil
				if err != nil {
					none++
					if !ended || !errors.Is(err, context.Canceled) {
						t.Errorf("after %d looks: %v", n, err)
					}
					continue
				}
				some++
				checkEnded(t, s, o, found)
				if found.Bound > whole.Value*(1+tolerance) || found.Value < whole.Bound*(1-tolerance) {
					t.Errorf("after %d looks: bound %v and value %v, in the end %v and %v", n, found.Bound, found.Value, whole.Bound, whole.Value)
				}
				if e, err := found.Explain(ctx, 1); err != nil || e.Chosen.Figures.StepJ != found.Joules {
					t.Errorf("after %d looks: explained as %+v, %v", n, e, err)
				}
				if ended && found.Certificate != nil {
					certified++
				}
			}
		}
	}
	if none == 0 || some == 0 || certified == 0 {
		t.Errorf("%d searches without a plan, %d with one, %d of them certified: the test tests little", none, some, certified)
	}
}

// TestExplainEnded: where the context of an explanation ends, the chosen plan is told as ever, and the draws are those until
// then. Each of up to 100 draws is a look.
func TestExplainEnded(t *testing.T) {
	found := alike(search(t, fmt.Sprintf(many, 5), 72, `{"cpu": 1000000}`, Options{Aim: problem.Aim{Objective: problem.Energy, Steady: true}, Nodes: 100_000}))
	for _, looks := range []int{1, 60} {
		e := must.Get(found.Explain(must.EndsAtLook(t, looks), 1))(t)
		if c := &e.Chosen; !near9(c.Figures.Value, 0.432) || c.Devices != "cpu:4" || e.Next == nil {
			t.Errorf("after %d looks: chosen %+v, next %+v", looks, c, e.Next)
		}
		s := &e.Spread
		if (looks == 1) != (s.Draws == 0) || s.Draws >= looks || (s.Draws == 0) != (s.Missing != "" && s.Chosen == nil) {
			t.Errorf("after %d looks: %+v", looks, s)
		}
	}
}

// checkEnded compares what a search says with the simulator, and checks its certificate.
func checkEnded(t *testing.T, s *space.Space, o Options, found *Result) {
	t.Helper()
	priced := must.Get(s.Price(found.Choice))(t)
	e := must.Get(plan.Evaluate(priced, schedule.Choice{Plans: []*schedule.Plan{found.Plan}}))(t)
	step, err := e.Step(t.Context(), o.Steady, longRun)
	if err != nil || step.Time != found.Makespan || math.Abs(step.Joules-found.Joules) > tolerance*found.Joules {
		t.Errorf("the plan takes %v and %v J, %v; the search says %v and %v J", step.Time, step.Joules, err, found.Makespan, found.Joules)
	}
	if c := found.Certificate; c != nil {
		if err := c.Check(s); err != nil || c.Bound() < found.Bound || found.Bound <= 0 {
			t.Errorf("certificate of %v, told %v: %v", c.Bound(), found.Bound, err)
		}
	}
}

// TestTimeLeft: of a minute a tenth is for the report, 6 s, or as much as that takes. Behind 10 s before the search 44 s are left, and of a minute that is spent
// a hundredth, 600 ms.
func TestTimeLeft(t *testing.T) {
	for _, c := range []struct{ spent, report, want time.Duration }{
		{10 * time.Second, 0, 44 * time.Second}, {10 * time.Second, 7 * time.Second, 43 * time.Second}, {58 * time.Second, 0, 600 * time.Millisecond}, {time.Hour, 0, 600 * time.Millisecond},
	} {
		if got := timeLeft(time.Minute, c.spent, c.report); got != c.want {
			t.Errorf("after %v, with a report of %v, there are %v left, want %v", c.spent, c.report, got, c.want)
		}
	}
}
