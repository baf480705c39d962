package codec_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/codec"
	"dahl/schedule/place"
)

// costsOf are the costs of a graph whose tasks need no kernel.
func costsOf(t testing.TB, g *dag.Graph, p *platform.Platform) *schedule.Costs {
	t.Helper()
	return must.Get(schedule.Price(&dag.Program{Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t).Costs(0)
}

// pairGraph is two tasks, b after a.
func pairGraph(t testing.TB) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("pair")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{4}, Type: dag.Float32})
	b.Task(dag.Task{Name: "a", Accesses: []dag.Access{{Region: dag.Region{Buffer: x}, Mode: dag.Write}}, Costs: []dag.Cost{{Key: "cpu", Ns: 5}}})
	b.Task(dag.Task{Name: "b", Accesses: []dag.Access{{Region: dag.Region{Buffer: x}, Mode: dag.Read}}, Costs: []dag.Cost{{Key: "cpu", Ns: 7}}})
	return must.Get(b.Build())(t)
}

func pairPlan(t testing.TB, g *dag.Graph) *schedule.Plan {
	t.Helper()
	return &schedule.Plan{Policy: "by hand", GraphHash: g.Hash(), Order: [][]dag.TaskID{{1}, {0}},
		Written: place.Written{
			Transfers: []place.EngineTransfers{{Engine: "any", Transfers: []place.PlannedTransfer{{Name: "copy", Buffer: "x", Boxes: []string{"0:4"}, From: "ram", To: "far",
				For: "b", NextStep: true, Reason: place.ReasonPrefetch, Bytes: 16}}}},
			Enter:  []place.PlannedTransfer{{Buffer: "x", Boxes: []string{"0:2"}, From: "ram", To: "far", For: "b", Reason: place.ReasonEnter, Bytes: 8}},
			Leave:  []place.PlannedTransfer{{Buffer: "x", Boxes: []string{"2:4"}, From: "far", To: "ram", Reason: place.ReasonLeave, Bytes: 8}},
			Places: []place.PlannedPlace{{Memory: "ram", Buffer: "x", Arena: "step", Offset: 64}}, Arenas: []place.PlannedArena{{Memory: "ram", Arena: "step", Bytes: 128}},
			Spill: &place.SpillPlan{Memories: []place.SpillLimit{{Memory: "far", Bytes: 64}}, Order: []string{"a", "copy", "b"}, Returning: []string{"x@far"}}, PartBytes: 4096},
		Variants: schedule.Variants{"cpu": {schedule.CallName(&g.Tasks[0]): "fast"}},
		Lowering: &dag.Lowering{Default: dag.LayerLowering{Forward: dag.Cut{Samples: 3}}}}
}

func TestPlanRoundTrip(t *testing.T) {
	g, p := pairGraph(t), testmachine.Node(t, testmachine.CPU(2))
	plan := pairPlan(t, g)
	var file bytes.Buffer
	must.Do(t, codec.WritePlan(&file, plan, g, p))
	got := must.Get(codec.ReadPlan(bytes.NewReader(file.Bytes()), "plan.json", g, p))(t)
	if !reflect.DeepEqual(got, plan) {
		t.Errorf("read %+v, wrote %+v\n%s", got, plan, file.String())
	}
}

// TestPlanByHand is the least that a person has to write.
func TestPlanByHand(t *testing.T) {
	g, p := pairGraph(t), testmachine.Node(t, testmachine.CPU(2))
	plan := must.Get(codec.ReadPlan(strings.NewReader(`{"format": "dahl-plan 1", "devices": {"cpu.1": ["a", "b"]}}`), "plan.json", g, p))(t)
	if want := [][]dag.TaskID{nil, {0, 1}}; !reflect.DeepEqual(plan.Order, want) {
		t.Errorf("order %v, want %v", plan.Order, want)
	}
}

func pairSchedule(g *dag.Graph) *schedule.Schedule {
	return &schedule.Schedule{World: schedule.Measured, GraphHash: g.Hash(), Policy: "eager", Steps: 1, Makespan: 13, FirstStep: 13,
		Spans:     []schedule.Span{{Task: 0, Worker: 0, Start: 1, End: 6}, {Task: 1, Worker: 1, Ready: -1, Start: 6, End: 13}},
		Memory:    []schedule.Occupancy{{}, {At: 1, Bytes: 16}, {At: 13}},
		PeakBytes: []int64{16}}
}

func TestScheduleRoundTrip(t *testing.T) {
	g, p := pairGraph(t), testmachine.Node(t, testmachine.CPU(2))
	p.Memories = append(p.Memories, platform.Memory{Name: "far", BandwidthBytesPerSec: 1})
	s := pairSchedule(g)
	s.PeakBytes = []int64{16, 3}
	s.Transfers = []schedule.Transfer{{Buffer: 0, Atoms: []int32{0}, Bytes: 16, From: 0, To: 1, For: 1, Reason: place.ReasonPrefetch, Start: 2, End: 4}}
	s.Evictions = []schedule.Eviction{{Buffer: 0, Atoms: []int32{0}, Bytes: 16, Memory: 1, At: 5}}
	var file bytes.Buffer
	must.Do(t, codec.WriteSchedule(&file, s, g, p))
	got := must.Get(codec.ReadSchedule(bytes.NewReader(file.Bytes()), "schedule.json", g, p))(t)
	if !reflect.DeepEqual(got, s) {
		t.Errorf("read %+v, wrote %+v\n%s", got, s, file.String())
	}
}

// TestBadFiles: each mistake gives one line that names the file and what is wrong.
func TestBadFiles(t *testing.T) {
	g, p := pairGraph(t), testmachine.Node(t, testmachine.CPU(2))
	for text, want := range map[string]string{
		`{"format": "dahl-plan 2"}`:                                              `format "dahl-plan 2"`,
		`{"format": "dahl-plan 1", "devices": {"gpu": []}}`:                      `no worker "gpu"`,
		`{"format": "dahl-plan 1", "devices": {"cpu.0": ["z"]}}`:                 `no task "z"`,
		`{"format": "dahl-plan 1", "devices": {"cpu.0": ["a"], "cpu.0": ["b"]}}`: "listed twice",
		`{"format": "dahl-plan 1", "devices": ["a"]}`:                            "object of lists",
		`{"format": "dahl-plan 1", "graph": "00"}`:                               "another graph",
		`{"format": "dahl-plan 1", "order": {}}`:                                 "order",
		"{\n\"format\": \"dahl-plan 1\",\n\"policy\": 3}":                        "file:3",
		`{"format": "dahl-plan 1"`:                                               "ends early",
		`{"format": "dahl-plan 1"} {}`:                                           "more after the end",
	} {
		_, err := codec.ReadPlan(strings.NewReader(text), "file", g, p)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", text, err, want)
		}
	}
	head := `{"format": "dahl-schedule 1", "world": "measured", "steps": 1, `
	for text, want := range map[string]string{
		`{"format": "dahl-plan 1"}`:                                                                     `write "dahl-schedule 1"`,
		`{"format": "dahl-schedule 1", "world": "x"}`:                                                   `world "x"`,
		`{"format": "dahl-schedule 1", "world": "measured"}`:                                            "0 steps",
		head + `"spans": [{"task": "a", "worker": "cpu.0", "step": 1}]}`:                                "step 1 of 1",
		head + `"spans": [{"task": "a", "worker": "cpu.0", "start_ns": 9}]}`:                            "from 9 to 0",
		head + `"spans": [{"task": "a", "worker": "cpu.0", "start_ns": 1e30}]}`:                         "file:1",
		head + `"peak_bytes": [{"memory": "hbm"}]}`:                                                     `no memory "hbm"`,
		head + `"transfers": [{"buffer": "x", "from": "ram", "to": "ram", "for": "a", "pieces": [1]}]}`: "1 pieces",
		head + `"evictions": [{"buffer": "x", "memory": "ram", "pieces": [1]}]}`:                        "1 pieces",
		head + `"evictions": [{"buffer": "x", "memory": "hbm"}]}`:                                       `no memory "hbm"`,
		head + `"evictions": [{"buffer": "x", "memory": "ram", "at_ns": -1}]}`:                          "at -1 ns",
	} {
		_, err := codec.ReadSchedule(strings.NewReader(text), "file", g, p)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", text, err, want)
		}
	}
}

// TestPlanRefused: plans that name existing tasks and workers and still cannot run.
func TestPlanRefused(t *testing.T) {
	g, pl := pairGraph(t), testmachine.Node(t, testmachine.CPU(2))
	costs := costsOf(t, g, pl)
	p := &schedule.Problem{Graph: g, Platform: pl, Costs: costs, Steps: 1}
	for want, order := range map[string][][]dag.TaskID{
		"twice":       {{0, 1}, {1}},
		"leaves out":  {{0}},
		"contradicts": {{1, 0}},
		"3 workers":   {{0}, {1}, {}},
	} {
		if err := (&schedule.Plan{Order: order}).Check(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one with %q", order, err, want)
		}
	}
}

func FuzzReadPlan(f *testing.F) {
	g, p := pairGraph(f), testmachine.Node(f, testmachine.CPU(2))
	var file bytes.Buffer
	must.Do(f, codec.WritePlan(&file, pairPlan(f, g), g, p))
	f.Add(file.Bytes())
	f.Add([]byte(`{"format": "dahl-plan 1", "devices": {"cpu.1": ["a", "b"]}}`))
	f.Add([]byte(`{"format": "dahl-plan 1", "devices": {"cpu.1": ["a", "a"]}, "layout": {"buffers": [{"offset": -1}]}}`))
	costs := costsOf(f, g, p)
	f.Fuzz(func(t *testing.T, data []byte) {
		plan, err := codec.ReadPlan(bytes.NewReader(data), "plan", g, p)
		if err != nil {
			oneLine(t, err)
			return
		}
		if err := plan.Check(&schedule.Problem{Graph: g, Platform: p, Costs: costs, Steps: 2}); err != nil {
			oneLine(t, err)
		}
		var again bytes.Buffer
		must.Do(t, codec.WritePlan(&again, plan, g, p))
		if _, err := codec.ReadPlan(&again, "plan", g, p); err != nil {
			t.Fatalf("what was read and written is refused: %v", err)
		}
	})
}

func FuzzReadSchedule(f *testing.F) {
	g, p := pairGraph(f), testmachine.Node(f, testmachine.CPU(2))
	var file bytes.Buffer
	must.Do(f, codec.WriteSchedule(&file, pairSchedule(g), g, p))
	f.Add(file.Bytes())
	f.Add([]byte(`{"format": "dahl-schedule 1", "world": "measured", "steps": 9223372036854775807}`))
	costs := costsOf(f, g, p)
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := codec.ReadSchedule(bytes.NewReader(data), "schedule", g, p)
		if err != nil {
			oneLine(t, err)
			return
		}
		if err := audit.Check(s, &schedule.Problem{Graph: g, Platform: p, Costs: costs, Steps: 1}); err != nil {
			oneLine(t, err)
		}
	})
}

func oneLine(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("an error of several lines: %q", err)
	}
}
