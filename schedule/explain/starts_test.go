package explain

import (
	"reflect"
	"testing"
	"time"
)

// In gapSchedule c of step 0 (37 to 57 on the GPU) waited for b (ended at 20), which ended after a,
// and for y (arrived at 34), which arrived after x; its worker was free from the beginning. y
// (25 to 34) waited for b, the last predecessor of the task that needed it, and for the route, which
// x had until 25. d of step 1 waited for d of step 0 (ended at 50), and cpu.0 was free from 10 on.
func TestStartsNameAllThatWasWaitedFor(t *testing.T) {
	p := gapProblem(t)
	s := gapSchedule(p)
	starts := NewStarts(p, s)
	freed := func(by PathStep, b Bound, at time.Duration) Freed { return Freed{by, b, at} }
	for _, c := range []struct {
		what      string
		got, want []Freed
		last      int
	}{
		{"c", starts.OfSpan(3), []Freed{freed(spanStep(1), BoundPredecessor, 20), freed(transferStep(1), BoundTransfer, 34)}, 1},
		{"y", starts.OfTransfer(1), []Freed{freed(spanStep(1), BoundPredecessor, 20), freed(transferStep(0), BoundBusy, 25)}, 1},
		{"d of step 1", starts.OfSpan(4), []Freed{freed(spanStep(2), BoundPredecessor, 50), freed(spanStep(0), BoundBusy, 10)}, 0},
		{"a", starts.OfSpan(0), nil, -1},
	} {
		if !reflect.DeepEqual(c.got, c.want) || LastFreed(c.got) != c.last {
			t.Errorf("%s waited for %+v, last number %d; want %+v, %d", c.what, c.got, LastFreed(c.got), c.want, c.last)
		}
	}
}

// Whoever follows the causes back from the end walks along the critical path, in any order of
// questions and any number of times.
func TestCausesFollowTheCriticalPath(t *testing.T) {
	p := gapProblem(t)
	for n := 1; n <= 5; n++ {
		s := gapSchedule(p)
		s.Spans = s.Spans[:n]
		path, starts := CriticalPath(p, s), NewStarts(p, s)
		for range 2 {
			for i := range path {
				all := starts.of(path[i])
				last := LastFreed(all)
				if i == 0 {
					if last >= 0 {
						t.Errorf("%d spans: the first step of the path waited for %+v", n, all)
					}
					continue
				}
				before := path[i-1]
				if last < 0 || all[last].By.Span != before.Span || all[last].By.Transfer != before.Transfer || all[last].Bound != path[i].Bound {
					t.Errorf("%d spans: step %d waited for %+v, and the path comes from %+v", n, i, all, before)
				}
			}
		}
	}
}
