package execute

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

// TestDisturbed: three ticks are within the counts' error; beyond them a tenth of a
// core is a machine at rest. In one second that is 130 ms.
func TestDisturbed(t *testing.T) {
	for others, want := range map[time.Duration]bool{0: false, 130 * time.Millisecond: false, 131 * time.Millisecond: true} {
		if got := (Load{others, time.Second}).Disturbed(); got != want {
			t.Errorf("%v in a second: %v", others, got)
		}
	}
	if got := (Load{500 * time.Millisecond, 2 * time.Second}).Cores(); got != 0.25 {
		t.Errorf("%g cores, want 0.25", got)
	}
	if got := (Load{}).Cores(); got != 0 {
		t.Errorf("%g cores of no time", got)
	}
}
