package platform

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/must"
)

// clocked is a processor of four cores that do 10 operations per ns and share a memory of 40 bytes
// per ns, at half and at twice its speed too.
func clocked(t *testing.T, at string, models ...Model) *Platform {
	t.Helper()
	p := &Platform{Name: "clocked", Memories: []Memory{{Name: "ram", BandwidthBytesPerSec: 40e9}}, Models: models,
		Devices: []Device{{Name: "cpu", Kind: "cpu", Count: 4, FlopsPerSec: map[string]float64{"float32": 10e9}, IdleWatts: 2, Busy: BusyPower{UnitWatts: 9}, PowerSource: Guess,
			Clocks: []Clock{{Name: "base", Scale: 1, Idle: 2, Busy: BusyPower{UnitWatts: 9}}, {Name: "slow", Scale: 0.5, Idle: 1, Busy: BusyPower{UnitWatts: 3}, FrequencyHz: 1.2e9},
				{Name: "fast", Scale: 2, Idle: 3, Busy: BusyPower{UnitWatts: 20}}}}}}
	must.Do(t, p.Complete())
	return must.Get(p.WithClock("cpu", at))(t)
}

// A model without a clock is of the first one. At another its compute part is divided by the
// scale: of 400 ns with as much arithmetic as traffic, half of it.
func TestModelsAtOtherClocks(t *testing.T) {
	for _, c := range []struct {
		words            string
		active           int
		flops            float64
		bytes            int64
		compute          float64
		base, slow, fast time.Duration
	}{
		{"no work known: all is compute", 4, 0, 0, 0, 400, 800, 200},
		{"operations alone", 4, 1000, 0, 0, 400, 800, 200},
		{"bytes alone", 4, 0, 1000, 0, 400, 400, 400},
		{"1000/10 ns of operations, 1000/(40/4) ns of bytes", 4, 1000, 1000, 0, 400, 600, 300},
		{"alone, a core has all of the bandwidth: 100 and 4000/40 ns", 1, 1000, 4000, 0, 400, 600, 300},
		{"100 and 3000/(40/4) ns: a quarter is compute", 4, 1000, 3000, 0, 400, 500, 350},
		{"a part that the model states counts, whatever its work", 4, 1000, 1000, 0.75, 400, 700, 250},
	} {
		m := model("go", "cpu", "a", c.active, 400)
		m.Flops, m.MovedBytes, m.Compute, m.Joules = c.flops, c.bytes, c.compute, 7
		for clock, want := range map[string]time.Duration{"base": c.base, "slow": c.slow, "fast": c.fast} {
			e, ok := clocked(t, clock, m).Estimate(Query{Op: "dense", Type: "float32", Shape: "a"})
			if !ok || e.Duration != want || e.Source != "measured" {
				t.Errorf("%s, %s: %+v, want %v", c.words, clock, e, want)
			}
			if joules := e.Joules; (joules == 7) != (clock == "base") || clock != "base" && joules != 0 {
				t.Errorf("%s, %s: %g J; those of the first clock hold at it alone", c.words, clock, joules)
			}
		}
	}
}

// The slow clock has a time of its own for shape a with one core busy, and none for b: a is
// 450 there, though the first clock has models nearer to four busy cores, and b is twice its 100.
// The choice of a variant is that of the first clock, go, though at the slow one ref is measured
// to be faster: results do not depend on the clock. Timing by the host, 40 of the 100 ns of b,
// takes as long at any clock: 40 + 2·60.
func TestModelsOfTheClockComeFirst(t *testing.T) {
	at := func(clock string, m Model) Model {
		m.Clock = clock
		return m
	}
	p := clocked(t, "slow", model("go", "cpu", "a", 4, 200), at("slow", model("go", "cpu", "a", 1, 450)), at("base", model("go", "cpu", "b", 4, 100)),
		model("ref", "cpu", "a", 4, 300), at("slow", model("ref", "cpu", "a", 4, 250)), at("fast", model("go", "cpu", "b", 4, 1)))
	for _, c := range []struct {
		shape, variant string
		timing, want   time.Duration
	}{{"a", "", 0, 450}, {"a", "ref", 0, 250}, {"b", "", 0, 200}, {"b", "", 40, 160}} {
		p.Devices[0].Timing = c.timing
		e, ok := p.Estimate(Query{Op: "dense", Variant: c.variant, Type: "float32", Shape: c.shape})
		if !ok || e.Duration != c.want || c.variant == "" && e.Variant != "go" {
			t.Errorf("%s of %q: %+v, want %v", c.shape, c.variant, e, c.want)
		}
	}
}

// All times of a call are stretched alike, so that its distribution about the mean stays. A fit
// goes through stretched times: 1000 + 3·flops becomes twice that.
func TestAllTimesFollowTheClock(t *testing.T) {
	m := model("go", "cpu", "a", 4, 100)
	m.WarmNs, m.FarNs = 80, 160
	inSteps := model("go", "cpu", "b", 4, 100)
	inSteps.StepNs, inSteps.FirstNs = 120, 200
	inSteps.StepDistribution = NewDistribution([]time.Duration{60, 180})
	alone := model("go", "cpu", "a", 1, 50)
	p := clocked(t, "slow", m, inSteps, alone)
	e, _ := p.Estimate(Query{Op: "dense", Type: "float32", Shape: "a"})
	if want := (CacheTimes{160, 200, 320}); e.Duration != 200 || e.Busy != want || e.Alone != (CacheTimes{100, 100, 100}) {
		t.Errorf("by itself: %+v", e)
	}
	e, _ = p.Estimate(Query{Op: "dense", Type: "float32", Shape: "b"})
	if e.Duration != 240 || e.First != 400 || e.Spread[0] != 0.5 || e.Spread[DistributionParts-1] != 1.5 {
		t.Errorf("in steps: %+v", e)
	}
	var shapes []Model
	for i, work := range []float64{10, 20, 40} {
		m := model("go", "cpu", string(rune('a'+i)), 4, 1000+3*work)
		m.Flops = work
		shapes = append(shapes, m)
	}
	e, ok := clocked(t, "slow", shapes...).Estimate(Query{Op: "dense", Type: "float32", Shape: "z", Flops: 100})
	if !ok || e.Source != "fit" || e.Duration < 2600 || e.Duration > 2601 {
		t.Errorf("fit: %+v, want 2600 ns", e)
	}
}

// The choice survives the file, and one that is not there is refused with those that are.
func TestClockInForceInFiles(t *testing.T) {
	for _, clock := range []string{"base", "slow", "fast"} {
		p := clocked(t, clock)
		var b strings.Builder
		must.Do(t, p.WriteTOML(&b))
		again := must.Get(Parse([]byte(b.String()), clock))(t)
		if again.Devices[0].ClockInForce() != p.Devices[0].ClockInForce() || again.Hash() != p.Hash() || strings.Contains(b.String(), clockInForceKey) != (clock != "base") {
			t.Errorf("%s comes back as %+v from\n%s", clock, again.Devices[0], b.String())
		}
		if back, err := again.WithClock("cpu", "base"); err != nil || back.Hash() != clocked(t, "base").Hash() || again.Hash() != p.Hash() {
			t.Errorf("%s and back to base: another platform (%v)", clock, err)
		}
	}
	p := clocked(t, "base")
	for _, c := range [][3]string{{"gpu", "slow", `no device "gpu"; it has cpu (cpu, 4 units)`}, {"cpu", "warp", `no clock "warp"; it has base, slow, fast`}} {
		if _, err := p.WithClock(c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s=%s: error %v, want one with %q", c[0], c[1], err, c[2])
		}
	}
}

// Three of four idle cores at the slow clock, 1 W each, become the host's.
func TestSelectAtAClock(t *testing.T) {
	p := must.Get(clocked(t, "slow").Select("cpu:1"))(t)
	if p.HostPower.Value != 3 || p.Devices[0].Watts(p.Devices[0].AtClock, 0) != 1 || p.Devices[0].Watts(p.Devices[0].AtClock, 1) != 3 {
		t.Errorf("host %g W, one core idle %g W and busy %g W; want 3, 1 and 3", p.HostPower.Value, p.Devices[0].Watts(p.Devices[0].AtClock, 0), p.Devices[0].Watts(p.Devices[0].AtClock, 1))
	}
}

// A frequency of the device's own setting names that setting, with further ones and without.
func TestFrequencies(t *testing.T) {
	const device = "[[memory]]\nname = \"ram\"\n[[device]]\nname = \"cpu\"\nkind = \"cpu\"\nmemory = \"ram\"\n"
	for _, c := range []struct {
		keys string
		want []Clock
	}{
		{"clock_frequency = \"2.4 GHz\"\n", []Clock{{Name: "nominal", Scale: 1, FrequencyHz: 2.4e9}}},
		{"clock_name = \"base\"\nclock_frequency = \"2.4 GHz\"\n[[device.clock]]\nname = \"slow\"\nscale = 0.5\nfrequency = \"1200 MHz\"\n",
			[]Clock{{Name: "base", Scale: 1, FrequencyHz: 2.4e9}, {Name: "slow", Scale: 0.5, FrequencyHz: 1.2e9}}},
		{"clock_name = \"base\"\n", nil},
	} {
		p, err := Parse([]byte(device+c.keys), "c.toml")
		if err != nil || !slices.Equal(p.Devices[0].Clocks, c.want) {
			t.Errorf("%s: %+v, want %+v (%v)", c.keys, p.Devices[0].Clocks, c.want, err)
			continue
		}
		var b strings.Builder
		again, err := p, p.WriteTOML(&b)
		if err == nil {
			again, err = Parse([]byte(b.String()), "c.toml")
		}
		if err != nil || again.Hash() != p.Hash() || !slices.Equal(again.Devices[0].Clocks, c.want) {
			t.Errorf("%s comes back as %+v (%v)", c.keys, again.Devices[0].Clocks, err)
		}
	}
}
