package platform_test

import (
	"strings"
	"testing"

	"dahl/must"
	"dahl/platforms"
)

// TestFold: two GPUs of the b200, each of which stands for four, draw the watts of all eight.
func TestFold(t *testing.T) {
	p := must.Get(platforms.Load("b200"))(t)
	q := must.Get(p.Fold([]string{"gpu0", "gpu4"}, 4))(t)
	idle := map[string]float64{}
	for _, d := range p.Devices {
		idle[d.Kind] += d.IdleWatts * float64(d.Count)
	}
	for _, d := range q.Devices {
		idle[d.Kind] -= d.IdleWatts * float64(d.Count)
		if first, _ := p.DeviceByName(d.Name); d.Kind == "cuda" && d.Busy.UnitWatts != 4*p.Devices[first].Busy.UnitWatts {
			t.Errorf("%s draws %v W", d.Name, d.Busy.UnitWatts)
		}
	}
	if len(q.Devices) != 3 || idle["cuda"] != 0 || idle["cpu"] != 0 {
		t.Errorf("%d devices, idle watts off by %v", len(q.Devices), idle)
	}
	for _, wrong := range []struct {
		firsts []string
		n      int
		says   string
	}{
		{[]string{"gpu4"}, 5, "4 are there"},
		{[]string{"gpu0", "gpu2"}, 4, `stands for 4 equal ones, and 2 are there`},
		{[]string{"cpu"}, 2, `is unlike it`},
		{[]string{"gpu9"}, 2, `device "gpu9"`},
	} {
		if _, err := p.Fold(wrong.firsts, wrong.n); err == nil || !strings.Contains(err.Error(), wrong.says) {
			t.Errorf("%v by %d: %v", wrong.firsts, wrong.n, err)
		}
	}
}
