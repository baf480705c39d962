package platform

import (
	"fmt"
	"strings"
	"testing"
)

// eightGPUs is a machine of eight GPUs with memories of their own.
func eightGPUs(t *testing.T) *Platform {
	text := "name = \"eight\"\n[[memory]]\nname = \"ram\"\n[[device]]\nname = \"cpu\"\nkind = \"cpu\"\nmemory = \"ram\"\nspeed = { float32 = \"1 GF/s\" }\n"
	for i := range 8 {
		text += fmt.Sprintf("[[memory]]\nname = \"hbm%d\"\n[[device]]\nname = \"gpu%d\"\nkind = \"cuda\"\nmemory = \"hbm%d\"\nspeed = { float32 = \"2 GF/s\" }\npower = { idle = \"3 W\", busy = \"7 W\" }\n"+
			"[[link]]\nname = \"pcie%d\"\nbandwidth = \"1 GB/s\"\n[[route]]\nfrom = \"ram\"\nto = \"hbm%d\"\nlinks = [\"pcie%d\"]\n", i, i, i, i, i, i)
	}
	p, err := Parse([]byte(text), "eight.toml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFold: two of eight GPUs, each of which stands for four, draw the watts of all.
func TestFold(t *testing.T) {
	p := eightGPUs(t)
	q, err := p.Fold([]string{"gpu0", "gpu4"}, 4)
	if err != nil {
		t.Fatal(err)
	}
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
	if len(q.Memories) != 3 {
		t.Errorf("%d memories, want two and the host's", len(q.Memories))
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
