package energy

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/energy/meter"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
)

const seconds = time.Second

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

func mustParse(t testing.TB, src string) *platform.Platform {
	t.Helper()
	return must.Get(platform.Parse([]byte(src), "test.toml"))(t)
}

func mustBuild(t testing.TB, tasks ...dag.Task) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("energy")
	b.Buffer(dag.Buffer{Name: "moved", Shape: []int{1}, Type: dag.Float32})
	for _, task := range tasks {
		b.Task(task)
	}
	return must.Get(b.Build())(t)
}

const twoDevices = `
host_power = "35 W"
[[memory]]
name = "ram"
[[memory]]
name = "hbm"
[[device]]
name = "cpu"
kind = "cpu"
count = 2
memory = "ram"
power = { idle = "2 W", busy = "9 W", source = "datasheet" }
[[device]]
name = "gpu"
kind = "cuda"
memory = "hbm"
power = { idle = "20 W", busy = "250 W", source = "measured" }
[[link]]
name = "pcie"
bandwidth = "1 GB/s"
power = { idle = "1 W", busy = "3 W" }
[[route]]
from = "ram"
to = "hbm"
links = ["pcie"]
`

// handExample is a run of 10 s:
//
//	cpu.0  A (conv, forward) 0–4 s
//	pcie   A's result, for B, 4–5 s
//	gpu    B (dense, forward) 5–8 s
//	cpu.1  C (conv, update) 3–10 s
func handExample(t testing.TB) (*schedule.Schedule, *schedule.Problem) {
	g := mustBuild(t,
		dag.Task{Name: "A", Op: "conv", Labels: dag.Labels{Layer: "conv", Phase: "forward"}},
		dag.Task{Name: "B", Op: "dense", Labels: dag.Labels{Layer: "dense", Phase: "forward"}},
		dag.Task{Name: "C", Op: "sgd", Labels: dag.Labels{Layer: "conv", Phase: "update"}})
	s := &schedule.Schedule{
		Spans: []schedule.Span{
			{Task: 0, Worker: 0, Start: 0, End: 4 * seconds},
			{Task: 2, Worker: 1, Start: 3 * seconds, End: 10 * seconds},
			{Task: 1, Worker: 2, Start: 5 * seconds, End: 8 * seconds},
		},
		Transfers: []schedule.Transfer{{From: 0, To: 1, For: 1, Bytes: 1e9, Start: 4 * seconds, End: 5 * seconds}},
		Makespan:  10 * seconds,
	}
	return s, &schedule.Problem{Graph: g, Platform: mustParse(t, twoDevices), Steps: 1}
}

// The joules of handExample:
//
//	cpu.0  busy 4 s at 9 W = 36, idle 6 s at 2 W = 12
//	cpu.1  busy 7 s at 9 W = 63, idle 3 s at 2 W = 6
//	gpu    busy 3 s at 250 W = 750, idle 7 s at 20 W = 140
//	pcie   idle 10 s at 1 W = 10; 1e9 B in 1 s fill it, 2 W above that = 2
//	host   10 s at 35 W = 350
//
// idle 12+6+140+10 = 168, busy 36+63+750 = 849, transfer 2, host 350: 1369 J.
func TestHandExample(t *testing.T) {
	s, prob := handExample(t)
	s.Steps = 1
	r := must.Get(FromSchedule(s, prob))(t)
	want := &Report{
		Steps: 1, TotalJoules: 1369, Basis: Modelled, MakespanSeconds: 10, MeanWatts: 136.9,
		Causes: Causes{Idle: 168, Busy: 849, Transfer: 2, Host: 350},
		ByDevice: []Entry{
			{Name: "cpu", Joules: 117, IdleJoules: 18, BusyJoules: 99, Basis: Modelled},
			{Name: "gpu", Joules: 890, IdleJoules: 140, BusyJoules: 750, Basis: Modelled}},
		ByLink: []Entry{{Name: "pcie", Joules: 12, IdleJoules: 10, TransferJoules: 2, Basis: Modelled}},
		ByPhase: []Entry{
			{Name: "forward", Joules: 36 + 750 + 2, BusyJoules: 786, TransferJoules: 2, Basis: Modelled},
			{Name: "update", Joules: 63, BusyJoules: 63, Basis: Modelled}},
		ByLayer: []Entry{
			{Name: "conv", Joules: 99, BusyJoules: 99, Basis: Modelled},
			{Name: "dense", Joules: 752, BusyJoules: 750, TransferJoules: 2, Basis: Modelled}},
		Sources: []PowerSource{{Name: "host", Source: "guess"}, {Name: "cpu", Source: "datasheet"},
			{Name: "gpu", Source: "measured"}, {Name: "pcie", Source: "guess"}},
		Missing: []string{}, Readings: []meter.Reading{},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
}

// A run ends with its last task: of a transfer from 8 to 13 s in a run of 10 s, two
// seconds count. 1e9 B in 5 s are a fifth of the bandwidth, which draws a fifth of the 2 W
// between idle and busy: 0.8 J in 2 s. Of one that begins after the run nothing counts.
func TestTransferBeyondTheRun(t *testing.T) {
	s, prob := handExample(t)
	without := 1369.0 - 2 // of the transfer of one second in the example
	for _, c := range []struct {
		start, end time.Duration
		want       float64
	}{{8 * seconds, 13 * seconds, 0.8}, {9 * seconds, 10 * seconds, 2}, {10 * seconds, 11 * seconds, 0}, {12 * seconds, 13 * seconds, 0}} {
		s.Transfers[0].Start, s.Transfers[0].End = c.start, c.end
		r := must.Get(FromSchedule(s, prob))(t)
		if !near(r.TotalJoules, without+c.want) || !near(r.Causes.Transfer, c.want) {
			t.Errorf("from %v to %v: %g J, of which %g moving; want %g and %g", c.start, c.end, r.TotalJoules, r.Causes.Transfer, without+c.want, c.want)
		}
	}
}

// The same run in steps: 35 W of the host, 2 or 9 W for each core, 20 or 250 W of
// the GPU, 1 or 3 W of the link. 3·67 + 74 + 69 + 3·297 + 2·67 = 1369 J.
func TestPowerOfHandExample(t *testing.T) {
	s, prob := handExample(t)
	want := []PowerSample{
		{0, 35 + 9 + 2 + 20 + 1}, {3 * seconds, 35 + 9 + 9 + 20 + 1}, {4 * seconds, 35 + 2 + 9 + 20 + 3},
		{5 * seconds, 35 + 2 + 9 + 250 + 1}, {8 * seconds, 35 + 2 + 9 + 20 + 1}}
	if got := totalPower(s, prob); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	traces := must.Get(Traces(s, prob))(t)
	wantTraces := []PowerTrace{
		{"host", []PowerSample{{0, 35}}},
		{"cpu", []PowerSample{{0, 11}, {3 * seconds, 18}, {4 * seconds, 11}}},
		{"gpu", []PowerSample{{0, 20}, {5 * seconds, 250}, {8 * seconds, 20}}},
		{"pcie", []PowerSample{{0, 1}, {4 * seconds, 3}, {5 * seconds, 1}}},
	}
	if !reflect.DeepEqual(traces, wantTraces) {
		t.Errorf("got %v, want %v", traces, wantTraces)
	}
}

// With 21 J given for C's call of 7 s, its core draws 2 W + 3 W instead of 9 W: 35 J
// instead of 63, and 28 J less in all.
func TestCallJoules(t *testing.T) {
	s, prob := handExample(t)
	cpuOnly := func(joules float64) []schedule.Cost {
		return []schedule.Cost{{Duration: 7 * seconds, Joules: joules, Source: schedule.FromMeasured}, {Duration: 3 * seconds}}
	}
	prob.Costs = &schedule.Costs{Class: []int32{0, 0, 1}, ByClass: [][]schedule.Cost{cpuOnly(0), cpuOnly(21)}}
	r := must.Get(FromSchedule(s, prob))(t)
	if !near(r.TotalJoules, 1341) || !near(r.ByPhase[1].Joules, 35) || !near(r.ByDevice[0].Joules, 89) || !near(r.Causes.Idle, 168) {
		t.Errorf("got %+v", r)
	}
	if got := r.Sources[len(r.Sources)-1]; got != (PowerSource{Name: "cpu", Calls: true, Source: "measured"}) {
		t.Errorf("the source of the call's joules is %+v", got)
	}
	s.Spans[1].End = s.Spans[1].Start
	if _, err := FromSchedule(s, prob); err == nil || !strings.Contains(err.Error(), `task "C" takes 21 J in no time`) {
		t.Errorf("joules without a duration: %v", err)
	}
}

// SimGrid's s4u-energy-exec (its numbers are from SimGrid's documentation): three
// hosts of four cores, powers idle : just above idle : all busy of 100 : 93.33 :
// 200 W at 100 Mflop/s per core, 93 : 90 : 170 W at 50, 90 : 90 : 150 W at 20. (The
// 93.33 stands for 280/3, which makes one busy core draw the 120 W of the example.)
// Its power is linear in busy cores between the last two, so that one busy core
// draws low + (all − low)/4, which is what our form takes:
//
//	280/3 + (200 − 280/3)/4 = 120;  90 + 80/4 = 110;  90 + 60/4 = 105
//
// "off" is a host switched off, 10 W. A schedule has one clock per device, so the run
// is cut where a setting changes.
const simgrid = `
[[memory]]
name = "ram"
[[device]]
name = "host1"
kind = "emulated"
count = 4
memory = "ram"
speed = { float64 = "100 MF/s" }
power = { idle = "25 W", busy = ["120 W", "200 W"] }
clock_name = "p0"
[[device.clock]]
name = "p1"
scale = 0.5
power = { idle = "23.25 W", busy = ["110 W", "170 W"] }
[[device.clock]]
name = "p2"
scale = 0.2
power = { idle = "22.5 W", busy = ["105 W", "150 W"] }
[[device]]
name = "host2"
kind = "emulated"
count = 4
memory = "ram"
power = { idle = "25 W", busy = ["120 W", "200 W"] }
[[device.clock]]
name = "off"
scale = 1e-9
power = { idle = "2.5 W", busy = "2.5 W" }
[[device]]
name = "host3"
kind = "emulated"
count = 4
memory = "ram"
power = { idle = "25 W", busy = ["120 W", "200 W"] }
`

func TestSimGridHostEnergy(t *testing.T) {
	base := mustParse(t, simgrid)
	g := mustBuild(t, dag.Task{Name: "exec", Op: "exec", Type: dag.Float64, Flops: 1e8})
	joules := make([]float64, 3)
	// piece runs 1e8 flop on host 1 after a pause, if at all, and adds up.
	piece := func(host1, host2 string, pause time.Duration, exec bool, after time.Duration) {
		t.Helper()
		p := must.Get(base.WithClock("host1", host1))(t)
		p = must.Get(p.WithClock("host2", host2))(t)
		s := &schedule.Schedule{Makespan: pause + after}
		if exec {
			e, ok := p.Estimate(platform.Query{Op: "exec", Type: "float64", Flops: 1e8})
			if !ok {
				t.Fatal("no speed")
			}
			s.Spans = []schedule.Span{{Start: pause, End: pause + e.Duration}}
			s.Makespan += e.Duration
		}
		r := must.Get(FromSchedule(s, &schedule.Problem{Graph: g, Platform: p}))(t)
		for d := range joules {
			joules[d] += r.ByDevice[d].Joules
		}
	}
	want := func(when string, host1 float64) {
		t.Helper()
		if !near(joules[0], host1) {
			t.Errorf("host 1 after %s: %.6f J, want %g", when, joules[0], host1)
		}
	}
	piece("p0", "nominal", 10*seconds, false, 0)
	want("sleeping 10 s", 1000)
	piece("p0", "nominal", 0, true, 0) // 1e8/100e6 = 1 s
	want("computing at clock 0", 1120)
	piece("p2", "nominal", 0, true, 0) // 1e8/20e6 = 5 s
	want("computing at clock 2", 1645)
	piece("p2", "nominal", 4*seconds, false, 0)
	want("sleeping 4 s", 2005)
	piece("p2", "off", 10*seconds, false, 0)
	want("sleeping 10 s more", 2905)
	if !near(joules[1], 2100) || !near(joules[2], 3000) || !near(joules[0]+joules[1]+joules[2], 8005) {
		t.Errorf("hosts take %v J, want 2905, 2100, 3000, together 8005", joules)
	}
}

// A power that nobody gave is no power of zero.
func TestMissingPowersAreUnavailable(t *testing.T) {
	s, prob := handExample(t)
	src := strings.Replace(twoDevices, `power = { idle = "20 W", busy = "250 W", source = "measured" }`, "", 1)
	src = strings.Replace(src, `host_power = "35 W"`, "", 1)
	prob.Platform = mustParse(t, src)
	r := must.Get(FromSchedule(s, prob))(t)
	if r.Basis != Unavailable || !reflect.DeepEqual(r.Missing, []string{"host", "gpu"}) {
		t.Errorf("the total is %s, missing %v", r.Basis, r.Missing)
	}
	bases := []Basis{r.ByDevice[0].Basis, r.ByDevice[1].Basis, r.ByPhase[0].Basis, r.ByPhase[1].Basis, r.ByLayer[0].Basis, r.ByLayer[1].Basis}
	if want := []Basis{Modelled, Unavailable, Unavailable, Modelled, Modelled, Unavailable}; !reflect.DeepEqual(bases, want) {
		t.Errorf("cpu, gpu, forward, update, conv, dense: %v, want %v", bases, want)
	}
}

func TestReportJSON(t *testing.T) {
	s, prob := handExample(t)
	r := must.Get(FromSchedule(s, prob))(t)
	text := must.Get(json.Marshal(r))(t)
	var back Report
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(&back, r) {
		t.Errorf("read back: %+v, %v", back, err)
	}
	must.Contain(t, string(text), `"total_joules":1369`, `"basis":"modelled"`, `"by_device":[{"name":"cpu"`, `"transfer_joules":2`, `"missing":[]`)
}

func TestSchedulesThatDoNotFit(t *testing.T) {
	for name, change := range map[string]func(s *schedule.Schedule, p *schedule.Problem){
		"worker":        func(s *schedule.Schedule, p *schedule.Problem) { s.Spans[0].Worker = 3 },
		"negative":      func(s *schedule.Schedule, p *schedule.Problem) { s.Spans[0].Worker = -1 },
		"task":          func(s *schedule.Schedule, p *schedule.Problem) { s.Spans[0].Task = 3 },
		"late":          func(s *schedule.Schedule, p *schedule.Problem) { s.Spans[0].End = 11 * seconds },
		"backwards":     func(s *schedule.Schedule, p *schedule.Problem) { s.Spans[0].End = -1 },
		"memory":        func(s *schedule.Schedule, p *schedule.Problem) { s.Transfers[0].To = 2 },
		"transfer back": func(s *schedule.Schedule, p *schedule.Problem) { s.Transfers[0].End = 3 * seconds },
		"transfer for":  func(s *schedule.Schedule, p *schedule.Problem) { s.Transfers[0].For = -1 },
		"no route": func(s *schedule.Schedule, p *schedule.Problem) {
			p.Platform.Routes, p.Platform.Devices[1].Unreachable = nil, true
			if err := p.Platform.Complete(); err != nil {
				panic(err)
			}
		},
	} {
		s, prob := handExample(t)
		change(s, prob)
		if r, err := FromSchedule(s, prob); err == nil {
			t.Errorf("%s: accepted, %g J", name, r.TotalJoules)
		}
		if got := totalPower(s, prob); got != nil {
			t.Errorf("%s: power %v", name, got)
		}
	}
}

func TestEmptySchedule(t *testing.T) {
	_, prob := handExample(t)
	r, err := FromSchedule(&schedule.Schedule{}, prob)
	if err != nil || r.TotalJoules != 0 || r.MeanWatts != 0 {
		t.Errorf("%+v, %v; want 0 J in no time", r, err)
	}
	if got := totalPower(&schedule.Schedule{}, prob); len(got) != 0 {
		t.Errorf("power in no time: %v", got)
	}
}

// TestGrounds names every source once, and what lacks watts where it counts.
func TestGrounds(t *testing.T) {
	for _, c := range []struct {
		r    Report
		want string
	}{
		{Report{Basis: Modelled, Sources: []PowerSource{{Name: "host", Source: "guess"}, {Name: "cpu", Source: "guess"}}}, "modelled, watts guessed"},
		{Report{Basis: Modelled, Sources: []PowerSource{{Name: "host", Source: "guess"}, {Name: "cpu", Source: "datasheet"}, {Name: "cpu", Calls: true, Source: "measured"}}},
			"modelled, watts guessed and from data sheets and measured"},
		{Report{Basis: Modelled, Missing: []string{"host", "pcie"}, Sources: []PowerSource{{Name: "cpu", Source: "measured"}}}, "modelled, watts measured, without the host"},
		{Report{Basis: Unavailable, Missing: []string{"cpu"}}, "joules unavailable: no watts for cpu"},
	} {
		if got := c.r.Grounds(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// The example's cores draw 117 J in 10 s and its GPU 890 J. Over 20 s that is 234 J where RAPL
// counted 200, 17 % more, and over 5 s 445 J where the GPU's meter counted 500, 11 % less. What no
// device is, or is not to be compared, or counted nothing, is only noted.
func TestAddReadings(t *testing.T) {
	s, prob := handExample(t)
	r := must.Get(FromSchedule(s, prob))(t)
	readings := []meter.Reading{
		{Of: ProcessorsMeter, Meter: "RAPL", Joules: 200, Seconds: 20}, {Of: "gpu", Meter: "NVML", Joules: 500, Seconds: 5},
		{Of: "fan", Meter: "NVML", Joules: 1, Seconds: 1}, {Of: "gpu", Meter: "NVML", Seconds: 1}}
	r.AddReadings(prob.Platform, readings, []string{ProcessorsMeter, "gpu", "fan"})
	if !reflect.DeepEqual(r.Readings, readings) || r.TotalJoules != 1369 || len(r.Metered) != 2 {
		t.Fatalf("%+v", r)
	}
	for i, want := range []MeterError{{ProcessorsMeter, "RAPL", 20, 200, 234, 17}, {"gpu", "NVML", 5, 500, 445, -11}} {
		got := r.Metered[i]
		if !near(got.ModelJoules, want.ModelJoules) || !near(got.ErrorPercent, want.ErrorPercent) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if got.ModelJoules, got.ErrorPercent = want.ModelJoules, want.ErrorPercent; got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	r.Metered = nil
	if r.AddReadings(prob.Platform, readings, []string{"gpu"}); len(r.Metered) != 1 || r.Metered[0].Of != "gpu" {
		t.Errorf("only the GPU is to be compared: %+v", r.Metered)
	}
}
