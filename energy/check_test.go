package energy

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dahl/schedule"
)

// Of 1369 J in all, the least that must be noticed is 1.4e-6 J; what is less may be rounding. Each
// number of the report is changed by both, and must be missed in the sum that it belongs to.
func TestCheckFindsWrongJoules(t *testing.T) {
	for what, number := range map[string]func(r *Report) *float64{
		"all idle parts":  func(r *Report) *float64 { return &r.Causes.Idle },
		"all busy parts":  func(r *Report) *float64 { return &r.Causes.Busy },
		"all transfers":   func(r *Report) *float64 { return &r.Causes.Transfer },
		"the host":        func(r *Report) *float64 { return &r.Causes.Host },
		"gpu:":            func(r *Report) *float64 { return &r.ByDevice[1].Joules },
		"gpu, idle":       func(r *Report) *float64 { return &r.ByDevice[1].IdleJoules },
		"gpu, above":      func(r *Report) *float64 { return &r.ByDevice[1].BusyJoules },
		"pcie:":           func(r *Report) *float64 { return &r.ByLink[0].Joules },
		"pcie, idle":      func(r *Report) *float64 { return &r.ByLink[0].IdleJoules },
		"pcie, above":     func(r *Report) *float64 { return &r.ByLink[0].TransferJoules },
		"all phases":      func(r *Report) *float64 { return &r.ByPhase[1].Joules },
		"all layers":      func(r *Report) *float64 { return &r.ByLayer[0].Joules },
		"devices, links ": func(r *Report) *float64 { return &r.TotalJoules },
	} {
		for _, off := range []float64{1.3e-6, 1.5e-6, -1.5e-6} {
			s, prob := handExample(t)
			r, err := FromSchedule(s, prob)
			if err != nil {
				t.Fatal(err)
			}
			*number(r) += off
			err = r.Check(s, prob)
			if wrong := off != 1.3e-6; (err != nil) != wrong || wrong && !strings.Contains(err.Error(), what) {
				t.Errorf("%s %g off: %v", what, off, err)
			}
		}
	}
}

// A run in which a task begins a nanosecond earlier draws more, so its report is not that of the
// other; a report of other devices is refused.
func TestCheckOfAnotherRun(t *testing.T) {
	s, prob := handExample(t)
	r, err := FromSchedule(s, prob)
	if err != nil {
		t.Fatal(err)
	}
	s.Spans[2].Start -= 100 // 230 W more for 100 ns
	if err := r.Check(s, prob); err == nil || !strings.Contains(err.Error(), "gpu") {
		t.Errorf("another run: %v", err)
	}
	r.ByDevice = r.ByDevice[:1]
	if err := r.Check(s, prob); err == nil || !strings.Contains(err.Error(), "joules of 1 devices") {
		t.Errorf("a device is missing: %v", err)
	}
	other, otherProb := randomRun(t, rand.New(rand.NewPCG(1, 7)))
	other.Spans = append(other.Spans, schedule.Span{Worker: 99})
	if err := r.Check(other, otherProb); err == nil {
		t.Error("a worker that does not exist is accepted")
	}
}

// In the example the GPU draws most from 5 to 8 s: with one core busy 35 + 9 + 2 + 250 W, and the link
// 1 W. With two copies then it is full and draws 3 W, though each fills it by itself. Both cores are
// busy from 3 to 4 s, at 18 W. A report of another greatest power is refused.
func TestCapsAndGreatestPower(t *testing.T) {
	s, prob := handExample(t)
	p := prob.Platform
	p.CapWatts, p.Devices[0].CapWatts, p.Devices[1].CapWatts = 330, 20, 300
	for _, c := range []struct {
		copies  int
		machine float64
	}{{0, 297}, {2, 299}} {
		for i := range c.copies {
			s.Transfers = append(s.Transfers[:i], schedule.Transfer{From: 0, To: 1, For: 1, Bytes: 1e9, Start: 5 * seconds, End: 6 * seconds})
		}
		r, err := FromSchedule(s, prob)
		if err != nil {
			t.Fatal(err)
		}
		if want := []Cap{{"the machine", 330, c.machine}, {"cpu", 20, 18}, {"gpu", 300, 250}}; !slices.Equal(r.Caps, want) {
			t.Errorf("with %d more copies: %v, want %v", c.copies, r.Caps, want)
		}
		if err := r.Check(s, prob); err != nil {
			t.Error(err)
		}
		r.Caps[2].GreatestWatts++
		if err := r.Check(s, prob); err == nil || !strings.Contains(err.Error(), "gpu reaches 251 W") {
			t.Errorf("a wrong power: %v", err)
		}
		r.Caps = r.Caps[:2]
		if err := r.Check(s, prob); err == nil || !strings.Contains(err.Error(), "2 caps in the report, and 3") {
			t.Errorf("a cap is missing: %v", err)
		}
	}
}
