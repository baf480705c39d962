package energy

import (
	"slices"
	"testing"

	"dahl/must"
	"dahl/schedule"
)

// In the example the GPU draws most from 5 to 8 s: with one core busy 35 + 9 + 2 + 250 W, and the link
// 1 W. With two copies then it is full and draws 3 W, though each fills it by itself. Both cores are
// busy from 3 to 4 s, at 18 W.
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
		r := must.Get(FromSchedule(s, prob))(t)
		if want := []Cap{{"the machine", 330, c.machine}, {"cpu", 20, 18}, {"gpu", 300, 250}}; !slices.Equal(r.Caps, want) {
			t.Errorf("with %d more copies: %v, want %v", c.copies, r.Caps, want)
		}
		if err := r.CheckCaps(); err != nil {
			t.Error(err)
		}
		r.Caps[2].GreatestWatts = 301
		if err := r.CheckCaps(); err == nil || err.Error() != "gpu draws 301 W, above its cap of 300 W" {
			t.Errorf("301 W: %v", err)
		}
	}
}
