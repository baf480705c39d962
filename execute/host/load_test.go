package host

import (
	"testing"
	"time"
)

// TestBusyTime: of CPU 1, 1+2+3 ticks of user, nice and system, 6+7 of interrupts and
// 8 stolen are 27 of 10 ms each; idle (4) and waiting for I/O (5) are not busy, guests
// (9, 10) are in user, the line of all CPUs repeats the others.
func TestBusyTime(t *testing.T) {
	const stat = "cpu  900 900 900 900 900 900 900 900 900 900\ncpu0 100 0 0 0 0 0 0 0 0 0\ncpu1 1 2 3 4 5 6 7 8 9 10\nintr 5 6 7 8 9 10 11 12 13\n"
	for _, c := range []struct {
		cpus []int
		want time.Duration
	}{{[]int{1}, 270 * time.Millisecond}, {[]int{0, 1}, 1270 * time.Millisecond}, {[]int{7}, 0}} {
		if got := busyTime(stat, c.cpus); got != c.want {
			t.Errorf("cpus %v: %v, want %v", c.cpus, got, c.want)
		}
	}
}

// TestProcessTime: 14 ticks of user and 15 of system time, of 10 ms each, in a process
// whose name looks like fields.
func TestProcessTime(t *testing.T) {
	const stat = "7 (a) b (c) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n"
	if got := processTime(stat); got != 290*time.Millisecond {
		t.Errorf("%v, want 290ms", got)
	}
	if got := processTime("7 (cut) S 4"); got != 0 {
		t.Errorf("%v of a line that is cut", got)
	}
}

// TestDisturbed: three ticks are within the counts' error; beyond them a tenth of a
// core is a machine at rest. In one second that is 130 ms, and a second more for each
// core that may be busy.
func TestDisturbed(t *testing.T) {
	for _, c := range []struct {
		others time.Duration
		idle   int
		want   bool
	}{{0, 0, false}, {130 * time.Millisecond, 0, false}, {131 * time.Millisecond, 0, true}, {1130 * time.Millisecond, 1, false}, {1131 * time.Millisecond, 1, true}} {
		if got := (Load{Others: c.others, Window: time.Second}).Disturbed(c.idle); got != c.want {
			t.Errorf("%v in a second, %d idle: %v", c.others, c.idle, got)
		}
	}
	if got := (Load{Others: 500 * time.Millisecond, Window: 2 * time.Second}).Cores(); got != 0.25 {
		t.Errorf("%g cores, want 0.25", got)
	}
	if got := (Load{}).Cores(); got != 0 {
		t.Errorf("%g cores of no time", got)
	}
}
