package simulate

import (
	"testing"
	"time"
)

// TestReadyFirst: a gpu of 60 bytes has room for one of two operands. a reads x, which
// comes until 50, and runs to 60. Then b, which reads y, and c, which reads x, wait. dmda
// takes b: x leaves, y comes until 110, b runs to 120, and x comes again, until 170; c runs
// to 180. dmdar takes c, to 70; then y comes until 120, and b runs to 130.
func TestReadyFirst(t *testing.T) {
	for policy, want := range map[string]struct {
		moves    string
		makespan time.Duration
	}{
		"dmda":  {"x fetch 0-50, x leaves 60, y fetch 60-110, y leaves 120, x fetch 120-170", 180},
		"dmdar": {"x fetch 0-50, x leaves 70, y fetch 70-120", 130},
	} {
		pl := twoMemories(t)
		pl.Memories[1].CapacityBytes = 60
		p := problem(t, onGPU(t, "x", "y", "x"), pl, 1)
		s := runChecked(t, p, dynamic(t, p, policy))
		if got := moves(p, s); got != want.moves || s.Makespan != want.makespan {
			t.Errorf("%s: moves %s, makespan %d; want %s, %d", policy, got, s.Makespan, want.moves, want.makespan)
		}
	}
}

// TestFewestMissingFirst: all of the first four tasks wait for the gpu at 0 with two, one,
// three and one operands to come; they run in the order b, d, a, c: by what is missing,
// then as they came.
func TestFewestMissingFirst(t *testing.T) {
	p := problem(t, onGPU(t, "uv", "w", "xyz", "t"), twoMemories(t), 1)
	p.Platform.Devices[1].CopyEnginesIn = 1
	s := runChecked(t, p, dynamic(t, p, "dmdar"))
	got := ""
	for _, span := range s.Spans {
		got += p.Graph.Tasks[span.Task].Name
	}
	if want := "bdac"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

// TestComparedTasks: a gpu has room for one operand of two. a reads x; then every task but the
// last, which reads x too, reads one of its own. The last follows a if it is among the 256 that
// have waited longest.
func TestComparedTasks(t *testing.T) {
	for others, follows := range map[int]bool{255: true, 256: false} {
		tasks := []string{"x"}
		for i := range others {
			tasks = append(tasks, string(rune('一'+i)))
		}
		pl := twoMemories(t)
		pl.Memories[1].CapacityBytes = 60
		p := problem(t, onGPU(t, append(tasks, "x")...), pl, 1)
		s := runChecked(t, p, dynamic(t, p, "dmdar"))
		if got := int(s.Spans[1].Task) == len(tasks); got != follows {
			t.Errorf("%d others: task %d runs second", others, s.Spans[1].Task)
		}
	}
}
