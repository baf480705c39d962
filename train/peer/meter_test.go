package peer

import (
	"testing"

	"dahl/energy/meter"
)

// Two meters over the same 5 s: 30 J and 70 J are 100 J, their errors 1 J and 2 J add up. Idle they
// counted 12 J in 2 s, 6 W, so that of the 100 J 30 are those of an idle machine.
func TestJoules(t *testing.T) {
	e := Energy{
		Readings: []meter.Reading{{Of: "processors", Meter: "RAPL", Joules: 30, ErrorJoules: 1, Seconds: 5},
			{Of: "gpu0", Meter: "NVML energy counter", Joules: 70, ErrorJoules: 2, Seconds: 4.9}},
		Idle: []meter.Reading{{Of: "processors", Joules: 5, Seconds: 2}, {Of: "gpu0", Joules: 7, Seconds: 2}},
	}
	if joules, off := e.Joules(); joules != 100 || off != 3 {
		t.Errorf("%v ± %v J; want 100 ± 3 J", joules, off)
	}
	if above, ok := e.AboveIdle(); !ok || above != 70 {
		t.Errorf("%v J above idle, %v; want 70 J", above, ok)
	}
	e.Idle = nil
	if _, ok := e.AboveIdle(); ok {
		t.Error("joules above idle without an idle window")
	}
}
