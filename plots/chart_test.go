package plots

import (
	"slices"
	"testing"
	"time"

	"dahl/platform"
	"dahl/plots/paper"
	"dahl/schedule"
	"dahl/schedule/place"
)

// A run that leaves most of a machine unused shows the unused workers in one row
// of each device, not in seventy.
func TestUnusedNeighboursShareARow(t *testing.T) {
	r := largeRun(t, 40, 9, 1, 1)
	for i := range r.Schedule.Spans {
		r.Schedule.Spans[i].Worker = 4 // one after the other
		r.Schedule.Spans[i].Start, r.Schedule.Spans[i].End = time.Duration(i), time.Duration(i+1)
	}
	r.Schedule.Makespan = time.Duration(len(r.Schedule.Spans))
	var labels []string
	for _, row := range newChart(r, newColouring(r)).rows {
		labels = append(labels, row.label)
	}
	if want := []string{"cpu.0..3", "cpu.4", "cpu.5..8"}; !slices.Equal(labels, want) {
		t.Errorf("rows %q, want %q", labels, want)
	}
}

// Twenty layers have twelve colours: the eleven that took the most time keep
// their own, the other nine share grey.
func TestManyLayersShareAColour(t *testing.T) {
	r := largeRun(t, 400, 4, 1, 1)
	c := newColouring(r)
	if len(c.names) != len(palette) || c.names[len(c.names)-1] != "9 other layers" || c.fills[len(c.names)-1] != otherGrey {
		t.Errorf("categories %q", c.names)
	}
	busy := make([]time.Duration, len(c.names))
	for _, s := range r.Schedule.Spans {
		busy[c.ofTask[s.Task]] += s.End - s.Start
	}
	least := slices.Min(busy[:len(busy)-1])
	perLayer := map[string]time.Duration{}
	for _, s := range r.Schedule.Spans {
		if c.ofTask[s.Task] == len(c.names)-1 {
			perLayer[r.Problem.Graph.Tasks[s.Task].Labels.Layer] += s.End - s.Start
		}
	}
	for layer, d := range perLayer {
		if d > least {
			t.Errorf("%s took %v and is grey; a layer of %v has a colour", layer, d, least)
		}
	}
}

// Colours follow the label asked for, else the first that tells tasks apart.
func TestColourBy(t *testing.T) {
	r := tinyRun(t, schedule.Measured, 1)
	r.Problem.Graph.Tasks[1].Labels.MicroBatch = 3
	for by, want := range map[ColourBy][]string{
		"":      {"conv1", "relu1", "fc1", "loss"},
		ByLayer: {"conv1", "relu1", "fc1", "loss"},
		ByPhase: {"forward", "backward", "update"},
		ByOp:    {"conv2d", "relu", "dense", "dense.dw", "mean", "sgd"},

		ByMicroBatch: {"whole batch", "3"},
	} {
		r.ColourBy = by
		if got := newColouring(r).names; !slices.Equal(got, want) {
			t.Errorf("by %q: %q, want %q", by, got, want)
		}
	}
}

// What moves for lack of memory has a colour and a line in the legend of its own; what
// moves after the last task is still on the axis, and not of the makespan.
func TestTransfersInCharts(t *testing.T) {
	r := tinyRun(t, schedule.Simulated, 1)
	last := len(r.Schedule.Transfers) - 1
	for reason, own := range map[place.Reason]bool{
		place.ReasonPrefetch: false, place.ReasonEnter: false, place.ReasonEvict: true, place.ReasonReload: true,
	} {
		r.Schedule.Transfers[last].Reason = reason
		colours := newColouring(r)
		ch := newChart(r, colours)
		if used := ch.used(); used[colours.room()] != own || !used[colours.transfer()] {
			t.Errorf("%s: has the colour of room: %v, want %v", reason, used[colours.room()], own)
		}
		named := slices.ContainsFunc(colours.legend(ch.used())[2].Entries, func(e paper.Entry) bool { return e.Colour == roomBrown })
		if named != own {
			t.Errorf("%s: is in the legend: %v, want %v", reason, named, own)
		}
	}
	makespan := r.Schedule.Makespan
	if ch := newChart(r, newColouring(r)); ch.end != makespan {
		t.Errorf("the axis ends at %v, want %v", ch.end, makespan)
	}
	r.Schedule.Transfers[last].End = makespan + 7*us
	if ch := newChart(r, newColouring(r)); ch.end != makespan+7*us {
		t.Errorf("the axis ends at %v, want 7 us more than %v", ch.end, makespan)
	}
}

// A capacity is drawn where the run comes near it: from 40 % of it on.
func TestCapacityIsDrawnWhereItMatters(t *testing.T) {
	for _, c := range []struct{ peak, planned, capacity, want int64 }{
		{39, 39, 100, 0}, {40, 0, 100, 100}, {3, 40, 100, 100}, {99, 130, 100, 100}, {50, 50, 0, 0},
	} {
		p := panel{memory: platform.Memory{CapacityBytes: c.capacity}, peak: c.peak, reserved: c.planned}
		if got := p.limit(); got != c.want {
			t.Errorf("peak %d, reserved %d of %d: drawn %d, want %d", c.peak, c.planned, c.capacity, got, c.want)
		}
	}
}
