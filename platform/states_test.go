package platform

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"dahl/must"
)

const statesText = `name = "node"
power_cap = "400 W"
[[memory]]
name = "ram"
[[device]]
name = "cpu"
kind = "cpu"
count = 4
memory = "ram"
power = { idle = "2 W", busy = "9 W", off = "0 W" }
clock_domain = "unit"
clock_switch = { time = "50 us", joules = "1 mJ" }
power_cap = "30 W"
[[device.clock]]
name = "slow"
scale = 0.5
power = { idle = "1 W", busy = "3 W" }
[[device.sleep]]
name = "light"
power = "0.5 W"
after = "1 ms"
enter = { time = "2 us" }
leave = { time = "3 us", joules = "6 uJ" }
[[device.sleep]]
name = "deep"
power = "0 W"
[[link]]
name = "bus"
bandwidth = "1 GB/s"
power = { idle = "1 W", busy = "3 W" }
[[link.sleep]]
name = "l1"
power = "0.1 W"
after = "10 us"
leave = { time = "4 us" }
`

func TestStatesAreReadAndWritten(t *testing.T) {
	p := must.Get(Parse([]byte(statesText), "n.toml"))(t)
	d := &p.Devices[0]
	if p.CapWatts != 400 || d.CapWatts != 30 || !d.UnitClocks || d.Switch != (Transition{50 * time.Microsecond, 0.001}) || !d.MayBeOff || d.OffWatts != 0 {
		t.Errorf("got %+v", p)
	}
	want := []SleepState{{"light", 0.5, time.Millisecond, Transition{Takes: 2000}, Transition{3000, 6e-6}}, {Name: "deep"}}
	if !reflect.DeepEqual(d.Sleeps, want) {
		t.Errorf("sleep states %+v", d.Sleeps)
	}
	if want := []SleepState{{"l1", 0.1, 10000, Transition{}, Transition{Takes: 4000}}}; !reflect.DeepEqual(p.Links[0].Sleeps, want) {
		t.Errorf("sleep states of the link %+v", p.Links[0].Sleeps)
	}
	again := must.Get(Parse([]byte(p.encode()), "again.toml"))(t)
	if !alike(p, again) {
		t.Errorf("written and read again:\n%s", p.encode())
	}
}

func TestBadStates(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`clock_domain = "unit"`, `clock_domain = "core"`, `n.toml:11: device "cpu": clock_domain = "core": write "device" (all units change together) or "unit"`},
		{"leave = { time = \"3 us\", joules = \"6 uJ\" }", "leave = { joules = \"6 uJ\" }", `n.toml:23: device "cpu": sleep state "light": leave: 6e-06 J in no time; give it a time`},
		{`name = "deep"`, `name = "light"`, `n.toml:25: device "cpu": sleep state "light": give each state a name of its own, of letters and digits`},
		{`power = "0 W"`, "power = \"0 W\"\nafter = \"1 ms\"", `n.toml:27: device "cpu": sleep state "deep": after = "1ms": list the states from light to deep, each entered after a longer time than the one before`},
		{`power = { idle = "1 W", busy = "3 W" }` + "\n[[link", "[[link", `n.toml:32: link "bus": sleep state "l1": it has a power, and nothing else here does; add power = { … } to what sleeps`},
		{"[[device.clock]]\nname = \"slow\"\nscale = 0.5\npower = { idle = \"1 W\", busy = \"3 W\" }", "", `n.toml:12: device "cpu": clock_switch and clock_domain need further clocks; add [[device.clock]]`},
	} {
		src := strings.Replace(statesText, c.old, c.new, 1)
		if src == statesText {
			t.Fatalf("%q is not in the file", c.old)
		}
		if _, err := Parse([]byte(src), "n.toml"); err == nil || err.Error() != c.want {
			t.Errorf("%q:\ngot  %v\nwant %s", c.new, err, c.want)
		}
	}
}

// What is left out of a run may be off or asleep: its watts, not those of idling, are the host's, and it
// is named.
func TestOffWhereLeftOut(t *testing.T) {
	text := strings.ReplaceAll(statesText, `"2 W", busy = "9 W", off = "0 W"`, `"2 W", busy = "9 W"`)
	text = strings.Replace(text, "[[link]]", `[[device]]
name = "gpu0"
kind = "cuda"
memory = "ram"
power = { idle = "40 W", busy = "300 W", off = "3 W" }
[[link]]`, 1)
	p := must.Get(Parse([]byte(text), "n.toml"))(t)
	q := must.Get(p.Select("cpu:1"))(t)
	// Three cores asleep at 0.5 W, which is light, since deep is never entered by itself, and the GPU at
	// 3 W; of the cores' cap of 30 W the three take 1.5 W.
	if q.HostPower.Value != 4.5 || !reflect.DeepEqual(q.LeftOff, []string{"gpu0"}) || !reflect.DeepEqual(q.LeftAsleep, []string{"cpu"}) || q.Devices[0].CapWatts != 28.5 {
		t.Errorf("host %v W, off %v, asleep %v, cap %v W", q.HostPower.Value, q.LeftOff, q.LeftAsleep, q.Devices[0].CapWatts)
	}
	again, err := Parse([]byte(q.encode()), "again.toml")
	if err != nil || !reflect.DeepEqual(again.LeftOff, q.LeftOff) || !reflect.DeepEqual(again.LeftAsleep, q.LeftAsleep) {
		t.Errorf("read again: off %v, %v", again, err)
	}
	// Two more units left out leave one of four with the watts of three sleepers, once named.
	two, err := p.Select("cpu:2,gpu0")
	if err == nil {
		two, err = two.Select("cpu:1,gpu0")
	}
	if err != nil || two.HostPower.Value != 1.5 || !reflect.DeepEqual(two.LeftAsleep, []string{"cpu"}) {
		t.Errorf("in two turns: host %v, asleep %v, %v; want 1.5 W of cpu", two.HostPower, two.LeftAsleep, err)
	}
	// Without a state that it comes to by itself a core idles: 2 W each.
	idles, err := Parse([]byte(strings.Replace(text, "after = \"1 ms\"\n", "", 1)), "n.toml")
	if err == nil {
		idles, err = idles.Select("cpu:1,gpu0")
	}
	if err != nil || idles.HostPower.Value != 6 || idles.LeftAsleep != nil {
		t.Errorf("with no after: host %v, asleep %v, %v; want 6 W", idles.HostPower, idles.LeftAsleep, err)
	}
}

// Units at different clocks: with n busy each adds what it would add if all were at its clock, so
// that at one clock the sum is the device's curve. Count 4, idle 2 W; busy 20 W for one to 44 W
// for four, so 28 W for two: (28 − 8)/2 = 10 W above idle each.
func TestPowersOfUnitsAddUp(t *testing.T) {
	d := Device{Count: 4, IdleWatts: 2, Busy: BusyPower{FirstWatts: 20, AllWatts: 44, WholeDevice: true}}
	d.Clocks = []Clock{{Name: "base", Scale: 1, Idle: 2, Busy: d.Busy}, {Name: "slow", Scale: 0.5, Idle: 1, Busy: BusyPower{UnitWatts: 3}}}
	for n, want := range []float64{0, 12, 10, (36.0 - 8) / 3, 9} {
		if got := d.WattsAboveIdle(0, n); got != want {
			t.Errorf("%d busy: %v W above idle each, want %v", n, got, want)
		}
		if got := d.WattsAboveIdle(1, n); n > 0 && got != 2 {
			t.Errorf("%d busy at the slow clock: %v W above idle each, want 3 - 1", n, got)
		}
	}
}
