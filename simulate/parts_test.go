package simulate

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/codec"
	"dahl/schedule/place"
)

// byWayOfRAM is a plan by which the first gpu writes x of 16 MB in no time, and the second reads
// it. They reach each other only through ram, over links of 1 GB/s and some latency. atoms is
// how many equal parts of x a task of the first gpu reads besides.
func byWayOfRAM(t *testing.T, latency time.Duration, shape []int, atoms int) (*schedule.Problem, *schedule.Plan) {
	t.Helper()
	pl := twoGPUs(t)
	pl.Links[0].Latency = latency
	must.Do(t, pl.Complete())
	b := dag.NewBuilder("staged")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: shape, Type: dag.Uint8})
	ns := func(device string) []dag.Cost { return []dag.Cost{{Key: device, Ns: 0}} }
	b.Task(dag.Task{Name: "a", Costs: ns("g1"), Accesses: []dag.Access{whole(x, dag.Write)}})
	looks := dag.Task{Name: "looks", Costs: ns("g1")}
	for k := range atoms {
		rows := shape[0] / atoms
		looks.Accesses = append(looks.Accesses, dag.Access{Region: dag.Region{Buffer: x, Box: append(dag.Box{{Lo: k * rows, Hi: (k + 1) * rows}}, dag.Whole(shape)[1:]...)}})
	}
	b.Task(looks)
	b.Task(dag.Task{Name: "b", Costs: ns("g2"), Accesses: []dag.Access{whole(x, dag.Read)}})
	g := must.Get(b.Build())(t)
	return problem(t, g, pl, 1), &schedule.Plan{Order: [][]dag.TaskID{nil, {0, 1}, {2}}}
}

// TestStagedInParts: 16 MB over two hops of 1 GB/s take 2·16 ms whole and 16 (n + 1)/n ms in n parts, and so
// many latencies as there are copies one after the other: 2, or n + 1. A part has 9 latencies' bytes: at
// 444,444 ns 3,999,996 bytes and so four parts, at 1 ms 9 MB, of which 16 have no two. At 10 ns there
// would be more than 16; of four rows there are four, and of three three.
func TestStagedInParts(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		latency   time.Duration
		shape     []int
		atoms     int
		transfers int
		makespan  time.Duration
	}{
		{10, []int{16e6}, 1, 32, 17*ms + 17*10},
		{444_444, []int{16e6}, 1, 8, 20*ms + 5*444_444},
		{444_444, []int{16e6}, 4, 8, 20*ms + 5*444_444}, // along its atoms
		{1e6, []int{16e6}, 1, 2, 32*ms + 2e6},
		{10, []int{4, 4e6}, 1, 8, 20*ms + 5*10},
		{10, []int{1, 3, 16e6 / 4}, 1, 6, 16*ms + 4*10}, // 12 MB: 3 + 1 copies of 4 ms
	} {
		p, plan := byWayOfRAM(t, c.latency, c.shape, c.atoms)
		s := must.Get(run(p, how{plan: plan}))(t)
		if err := audit.Check(s, p); err != nil {
			t.Error(err)
		}
		mustFollow(t, p, plan, mustDecide(t, p, plan).Placed, s)
		if s.Makespan != c.makespan || len(s.Transfers) != c.transfers {
			t.Errorf("latency %v, shape %d, %d atoms: %d transfers in %v, want %d in %v", c.latency, c.shape, c.atoms, len(s.Transfers), s.Makespan, c.transfers, c.makespan)
		}
		var file bytes.Buffer
		must.Do(t, codec.WriteSchedule(&file, s, p.Graph, p.Platform))
		if again, err := codec.ReadSchedule(&file, "schedule.json", p.Graph, p.Platform); err != nil || audit.Check(again, p) != nil {
			t.Errorf("read again: %v, %v", err, audit.Check(again, p))
		}
	}
}

// TestPlanWithoutParts: a plan that lists copies and knows of no parts, as plans were written
// before there were any, is kept to: 2·16 ms and two latencies.
func TestPlanWithoutParts(t *testing.T) {
	p, plan := byWayOfRAM(t, 10, []int{16e6}, 1)
	box := []string{"0:16000000"}
	plan.Transfers = []place.EngineTransfers{
		{Engine: "g1.mem out 0", Transfers: []place.PlannedTransfer{{Name: "copy x from g1.mem to ram after a for b", Buffer: "x", Boxes: box, From: "g1.mem", To: "ram", For: "b", Reason: place.ReasonPrefetch, Bytes: 16e6}}},
		{Engine: "g2.mem in 0", Transfers: []place.PlannedTransfer{{Name: "copy x from ram to g2.mem after a for b", Buffer: "x", Boxes: box, From: "ram", To: "g2.mem", For: "b", Reason: place.ReasonPrefetch, Bytes: 16e6}}},
	}
	s, err := run(p, how{plan: plan})
	if want := 32*time.Millisecond + 2*10; err != nil || s.Makespan != want {
		t.Errorf("%v, %v, want %v", s.Makespan, err, want)
	}
	plan.PartBytes = 4e6
	if _, err := run(p, how{plan: plan}); err == nil || !strings.Contains(err.Error(), "does not need") {
		t.Errorf("%v, want a refusal of whole copies beside a size of parts", err)
	}
}

// TestCheckRefusesParts breaks a sound schedule of four parts, of which each is brought to ram
// while the one before goes on: transfers 0, 1, 3 and 5 are to ram, 2, 4, 6 and 7 from there.
func TestCheckRefusesParts(t *testing.T) {
	for want, spoil := range map[string]func(s *schedule.Schedule){
		"a second time":   func(s *schedule.Schedule) { s.Transfers[1].Share.Part = 0 },
		"where it is not": func(s *schedule.Schedule) { s.Transfers[4].Share.Part = 3 },
		"of share 4 of 4": func(s *schedule.Schedule) { s.Transfers[0].Share.Part = 4 },
		"others of 4": func(s *schedule.Schedule) {
			last := &s.Transfers[7]
			last.Share, last.Bytes, last.Start = place.Share{Part: 1, Of: 2}, 8e6, last.Start-4e6
		},
		"its pieces have":         func(s *schedule.Schedule) { s.Transfers[0].Bytes++ },
		"of 4000000 bytes":        func(s *schedule.Schedule) { s.Transfers[0].Share = place.Share{} },
		"2 transfers into memory": func(s *schedule.Schedule) { s.Transfers[2].End++ },
	} {
		p, plan := byWayOfRAM(t, 444_444, []int{16e6}, 1)
		s := must.Get(run(p, how{plan: plan}))(t)
		must.Do(t, audit.Check(s, p))
		spoil(s)
		if err := audit.Check(s, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Check says %v (%s)", want, err, moves(p, s))
		}
	}
}
