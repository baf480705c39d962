package platform

import (
	"strings"
	"testing"
	"time"

	"dahl/must"
)

// TestDistribution: of 1 … 32 ns each sixteenth is two neighbours, (1+2)/2 = 1.5,
// in whole nanoseconds 2, then 3.5 → 4 and so on to 31.5 → 32. The mean of the
// entries 2, 4, …, 32 is 17.
func TestDistribution(t *testing.T) {
	var times []time.Duration
	for i := range 32 {
		times = append(times, time.Duration(i+1))
	}
	d := NewDistribution(times)
	for i, v := range d {
		if v != float64(2*i+2) {
			t.Errorf("entry %d is %g, want %d", i, v, 2*i+2)
		}
	}
	if d.Mean() != 17 || !d.Known() || !d.valid() {
		t.Errorf("mean %g, want 17", d.Mean())
	}
	r := d.relative()
	if r[0] != 2.0/17 || r[15] != 32.0/17 {
		t.Errorf("relative to the mean: %v", r)
	}
	back, ok := parseDistribution(d.format())
	if !ok || back != d || d.format()[:6] != "2 4 6 " {
		t.Errorf("%q reads back as %v", d.format(), back)
	}
}

// TestDistributionOfFew: three times fill sixteen entries with their neighbours:
// entry i takes the time i·3/16, that is 0 for i ≤ 5, 1 for 6 … 10, 2 from 11 on.
func TestDistributionOfFew(t *testing.T) {
	d := NewDistribution([]time.Duration{5, 7, 11})
	for i, v := range d {
		want := 5.0
		if i >= 6 {
			want = 7
		}
		if i >= 11 {
			want = 11
		}
		if v != want {
			t.Errorf("entry %d is %g, want %g", i, v, want)
		}
	}
	if d := NewDistribution(nil); d.Known() || !d.valid() || (&Distribution{}).relative() != d {
		t.Errorf("of nothing: %v", d)
	}
}

func TestDistributionRefused(t *testing.T) {
	for _, text := range []string{"1 2 3 ns", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 x ns", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 parsec"} {
		if d, ok := parseDistribution(text); ok {
			t.Errorf("%q read as %v", text, d)
		}
	}
	if d := (Distribution{2, 1}); d.valid() {
		t.Error("descending times are valid")
	}
	if d := (Distribution{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}); d.valid() {
		t.Error("a time of zero is valid")
	}
}

// TestParseMeasured reads what calibrate adds to a device and a model, and says what
// is wrong with what cannot be.
func TestParseMeasured(t *testing.T) {
	const src = `[[memory]]
name = "ram"
[[device]]
name = "cpu"
kind = "cpu"
memory = "ram"
handoff = "200 ns"
wake = { after = "50 us", cost = "9 us" }
run_spread = 0.01
first_use = { context = "3 ms", kernels = "5 us", memory = "7 GB/s" }
[[model]]
op = "relu"
type = "float32"
device = "cpu"
shape = "7"
median = "3 us"
warm = "2 us"
far = "5 us"
distribution = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 us"
unsteady = true
in_step = "4 us"
first_step = "9 us"
in_step_distribution = "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 2 ms"
`
	p := must.Get(Parse([]byte(src), "n.toml"))(t)
	d, m := p.Devices[0], p.Models[0]
	if d.FirstUse != (FirstUse{3_000_000, 5000, 7e9}) || d.Handoff != 200 || d.WakeAfter != 50_000 || d.Wake != 9000 || d.RunSpread != 0.01 {
		t.Errorf("device %+v", d)
	}
	if m.WarmNs != 2000 || m.FarNs != 5000 || m.Distribution[15] != 16_000 || !m.Unsteady || m.StepNs != 4000 || m.FirstNs != 9000 || m.StepDistribution[15] != 2e6 {
		t.Errorf("model %+v", m)
	}
	for _, c := range []struct{ from, to, want string }{
		{"16 us", "us", `n.toml:19: model 1: distribution`},
		{"15 16 us", "16 15 us", `n.toml:19: model of "relu": distribution: want positive times`},
		{`, cost = "9 us"`, "", `n.toml:8: device "cpu": wake: cost is missing`},
		{`cost = "9 us"`, `cost = "0 us"`, `n.toml:8: device "cpu": wake: a cost and the time`},
		{"handoff =", "handoff_to_cpu =", `n.toml:7: device "cpu": handoff_to_cpu = "200ns": units of a processor`},
		{"handoff =", "timing =", `n.toml:7: device "cpu": timing = "200ns": on a processor`},
		{"7 GB/s", "0 GB/s", `n.toml:10: device "cpu": first_use: memory`},
		{"run_spread = 0.01", "run_spread = -1", `n.toml:9: device "cpu": run_spread = -1`},
	} {
		_, err := Parse([]byte(strings.Replace(src, c.from, c.to, 1)), "n.toml")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s…", c.to, err, c.want)
		}
	}
}
