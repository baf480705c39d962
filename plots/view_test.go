package plots

import (
	"math"
	"testing"

	"dahl/energy"
	"dahl/must"
	"dahl/schedule"
)

// A view has the rows of the chart: cores, the GPU, which is alone, and the ways of copies. The energy
// of its curves is that of the report, and its memories have the peaks of the schedule.
func TestViewIsTheRun(t *testing.T) {
	r := tinyRun(t, schedule.Measured, 1)
	v := must.Get(NewView(r, nil))(t)
	chart := newChart(r, newColouring(r))
	if len(v.Rows) != len(chart.rows) || v.Rows[0].Alone || !v.Rows[2].Alone || v.Rows[0].Coarse != nil {
		t.Errorf("rows %+v, want those of the chart, the first of two cores and the third alone", v.Rows)
	}
	for i, m := range v.Spans {
		if want := r.Problem.Platform.Workers[r.Schedule.Spans[i].Worker].Name; v.Rows[m.Row].Label != want {
			t.Errorf("span %d is in the row of %s, want %s", i, v.Rows[m.Row].Label, want)
		}
	}
	report := must.Get(energy.FromSchedule(r.Schedule, r.Problem))(t)
	joules := v.Power.Joules[len(v.Power.Joules)-1]
	if math.Abs(joules-report.TotalJoules) > 1e-12*report.TotalJoules {
		t.Errorf("curves add up to %v J, want %v J", joules, report.TotalJoules)
	}
	for _, m := range v.Memories {
		id, _ := r.Problem.Platform.MemoryByName(m.Name)
		if m.Peak != r.Schedule.PeakBytes[id] || m.Reserved != r.ReservedBytes[id] {
			t.Errorf("%s has a peak of %d bytes and %d reserved, want %d and %d", m.Name, m.Peak, m.Reserved, r.Schedule.PeakBytes[id], r.ReservedBytes[id])
		}
	}
}

// Two workers with 10,000 tasks each, and the gaps between them, have a row in 2,000 columns, which
// follow each other and cover no more than there are. A view like another has its colours.
func TestViewOfManyTasksIsCoarse(t *testing.T) {
	r := largeRun(t, 20_000, 2, 1, 3)
	v := must.Get(NewView(r, nil))(t)
	for _, row := range v.Rows {
		if len(row.Coarse) == 0 || row.Coarse[0].Number != 2000 {
			t.Fatalf("row %s has %d coarse forms", row.Label, len(row.Coarse))
		}
		for _, c := range row.Coarse {
			end := 0
			for _, x := range c.Runs {
				if x.First < end || x.End <= x.First || x.End > c.Number || x.Category >= len(v.Categories) {
					t.Errorf("row %s has the columns %+v after %d, of %d", row.Label, x, end, c.Number)
				}
				end = x.End
			}
		}
	}
	like, err := NewView(largeRun(t, 2_000, 2, 1, 5), v)
	if err != nil || len(like.Categories) != len(v.Categories) {
		t.Errorf("a view like another has %d categories, want %d (%v)", len(like.Categories), len(v.Categories), err)
	}
}
