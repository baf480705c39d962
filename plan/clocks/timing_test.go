package clocks

import (
	"math/rand/v2"
	"testing"

	"dahl/must"
)

// A change of one task is allowed if the period of all times then is no longer, and room says so of none that is not allowed. With
// a task at which steps begin, it says so of all that are.
func TestTiming(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 32))
	for k := range 400 {
		g, steady := randomGraph(r)
		m := must.Get(newTiming(g))(t)
		for i := range m.takes {
			m.takes[i] = r.Int64N(30)
		}
		takes := func(t int32) int64 { return m.takes[t] }
		if got, want := m.shortest(), periodOf(g, takes); got != want {
			t.Fatalf("graph %d: a period of %d, want %d", k, got, want)
		}
		m.period += r.Int64N(20)
		for range 30 {
			task := r.Int32N(int32(len(m.takes)))
			room, was := m.room()[task], m.takes[task]
			to := r.Int64N(60)
			m.takes[task] = to
			want := periodOf(g, takes) <= m.period
			m.takes[task] = was
			if got := m.set(task, to); got != want || got != (m.takes[task] == to) && to != was {
				t.Fatalf("graph %d: task %d may take %d: %v, want %v", k, task, to, got, want)
			}
			if fits := to-was <= room; want && !fits || !steady && to > was && fits != want {
				t.Fatalf("graph %d: task %d takes %d and is to take %d, room %d", k, task, was, to, room)
			}
			for i := range g.Waits {
				if w := &g.Waits[i]; m.start[w.From]+m.until(w) > m.start[w.To] {
					t.Fatalf("graph %d: a wait is too short", k)
				}
			}
		}
	}
}
