package energy

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
)

// randomRun is a run of some nanoseconds in which anything may overlap: several
// calls on one unit (streams), transfers on one link, calls with joules of their own.
func randomRun(t *testing.T, r *rand.Rand) (*schedule.Schedule, *schedule.Problem) {
	p := &platform.Platform{
		HostPower: platform.Quantity{Value: r.Float64() * 50, Source: platform.Guess},
		Memories:  []platform.Memory{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Devices: []platform.Device{
			{Name: "whole", Kind: "cpu", Count: 3, IdleWatts: 5 * r.Float64(), PowerSource: platform.Guess,
				Busy: platform.BusyPower{FirstWatts: 20 * r.Float64(), AllWatts: 60 * r.Float64(), WholeDevice: true}},
			{Name: "units", Kind: "cpu", Count: 2, Memory: 1, IdleWatts: 5 * r.Float64(), PowerSource: platform.Guess,
				Busy: platform.BusyPower{UnitWatts: 30 * r.Float64()}},
			{Name: "gpu", Kind: "cuda", Count: 1, Memory: 2, Streams: 3, IdleWatts: 20, PowerSource: platform.Guess,
				Busy: platform.BusyPower{UnitWatts: 100}},
		},
		Links: []platform.Link{
			{Name: "x", BandwidthBytesPerSec: 3e9, Latency: time.Duration(r.IntN(7)), IdleWatts: r.Float64(), BusyWatts: 3, PowerSource: platform.Guess},
			{Name: "y", BandwidthBytesPerSec: 5e9, Latency: time.Duration(r.IntN(3)), IdleWatts: r.Float64(), BusyWatts: 5, PowerSource: platform.Guess},
		},
		Routes: []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0}}, {From: 1, To: 2, Links: []platform.LinkID{0, 1}}},
	}
	units := &p.Devices[1]
	units.Clocks = []platform.Clock{{Name: "own", Scale: 1, Idle: units.IdleWatts, Busy: units.Busy},
		{Name: "slow", Scale: 0.5, Idle: 3 * r.Float64(), Busy: platform.BusyPower{UnitWatts: 15 * r.Float64()}}}
	units.AtClock, units.UnitClocks = platform.ClockID(r.IntN(2)), r.IntN(2) == 0
	units.Switch = platform.Transition{Takes: 3, Joules: 1e-8 * r.Float64()}
	rest := []platform.SleepState{{Name: "light", Watts: r.Float64(), Enter: platform.Transition{Takes: 2, Joules: 1e-8 * r.Float64()}},
		{Name: "deep", Watts: r.Float64(), Enter: platform.Transition{Takes: 5}, Leave: platform.Transition{Takes: 7, Joules: 1e-7 * r.Float64()}}}
	p.Devices[0].Sleeps, units.Sleeps, p.Links[1].Sleeps = rest, rest, rest
	p.Devices[2].MayBeOff, p.Devices[2].OffWatts = true, 3*r.Float64()
	for l := range p.Links {
		p.Links[l].Sharing = platform.Sharing(r.IntN(3))
	}
	must.Do(t, p.Complete())
	const end = 60
	times := func() (a, b time.Duration) {
		a, b = time.Duration(r.IntN(end)), time.Duration(r.IntN(end))
		return min(a, b), max(a, b) + 1
	}
	var tasks []dag.Task
	s := &schedule.Schedule{Makespan: end}
	costs := &schedule.Costs{}
	for i := range 1 + r.IntN(12) {
		tasks = append(tasks, dag.Task{Name: fmt.Sprint(i), Op: "o", Labels: dag.Labels{Layer: fmt.Sprint(r.IntN(3)), Phase: fmt.Sprint(r.IntN(2))}})
		a, b := times()
		s.Spans = append(s.Spans, schedule.Span{Task: dag.TaskID(i), Worker: platform.WorkerID(r.IntN(6)), Start: a, End: b})
		costs.Class = append(costs.Class, int32(i))
		joules := 1e-7 * r.Float64() * float64(r.IntN(2))
		costs.ByClass = append(costs.ByClass, []schedule.Cost{{Joules: joules}, {Joules: joules}, {Joules: joules}})
	}
	for range r.IntN(5) {
		a, b := times()
		ends := r.Perm(3)
		s.Transfers = append(s.Transfers, schedule.Transfer{From: platform.MemoryID(ends[0]), To: platform.MemoryID(ends[1]), Bytes: r.Int64N(200), Start: a, End: b})
	}
	randomChanges(r, s, p)
	return s, &schedule.Problem{Graph: mustBuild(t, tasks...), Platform: p, Costs: costs}
}

// randomChanges lets the clocks of a device change at any time, and lets what never works sleep.
func randomChanges(r *rand.Rand, s *schedule.Schedule, p *platform.Platform) {
	one := func(c schedule.Change, at time.Duration) time.Duration {
		c.Start, c.End = at, at+c.Transition(p).Takes
		s.Changes = append(s.Changes, c)
		return c.End
	}
	nap := func(c schedule.Change) {
		for at := time.Duration(r.IntN(20)); at < s.Makespan; at += time.Duration(r.IntN(20)) {
			c.To = 0
			for c.Kind = schedule.FallAsleep; c.To < 2 && r.IntN(3) > 0; c.To++ {
				at = one(c, at) + time.Duration(r.IntN(5))
			}
			if c.To--; c.To >= 0 {
				c.Kind = schedule.WakeUp
				at = one(c, at)
			}
		}
	}
	worked := map[platform.WorkerID]bool{}
	for i := range s.Spans {
		worked[s.Spans[i].Worker] = true
	}
	for w, of := range p.Workers {
		if d := &p.Devices[of.Device]; len(d.Sleeps) > 0 && !worked[platform.WorkerID(w)] {
			nap(schedule.Change{Device: of.Device, Unit: int32(of.Index), Link: -1})
		}
	}
	if len(s.Transfers) == 0 {
		nap(schedule.Change{Device: -1, Unit: -1, Link: 1})
	}
	for unit := range int32(2) {
		if !p.Devices[1].UnitClocks {
			unit = -1
		}
		to := int32(p.Devices[1].AtClock)
		for at := time.Duration(r.IntN(40)); at < s.Makespan; at += time.Duration(r.IntN(40)) {
			to = 1 - to
			at = one(schedule.Change{Kind: schedule.SwitchClock, Device: 1, Unit: unit, Link: -1, To: to}, at)
		}
		if unit < 0 {
			break
		}
	}
	slices.SortStableFunc(s.Changes, func(a, b schedule.Change) int { return cmp.Compare(a.Start, b.Start) })
}

// stateAt is the clock of a unit, its sleep state plus 1, and what its changes draw at a moment.
func stateAt(s *schedule.Schedule, p *platform.Platform, mine func(c *schedule.Change) bool, clock platform.ClockID, at time.Duration) (platform.ClockID, int32, float64) {
	sleep, changes := int32(0), 0.0
	for i := range s.Changes {
		c := &s.Changes[i]
		if !mine(c) || c.Start > at {
			continue
		}
		if at < c.End {
			changes += c.Transition(p).Joules / c.Transition(p).Takes.Seconds()
		}
		switch {
		case c.Kind == schedule.SwitchClock && c.End <= at:
			clock = platform.ClockID(c.To)
		case c.Kind == schedule.FallAsleep && c.End <= at:
			sleep = c.To + 1
		case c.Kind != schedule.SwitchClock:
			sleep = 0
		}
	}
	return clock, sleep, changes
}

// slowWatts is the power of the host, each device and each link at one nanosecond by the definition: it counts what runs.
func slowWatts(s *schedule.Schedule, prob *schedule.Problem, at time.Duration) []float64 {
	p := prob.Platform
	all := make([]float64, 1+len(p.Devices)+len(p.Links))
	all[0] = p.HostPower.Value
	modelled := map[platform.WorkerID]bool{}
	for _, v := range s.Spans {
		if v.Start > at || at >= v.End {
			continue
		}
		if cost, _ := prob.Costs.Of(v.Task, p.Workers[v.Worker].Device); cost.Joules > 0 {
			all[1+p.Workers[v.Worker].Device] += cost.Joules / (v.End - v.Start).Seconds()
		} else {
			modelled[v.Worker] = true
		}
	}
	busy := make([]int, len(p.Devices))
	used := make([]bool, len(p.Devices))
	for w := range modelled {
		busy[p.Workers[w].Device]++
	}
	for _, v := range s.Spans {
		used[p.Workers[v.Worker].Device] = true
	}
	for _, v := range s.Transfers {
		used[2] = used[2] || v.From == 2 || v.To == 2 // the GPU is alone at its memory
	}
	for w, of := range p.Workers {
		d, watts := &p.Devices[of.Device], &all[1+of.Device]
		if d.MayBeOff && !used[of.Device] {
			*watts += d.OffWatts
			continue
		}
		clock, sleep, changes := stateAt(s, p, func(c *schedule.Change) bool { return c.Covers(of.Device, of.Index) }, d.AtClock, at)
		if d.Count == 2 && !d.UnitClocks { // both have the one change of the device
			_, _, ofAll := stateAt(s, p, func(c *schedule.Change) bool { return c.Device == of.Device && c.Unit < 0 }, d.AtClock, at)
			changes -= ofAll / 2
		}
		setting, n := platform.Clock{Idle: d.IdleWatts, Busy: d.Busy}, busy[of.Device]
		if len(d.Clocks) > 0 {
			setting = d.Clocks[clock]
		}
		*watts += changes
		switch {
		case sleep > 0:
			*watts += d.Sleeps[sleep-1].Watts
			continue
		case !modelled[platform.WorkerID(w)]:
			*watts += setting.Idle
			continue
		}
		total := setting.Busy.UnitWatts*float64(n) + setting.Idle*float64(d.Count-n) // by the definition of busy
		if setting.Busy.WholeDevice {
			total = setting.Busy.FirstWatts + (setting.Busy.AllWatts-setting.Busy.FirstWatts)*float64(n-1)/float64(d.Count-1)
		}
		*watts += setting.Idle + (total-setting.Idle*float64(d.Count))/float64(n)
	}
	for l := range p.Links {
		link := &p.Links[l]
		capacity := link.BandwidthBytesPerSec
		if link.Sharing == platform.Duplex {
			capacity *= 2
		}
		rates := 0.0
		for _, v := range s.Transfers {
			first := v.Start
			links, _ := p.Route(v.From, v.To)
			for _, m := range links {
				first += p.Links[m].Latency
			}
			if first >= v.End {
				first = v.Start
			}
			for _, m := range links {
				if int(m) == l && first <= at && at < v.End {
					rates += float64(v.Bytes) / (v.End - first).Seconds()
				}
			}
		}
		idle := link.IdleWatts
		_, sleep, changes := stateAt(s, p, func(c *schedule.Change) bool { return c.Device < 0 && int(c.Link) == l }, 0, at)
		if sleep > 0 {
			idle = link.Sleeps[sleep-1].Watts
		}
		all[1+len(p.Devices)+l] = idle + changes + (link.BusyWatts-link.IdleWatts)*rates/capacity
	}
	return all
}

// Every way of adding up gives the same joules: nanosecond by nanosecond from the
// definition, the integral of totalPower, the causes, the consumers, and (for what runs
// and moves) phases and layers.
func TestJoulesAddUp(t *testing.T) {
	for seed := range uint64(300) {
		s, prob := randomRun(t, rand.New(rand.NewPCG(seed, 7)))
		r := must.Get(FromSchedule(s, prob))(t)
		if total := must.Get(Joules(s, prob))(t); total != r.TotalJoules {
			t.Errorf("seed %d: %g J, and %g in the report", seed, total, r.TotalJoules)
		}
		slow, byConsumer := 0.0, make([]float64, 1+len(r.ByDevice)+len(r.ByLink))
		for at := range s.Makespan {
			for i, watts := range slowWatts(s, prob, at) {
				byConsumer[i] += watts * 1e-9
				slow += watts * 1e-9
			}
		}
		for i, e := range slices.Concat(r.ByDevice, r.ByLink) {
			if a, b := e.Joules*1e6, byConsumer[1+i]*1e6; !near(a, b) {
				t.Errorf("seed %d: %s: %g uJ, and %g by the definition", seed, e.Name, a, b)
			}
			if parts := e.IdleJoules + e.BusyJoules + e.TransferJoules + e.SleepJoules + e.SwitchingJoules; !near(e.Joules*1e6, parts*1e6) {
				t.Errorf("seed %d: %s: %g J, its parts %g", seed, e.Name, e.Joules, parts)
			}
		}
		samples := totalPower(s, prob)
		integral := 0.0
		for i, p := range samples {
			until := s.Makespan
			if i+1 < len(samples) {
				until = samples[i+1].At
			}
			if until <= p.At {
				t.Fatalf("seed %d: sample %d does not advance", seed, i)
			}
			integral += p.Watts * (until - p.At).Seconds()
		}
		sum := func(lists ...[]Entry) (all float64) {
			for _, list := range lists {
				for _, e := range list {
					all += e.Joules
				}
			}
			return all
		}
		running := r.Causes.Busy + r.Causes.Transfer
		for what, pair := range map[string][2]float64{
			"total and definition": {r.TotalJoules, slow},
			"total and power":      {r.TotalJoules, integral},
			"total and consumers":  {r.TotalJoules, sum(r.ByDevice, r.ByLink) + r.Causes.Host},
			"phases and causes":    {sum(r.ByPhase), running},
			"layers and causes":    {sum(r.ByLayer), running},
		} {
			if a, b := pair[0]*1e6, pair[1]*1e6; !near(a, b) { // microjoules: the runs are short
				t.Errorf("seed %d: %s: %g and %g uJ", seed, what, a, b)
			}
		}
	}
}

// totalPower is the power of the whole platform over the run, in steps. Its integral
// is Report.TotalJoules. It is empty where FromSchedule fails.
func totalPower(s *schedule.Schedule, prob *schedule.Problem) []PowerSample {
	traces, err := Traces(s, prob)
	if err != nil {
		return nil
	}
	type change struct {
		PowerSample
		trace int
	}
	var changes []change
	for i, t := range traces {
		for _, sample := range t.Samples {
			changes = append(changes, change{sample, i})
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.trace, b.trace))
	})
	total := PowerTrace{}
	now := make([]float64, len(traces))
	for i, c := range changes {
		now[c.trace] = c.Watts
		if i+1 < len(changes) && changes[i+1].At == c.At {
			continue
		}
		sum := 0.0 // anew, so that no rounding is carried along the run
		for _, w := range now {
			sum += w
		}
		total.add(c.At, sum)
	}
	return total.Samples
}
