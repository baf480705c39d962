package schedule

import (
	"slices"
	"testing"
)

// TestIdleAtomsLeave: atoms leave in this order: 3, brought early for nobody; 0 and 2 by
// their last use; then those that tasks name, the one last that was named or used first: 4
// was named after 1, and 5 came for a task after that. When 1 is named by nobody any more,
// it has been used just now and goes behind 2.
func TestIdleAtomsLeave(t *testing.T) {
	for _, c := range []struct {
		ended bool
		want  []int32
	}{
		{false, []int32{3, 0, 2, 5, 4, 1}},
		{true, []int32{3, 0, 2, 1, 5, 4}},
	} {
		l := newIdleAtoms(7)
		for _, a := range []int32{4, 0, 1, 2} {
			l.put(a)
		}
		l.name(1, 1)
		l.name(4, 1)
		l.name(5, 1)
		l.name(5, 1) // by a second access
		l.putUnused(5)
		l.putUnused(3)
		l.name(5, -1)
		l.name(6, 1) // is not there
		if c.ended {
			l.name(1, -1)
		}
		var got []int32
		for a, ok := l.first(); ok; a, ok = l.first() {
			if !l.has(a) {
				t.Errorf("%d leaves and is not there", a)
			}
			got = append(got, a)
			l.remove(a)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("ended %v: they leave as %v, want %v", c.ended, got, c.want)
		}
	}
}
