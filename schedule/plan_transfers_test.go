package schedule

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
)

// recordedPlan is the plan of a random graph with its copies, and what is needed to place
// it again.
type recordedPlan struct {
	placed *Placed
	plan   *Plan
	costs  *Costs
}

func (r *recordedPlan) place(plan *Plan) (*Placed, error) {
	return Place(r.placed.Origin, r.placed.Platform, []*Plan{plan}, []*Costs{r.costs}, nil)
}

func recordPlan(t *testing.T, seed uint64) *recordedPlan {
	t.Helper()
	placed, _ := randomPlaced(t, seed)
	pg := placed.Graphs[0]
	costs, err := NewCosts(pg.Origin, placed.Platform, CostOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plan := &Plan{Order: make([][]dag.TaskID, len(placed.Platform.Workers))}
	for w := range plan.Order {
		for _, task := range pg.Order[w] {
			plan.Order[w] = append(plan.Order[w], pg.TaskOf[task])
		}
	}
	return &recordedPlan{placed, placed.Record(0, plan), costs}
}

// TestPlanTransfers: copies and offsets survive the file, and placing the plan that lists
// them gives them again. An order of copies that was not the estimate's is kept, as far as
// dependences allow any other; then the offsets may differ, and are not listed.
func TestPlanTransfers(t *testing.T) {
	swapped := 0
	for seed := range uint64(60) {
		r := recordPlan(t, seed)
		g, p := r.placed.Graphs[0].Origin, r.placed.Platform
		var file bytes.Buffer
		if err := WritePlan(&file, r.plan, g, p); err != nil {
			t.Fatal(err)
		}
		got, err := ReadPlan(&file, "plan.json", g, p)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Transfers, r.plan.Transfers) || !reflect.DeepEqual(got.Places, r.plan.Places) {
			t.Fatalf("seed %d: read %v, wrote %v", seed, got.Transfers, r.plan.Transfers)
		}
		again, err := r.place(got)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !reflect.DeepEqual(again.Graphs[0].Order, r.placed.Graphs[0].Order) {
			t.Fatalf("seed %d: other lists", seed)
		}
		got.Places = nil
		for _, engine := range got.Transfers {
			if n := len(engine.Copies); n > 1 {
				slices.Reverse(engine.Copies)
			}
		}
		if again, err = r.place(got); err == nil && !reflect.DeepEqual(again.Record(0, got).Transfers, got.Transfers) {
			t.Fatalf("seed %d: the order of the plan was not kept", seed)
		} else if err == nil {
			swapped++
		}
	}
	if swapped < 10 {
		t.Errorf("%d plans could be turned round: the test tests little", swapped)
	}
}

// TestPlanTransfersRefused changes one thing of a plan with several copies on an engine.
func TestPlanTransfersRefused(t *testing.T) {
	for _, c := range []struct {
		what, want string
		change     func(plan *Plan, engine int)
	}{
		{"a copy less", "leaves out", func(p *Plan, e int) { p.Transfers[e].Copies = p.Transfers[e].Copies[1:] }},
		{"one twice", "twice", func(p *Plan, e int) { p.Transfers[e].Copies[1] = p.Transfers[e].Copies[0] }},
		{"an unknown one", "does not need", func(p *Plan, e int) { p.Transfers[e].Copies[0].Name = "copy of nothing" }},
		{"other bytes", "bytes of boxes", func(p *Plan, e int) { p.Transfers[e].Copies[0].Bytes++ }},
		{"an unknown engine", "does not have", func(p *Plan, e int) { p.Transfers[e].Engine = "a dma" }},
		{"another engine", "does not reach", func(p *Plan, e int) {
			other := slices.IndexFunc(p.Transfers, func(x PlannedCopies) bool { return x.Engine[:2] != p.Transfers[e].Engine[:2] })
			p.Transfers[other].Copies = append(p.Transfers[other].Copies, p.Transfers[e].Copies...)
			p.Transfers[e].Copies = nil
		}},
		{"another offset", "does not put it", func(p *Plan, _ int) { p.Places[0].Offset += Alignment }},
		{"a place less", "places", func(p *Plan, _ int) { p.Places = p.Places[1:] }},
	} {
		refused := 0
		for seed := range uint64(20) {
			r := recordPlan(t, seed)
			e := slices.IndexFunc(r.plan.Transfers, func(x PlannedCopies) bool { return len(x.Copies) > 1 })
			memories := map[string]bool{}
			for _, x := range r.plan.Transfers {
				memories[x.Engine[:2]] = true
			}
			if e < 0 || len(memories) < 2 {
				continue
			}
			c.change(r.plan, e)
			if _, err := r.place(r.plan); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("seed %d, %s: %v; want %q", seed, c.what, err, c.want)
			}
			refused++
		}
		if refused == 0 {
			t.Errorf("%s: not tried", c.what)
		}
	}
}
