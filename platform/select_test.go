package platform

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"dahl/must"
)

// selectable has a processor of five cores and three GPUs of two kinds; a host of 35 W.
func selectable(t *testing.T) *Platform {
	t.Helper()
	p := &Platform{Name: "node", HostPower: Quantity{35, Measured},
		Memories: []Memory{{Name: "hbm0"}, {Name: "ram"}, {Name: "hbm1"}, {Name: "own"}},
		Devices: []Device{
			{Name: "g0", Kind: "cuda", Count: 1, Memory: 0, IdleWatts: 20, Busy: BusyPower{UnitWatts: 250}, PowerSource: Datasheet},
			{Name: "cpu", Kind: "cpu", Count: 5, Memory: 1, IdleWatts: 2, Busy: BusyPower{UnitWatts: 9}, PowerSource: Measured},
			{Name: "g1", Kind: "cuda", Count: 1, Memory: 2, IdleWatts: 30, Busy: BusyPower{UnitWatts: 250}, PowerSource: Guess},
			{Name: "e", Kind: "emulated", Count: 3, Memory: 3},
		},
		Links:  []Link{{Name: "pcie", BandwidthBytesPerSec: 1e9}},
		Routes: []Route{{From: 0, To: 1, Links: []LinkID{0}}, {From: 1, To: 2, Links: []LinkID{0}}, {From: 1, To: 3, Links: []LinkID{0}}},
	}
	for _, device := range []string{"g1", "cuda", "cpu", "emulated"} {
		p.Models = append(p.Models, Model{Op: "o", Type: "float32", Shape: "s", Device: device, MedianNs: 7})
	}
	must.Do(t, p.Complete())
	return p
}

func TestSelect(t *testing.T) {
	p := selectable(t)
	for _, c := range []struct {
		list, devices, models string
		host                  float64 // 35 W and what is left out draws idle
		source                Source
	}{
		{"cpu", "cpu×5", "cpu", 35 + 20 + 30, Guess},
		{"cpu:2", "cpu×2", "cpu", 35 + 20 + 30 + 3*2, Guess},
		{"cpu:5,g0", "g0×1 cpu×5", "cuda cpu", 35 + 30, Guess},
		{"g1,cpu", "cpu×5 g1×1", "g1 cuda cpu", 35 + 20, Datasheet},
		{"g0", "g0×1 cpu×1!", "cuda cpu", 35 + 30 + 4*2, Guess},
		{"cuda", "g0×1 cpu×1! g1×1", "g1 cuda cpu", 35 + 4*2, Measured},
		{"gpu", "g0×1 cpu×1! g1×1 e×3", "g1 cuda cpu emulated", 35 + 4*2, Measured},
		{"gpu:2", "g0×1 cpu×1! g1×1", "g1 cuda cpu", 35 + 4*2, Measured},
		{"gpu:4, cpu:1", "g0×1 cpu×1 g1×1 e×2", "g1 cuda cpu emulated", 35 + 4*2, Measured},
		{"emulated:1", "cpu×1! e×1", "cpu emulated", 35 + 20 + 30 + 4*2, Guess},
		{"cpu,gpu", "g0×1 cpu×5 g1×1 e×3", "g1 cuda cpu emulated", 35, Measured},
	} {
		q, err := p.Select(c.list)
		if err != nil {
			t.Errorf("%s: %v", c.list, err)
			continue
		}
		var devices, models []string
		for _, d := range q.Devices {
			text := fmt.Sprintf("%s×%d", d.Name, d.Count)
			if d.PlacedOnly {
				text += "!"
			}
			devices = append(devices, text)
		}
		for _, m := range q.Models {
			models = append(models, m.Device)
		}
		if got := strings.Join(devices, " "); got != c.devices {
			t.Errorf("%s: devices %s, want %s", c.list, got, c.devices)
		}
		if got := strings.Join(models, " "); got != c.models {
			t.Errorf("%s: models of %s, want %s", c.list, got, c.models)
		}
		for i := range q.Devices {
			if d := &q.Devices[i]; d.Name == "g1" && d.Ordinal != 1 || d.Name != "g1" && d.Ordinal != 0 {
				t.Errorf("%s: device %s is number %d of its driver", c.list, d.Name, d.Ordinal)
			}
		}
		if q.HostPower != (Quantity{c.host, c.source}) {
			t.Errorf("%s: host draws %v, want %g W %s", c.list, q.HostPower, c.host, c.source)
		}
		if q.HostMemory() != 1 || len(q.Memories) != 4 || len(q.Routes) != 3 {
			t.Errorf("%s: the memories are not those of the machine", c.list)
		}
		again, err := q.Select(c.list)
		if err != nil || again == nil || !alike(again, q) {
			t.Errorf("%s: selecting again gives %+v, %v; want %+v", c.list, again, err, q)
		}
	}
	if !alike(p, selectable(t)) {
		t.Error("the platform was changed")
	}
}

// With GPUs alone a unit of the host's processor stays: of the one at the host's memory.
func TestSelectKeepsTheHost(t *testing.T) {
	for host, want := range map[MemoryID]string{0: "cpu0", 1: "cpu1", 2: "cpu0"} {
		p := &Platform{Memories: []Memory{{Name: "ram0"}, {Name: "ram1"}, {Name: "hbm"}},
			Devices: []Device{{Name: "cpu0", Kind: "cpu", Count: 3}, {Name: "cpu1", Kind: "cpu", Count: 5, Memory: 1}, {Name: "gpu0", Kind: "cuda", Count: 1, Memory: 2}},
			Links:   []Link{{Name: "l", BandwidthBytesPerSec: 1}},
			Routes:  []Route{{From: 0, To: 1, Links: []LinkID{0}}, {From: 0, To: 2, Links: []LinkID{0}}}}
		p.Memories[host].Host = true
		must.Do(t, p.Complete())
		q := must.Get(p.Select("gpu0"))(t)
		if d := q.Devices[0]; len(q.Devices) != 2 || d.Name != want || d.Count != 1 || !d.PlacedOnly || q.HostMemory() != host {
			t.Errorf("with host memory %d: %+v, host memory %d; want one unit of %s", host, q.Devices, q.HostMemory(), want)
		}
	}
}

func TestSelectErrors(t *testing.T) {
	p := selectable(t)
	for list, want := range map[string]string{
		"gpu7":     `platform "node" has no device or kind "gpu7"; it has g0 (cuda), cpu (cpu, 5 units), g1 (cuda), e (emulated, 3 units)`,
		"":         `no device or kind ""`,
		"cpu,":     `no device or kind ""`,
		"cpu:6":    `"cpu:6": platform "node" has 5 of cpu; write cpu:1 to cpu:5`,
		"cpu:0":    "write cpu:1 to cpu:5",
		"cpu:x":    "write cpu:1 to cpu:5",
		"gpu:6":    "write gpu:1 to gpu:5",
		"cpu.1":    `no device or kind "cpu.1"`,
		"cpu,cpu":  `device "cpu" is selected twice`,
		"g0,cuda":  `device "g0" is selected twice`,
		"gpu,cuda": `device "g0" is selected twice`,
	} {
		if _, err := p.Select(list); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", list, err, want)
		}
	}
}

// Whatever is left out, the machine with n busy units draws what it drew with the
// same n busy and all others idle. Whole-device powers that would fall below what
// the units left out draw idle have no such power and are not drawn here.
func TestSelectKeepsThePower(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 3))
		p := randomPlatform(t, r)
		for i := range p.Devices {
			d := &p.Devices[i]
			least := float64(d.Count) * d.IdleWatts
			if d.Busy.WholeDevice {
				d.Busy.FirstWatts += least
				d.Busy.AllWatts += least
			}
			for j := range d.Clocks {
				c := &d.Clocks[j]
				if least := float64(d.Count) * c.Idle; c.Busy.WholeDevice {
					c.Busy.FirstWatts += least
					c.Busy.AllWatts += least
				}
			}
			if len(d.Clocks) > 0 {
				d.Clocks[0].Busy = d.Busy
			}
		}
		of := r.IntN(len(p.Devices))
		n := 1 + r.IntN(p.Devices[of].Count)
		q := must.Get(p.Select(fmt.Sprintf("%s:%d", p.Devices[of].Name, n)))(t)
		at, _ := q.DeviceByName(p.Devices[of].Name)
		for busy := range n + 1 {
			want, got := p.HostPower.Value, q.HostPower.Value
			for d := range p.Devices {
				if d == of {
					want += p.Devices[d].Watts(p.Devices[d].AtClock, busy)
				} else {
					want += p.Devices[d].Watts(p.Devices[d].AtClock, 0)
				}
			}
			for d := range q.Devices {
				if DeviceID(d) == at {
					got += q.Devices[d].Watts(q.Devices[d].AtClock, busy)
				} else {
					got += q.Devices[d].Watts(q.Devices[d].AtClock, 0)
				}
			}
			if math.Abs(got-want) > 1e-9*want {
				t.Errorf("seed %d: %d of %d units, %d busy: %g W, want %g", seed, n, p.Devices[of].Count, busy, got, want)
			}
		}
	}
}
