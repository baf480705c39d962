package plots

import (
	"testing"

	"dahl/plots/paper"
	"dahl/schedule"
	"dahl/schedule/place"
)

// Of the transfers of a run one makes room: both traces and the Gantt chart say so, of
// that one only.
func TestEvictionsAreNamed(t *testing.T) {
	r := tinyRun(t, schedule.Measured, 1)
	r.Schedule.Transfers[0].Reason = place.ReasonEvict
	r.Schedule.Transfers[1].Reason = place.ReasonPrefetch
	reasons := map[any]int{}
	for _, e := range readChrome(t, r).TraceEvents {
		if e.Ph == "X" && e.Cat == "transfer" {
			reasons[e.Args["reason"]]++
		}
	}
	if others := len(r.Schedule.Transfers) - 2; reasons["evict"] != 1 || reasons["prefetch"] != 1 || reasons[nil] != others {
		t.Errorf("reasons in the Chrome trace: %v, want evict and prefetch once and none %d times", reasons, others)
	}
	links := map[string]int{}
	for _, l := range pajeOf(t, r) {
		if l.event == "PajeStartLink" {
			links[l.fields["Value"]]++
		}
	}
	if links["XE"] != 1 || links["X"] != len(r.Schedule.Transfers)-1 {
		t.Errorf("values of links in the Pajé trace: %v, want XE once", links)
	}
	if got, want := transferLabel(&r.Schedule.Transfers[0]), "evict "+paper.FormatBytes(r.Schedule.Transfers[0].Bytes); got != want {
		t.Errorf("label %q, want %q", got, want)
	}
}
