package plots

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/plots/paper"
	"dahl/schedule"
)

// statedRun is a step on two cores that share a clock, a GPU that sleeps and a link that does.
//
//	cpu.0  load 0-12, the clock changes 12-14, post at the slow one 30-48, back 48-50, gather 50-56
//	cpu.1  mean at the slow one 14-30
//	gpu    falls into light sleep 3-4, into deep sleep 10-12, wakes 17-20; conv 20-35; falls 35-37
//	pcie   asleep 5-12, wakes 12-13, moves x 13-17
func statedRun(t testing.TB) *Run {
	p := twoDevices()
	p.CapWatts = 170
	cpu, gpu, link := &p.Devices[0], &p.Devices[1], &p.Links[0]
	cpu.Clocks = []platform.Clock{{Name: "base", Scale: 1, Idle: 2, Busy: cpu.Busy}, {Name: "slow", Scale: 0.5, Idle: 1, Busy: platform.BusyPower{UnitWatts: 4}}}
	cpu.Switch = platform.Transition{Takes: 2 * ms, Joules: 0.01}
	gpu.CapWatts = 130
	gpu.Sleeps = []platform.SleepState{{Name: "light", Watts: 12, After: 3 * ms, Enter: platform.Transition{Takes: ms}},
		{Name: "deep", Watts: 3, After: 10 * ms, Enter: platform.Transition{Takes: 2 * ms, Joules: 0.06}, Leave: platform.Transition{Takes: 3 * ms, Joules: 0.12}}}
	link.Sleeps = []platform.SleepState{{Name: "l1", After: 5 * ms, Leave: platform.Transition{Takes: ms}}}
	cpu.PowerSource, gpu.PowerSource, link.PowerSource = platform.Guess, platform.Guess, platform.Guess
	must.Do(t, p.Complete())
	b := dag.NewBuilder("stated")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{1000}, Type: dag.Float32, Role: dag.Activation})
	for _, name := range []string{"load", "mean", "conv", "post", "gather"} {
		task := dag.Task{Name: name, Op: name}
		switch name {
		case "load":
			task.Accesses = []dag.Access{{Region: dag.Region{Buffer: x}, Mode: dag.Write}}
		case "conv":
			task.Accesses = []dag.Access{{Region: dag.Region{Buffer: x}, Mode: dag.Read}}
		default:
			task.After = []dag.TaskID{map[string]dag.TaskID{"mean": 0, "post": 1, "gather": 3}[name]}
		}
		b.Task(task)
	}
	g := must.Get(b.Build())(t)
	first, _ := g.StorageAtoms(x)
	change := func(kind schedule.ChangeKind, d platform.DeviceID, l platform.LinkID, to int32, start, end time.Duration) schedule.Change {
		return schedule.Change{Kind: kind, Device: d, Unit: -1, Link: l, To: to, Start: start * ms, End: end * ms}
	}
	s := &schedule.Schedule{World: schedule.Simulated, Policy: "replay", Steps: 1, Makespan: 56 * ms, Spans: []schedule.Span{
		{Task: 0, Worker: 0, Start: 0, End: 12 * ms}, {Task: 1, Worker: 1, Start: 14 * ms, End: 30 * ms}, {Task: 2, Worker: 2, Start: 20 * ms, End: 35 * ms},
		{Task: 3, Worker: 0, Start: 30 * ms, End: 48 * ms}, {Task: 4, Worker: 0, Start: 50 * ms, End: 56 * ms}},
		Transfers: []schedule.Transfer{{Buffer: x, Atoms: []int32{int32(first)}, Bytes: 4000, From: 0, To: 1, For: 2, Start: 13 * ms, End: 17 * ms}},
		Changes: []schedule.Change{change(schedule.FallAsleep, 1, -1, 0, 3, 4), change(schedule.FallAsleep, -1, 0, 0, 5, 5), change(schedule.FallAsleep, 1, -1, 1, 10, 12),
			change(schedule.SwitchClock, 0, -1, 1, 12, 14), change(schedule.WakeUp, -1, 0, 0, 12, 13), change(schedule.WakeUp, 1, -1, 1, 17, 20),
			change(schedule.FallAsleep, 1, -1, 1, 35, 37), change(schedule.SwitchClock, 0, -1, 0, 48, 50)}}
	prob := &schedule.Problem{Graph: g, Platform: p, Steps: 1, States: schedule.States{Clocks: []platform.ClockID{platform.InForce, 1, platform.InForce, 1, platform.InForce}}}
	return &Run{Problem: prob, Schedule: s, Power: modelledPower(t, prob, s), Grounds: "modelled, watts guessed"}
}

const ms = time.Millisecond

// These pictures were looked at when they were committed.
func TestGoldenPicturesOfStates(t *testing.T) {
	for _, f := range Figures()[:2] {
		wantGolden(t, f.Name+"-states", drawn(t, f, "png", Input{Run: statedRun(t)}))
	}
}

// The GPU draws at most 126 W with what else there is: a cap of 251 W is drawn, one of 253 is named.
func TestFarCapsAreNamed(t *testing.T) {
	r := statedRun(t)
	s := newStack(r.Power, r.Schedule.Makespan, maxStairs)
	for watts, name := range map[float64]string{251: "of all 251 W", 253: "of all 253 W (above the picture)"} {
		r.Problem.Platform.CapWatts = watts
		if c := s.caps(r.Problem.Platform)[0]; c.Name != name || (c.watts == nil) != (watts > 252) {
			t.Errorf("%+v, want %s", c, name)
		}
	}
}

// Each row is covered from 0 to 56 ms once, that of the link by what is told of it above.
func TestStatesInCharts(t *testing.T) {
	r := statedRun(t)
	colours := newColouring(r)
	ch := newChart(r, colours)
	kinds := map[int]string{}
	for i, name := range colours.names {
		kinds[i] = name
	}
	for i, name := range idleNames {
		kinds[colours.idle(0)+i] = "for " + name
	}
	for i := range states {
		kinds[colours.state(stateKind(i))] = states[i].name
	}
	want := map[string]string{
		"cpu.0": "load 0-12 changes its clock 12-14 for a predecessor 14-30 post 30-48 changes its clock 48-50 gather 50-56",
		"cpu.1": "for a predecessor 0-12 changes its clock 12-14 mean 14-30 for nothing: no work left 30-48 changes its clock 48-50 for nothing: no work left 50-56",
		"gpu":   "for a predecessor 0-3 falls asleep 3-4 asleep 4-10 falls asleep 10-12 asleep 12-17 wakes up 17-20 conv 20-35 falls asleep 35-37 asleep 37-56",
		"pcie":  "asleep 5-12 wakes up 12-13",
	}
	for _, row := range ch.rows {
		var got []string
		for _, p := range row.lanes[0] {
			got = append(got, fmt.Sprintf("%s %d-%d", kinds[p.category], p.from/ms, p.to/ms))
		}
		if text := strings.Join(got, " "); want[row.label] != "" && text != want[row.label] {
			t.Errorf("%s: %s\nwant %s", row.label, text, want[row.label])
		}
	}
	if marks := ch.rows[0].clocks; len(marks) != 1 || len(marks[0]) != 1 || marks[0][0].from != 30*ms || ch.rows[2].clocks != nil {
		t.Errorf("marks of clocks on cpu.0 %v and on the GPU %v, want one from 30 ms on, and none", marks, ch.rows[2].clocks)
	}
	if path := ch.rows[1].path; len(path) != 2 || path[0].from != 12*ms || path[0].to != 14*ms {
		t.Errorf("the critical path on cpu.1 is %v, want the change of the clock and mean", path)
	}
}

// In both traces the GPU and the link are in the states told above, from when to when, tasks have
// their clocks, and the clock of the cores is half from 14 to 50 ms.
func TestStatesInTraces(t *testing.T) {
	r := statedRun(t)
	want := "falls asleep: light 3-4, asleep: light 4-10, falls asleep: deep 10-12, asleep: deep 12-17, wakes up: deep 17-20, falls asleep: deep 35-37, asleep: deep 37-56, asleep: l1 5-12, wakes up: l1 12-13"
	var got, clocks []string
	slower := map[string]any{}
	for _, e := range readChrome(t, r).TraceEvents {
		switch {
		case e.Cat == "state" && !strings.HasPrefix(e.Name, "changes"):
			got = append(got, fmt.Sprintf("%s %g-%g", e.Name, e.Ts/1000, (e.Ts+e.Dur)/1000))
		case e.Name == "clock cpu":
			clocks = append(clocks, fmt.Sprint(e.Ts/1000, e.Args["scale"]))
		case e.Ph == "X" && e.Args["clock"] != nil:
			slower[e.Name] = e.Args["clock"]
		}
	}
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("Chrome: %s\nwant %s", text, want)
	}
	if !slices.Equal(clocks, []string{"0 1", "14 0.5", "50 1"}) || fmt.Sprint(slower) != "map[gather:base load:base mean:slow post:slow]" {
		t.Errorf("Chrome: clocks %v, of tasks %v", clocks, slower)
	}
	var out bytes.Buffer
	must.Do(t, Paje(&out, r))
	names := map[string]string{}
	var gpu, link, scales []string
	for _, l := range readPaje(t, out.String()) {
		f := l.fields
		text := fmt.Sprint(strings.TrimRight(strings.TrimRight(f["Time"], "0"), "."), " ", cmp.Or(names[f["Value"]], f["Value"]))
		switch {
		case f["Alias"] != "":
			names[f["Alias"]] = f["Name"]
		case l.event == "PajeSetState" && names[f["Container"]] == "gpu":
			gpu = append(gpu, text)
		case l.event == "PajeSetState" && names[f["Container"]] == "pcie":
			link = append(link, text)
		case l.event == "PajeSetVariable" && names[f["Container"]] == "cpu" && f["Type"] == "VC":
			scales = append(scales, text)
		}
	}
	for _, c := range [][2]string{
		{strings.Join(gpu, ", "), "0 idle: dependence, 0.003 falls asleep, 0.004 asleep, 0.01 falls asleep, 0.012 asleep, 0.017 wakes up, 0.02 conv, 0.035 falls asleep, 0.037 asleep"},
		{strings.Join(link, ", "), "0 awake, 0.005 asleep, 0.012 awake, 0.012 wakes up, 0.013 awake"},
		{strings.Join(scales, ", "), "0 1, 0.014 0.5, 0.05 1"},
	} {
		if c[0] != c[1] {
			t.Errorf("Paje: %s\nwant %s", c[0], c[1])
		}
	}
}

// Ten thousand tasks, every second at another clock and all with changes between them, make no
// larger file than others, in rows that are drawn column by column.
func TestSVGOfManyChangesIsSmall(t *testing.T) {
	r := largeRun(t, 10000, 8, 1, 1)
	d := &r.Problem.Platform.Devices[0]
	d.UnitClocks, d.Clocks = true, []platform.Clock{{Name: "base", Scale: 1}, {Name: "slow", Scale: 0.5}}
	r.Problem.Clocks = make([]platform.ClockID, len(r.Problem.Graph.Tasks))
	before := make([]time.Duration, d.Count)
	for i := range r.Schedule.Spans {
		span := &r.Schedule.Spans[i]
		clock := int32(i % 2)
		r.Problem.Clocks[span.Task] = platform.ClockID(clock)
		if until := span.Start; until > before[span.Worker] {
			r.Schedule.Changes = append(r.Schedule.Changes, schedule.Change{Device: 0, Unit: int32(span.Worker), Link: -1, To: clock, Start: before[span.Worker], End: until})
		}
		before[span.Worker] = span.End
	}
	svg := drawn(t, Figures()[0], "svg", Input{Run: r})
	if len(r.Schedule.Changes) < 1000 || len(svg) >= 2e6 || !bytes.Contains(svg, []byte(">changes its clock<")) {
		t.Errorf("%d bytes with %d changes, want less than 2 MB with at least 1000", len(svg), len(r.Schedule.Changes))
	}
}

// A change of what the platform does not have ends in an error.
func TestChangesMustFitThePlatform(t *testing.T) {
	for _, c := range []schedule.Change{
		{Device: 2, Unit: -1, Link: -1}, {Device: 0, Unit: 2, Link: -1}, {Device: 0, Unit: -1, Link: -1, To: 2}, {Device: 1, Unit: -1, Link: -1},
		{Kind: schedule.FallAsleep, Device: 0, Unit: -1, Link: -1}, {Kind: schedule.WakeUp, Device: -1, Unit: -1, Link: 1},
		{Kind: schedule.SwitchClock, Device: -1, Unit: -1, Link: 0}, {Device: 0, Unit: -1, Link: -1, Start: 2, End: 1},
	} {
		r := statedRun(t)
		r.Schedule.Changes = append(r.Schedule.Changes, c)
		if err := Gantt(new(bytes.Buffer), paper.Page{Format: "svg"}, r); err == nil || !strings.Contains(err.Error(), "change 8 ") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
