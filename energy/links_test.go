package energy

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/schedule"
)

// oneLink carries between two memories; the route and what the link shares are put in.
const oneLink = `
[[memory]]
name = "ram"
[[memory]]
name = "far"
[[device]]
name = "cpu"
kind = "cpu"
memory = "ram"
power = { idle = "0 W", busy = "0 W" }
[[link]]
name = "l"
bandwidth = "1 GB/s"
latency = "1 s"
sharing = "SHARING"
power = { idle = "1 W", busy = "3 W" }
[[route]]
from = "ram"
to = "far"
links = [ROUTE]
`

// A link of 1 GB/s that draws 1 W idle and 3 W busy, and 1 s of latency in which it is idle;
// a run of 10 s, so 10 J idle in all cases.
func TestLinkPower(t *testing.T) {
	const gb = 1e9
	move := func(start, end float64, bytes int64, back bool) schedule.Transfer {
		at := func(s float64) time.Duration { return time.Duration(s * 1e9) }
		v := schedule.Transfer{To: 1, Bytes: bytes, Start: at(start), End: at(end)}
		if back {
			v.From, v.To = v.To, v.From
		}
		return v
	}
	for _, c := range []struct {
		words, sharing, route string
		moves                 []schedule.Transfer
		joules                float64 // above idle
		trace                 []PowerSample
	}{
		{"3 GB at all of the bandwidth: 3 s of 2 W", "shared", `"l"`, []schedule.Transfer{move(2, 6, 3*gb, false)}, 6,
			[]PowerSample{{0, 1}, {3 * seconds, 3}, {6 * seconds, 1}}},
		{"3 GB in 6 s are half of it: 6 s of 1 W", "shared", `"l"`, []schedule.Transfer{move(2, 9, 3*gb, false)}, 6,
			[]PowerSample{{0, 1}, {3 * seconds, 2}, {9 * seconds, 1}}},
		// Sharing makes 1 GB end at 3 s and 2 GB, a half of them at half rate, at 4 s. The
		// link is full from 1 to 4 s: 3 s of 2 W. Of the second the trace has the mean, 2/3.
		{"1 and 2 GB that share it", "shared", `"l"`, []schedule.Transfer{move(0, 3, gb, false), move(0, 4, 2*gb, true)}, 6,
			[]PowerSample{{0, 1}, {seconds, 1 + 1 + 4.0/3}, {3 * seconds, 1 + 4.0/3}, {4 * seconds, 1}}},
		{"one direction of a duplex link is half of it: 2 s of 1 W", "duplex", `"l"`, []schedule.Transfer{move(0, 3, 2*gb, false)}, 2,
			[]PowerSample{{0, 1}, {seconds, 2}, {3 * seconds, 1}}},
		{"both directions fill it: 2 s of 2 W", "duplex", `"l"`, []schedule.Transfer{move(0, 3, 2*gb, false), move(0, 3, 2*gb, true)}, 4,
			[]PowerSample{{0, 1}, {seconds, 3}, {3 * seconds, 1}}},
		{"each of two fills a fatpipe: 2 s of twice 2 W", "fatpipe", `"l"`, []schedule.Transfer{move(0, 3, 2*gb, false), move(0, 3, 2*gb, false)}, 8,
			[]PowerSample{{0, 1}, {seconds, 5}, {3 * seconds, 1}}},
		{"1 GB that crosses it twice, in 2 s after 2 of latency, fills it", "shared", `"l", "l"`, []schedule.Transfer{move(0, 4, gb, false)}, 4,
			[]PowerSample{{0, 1}, {2 * seconds, 3}, {4 * seconds, 1}}},
		{"1 GB measured in half a second, faster than the file says: 0.5 s of 4 W", "shared", `"l"`, []schedule.Transfer{move(0, 0.5, gb, false)}, 2,
			[]PowerSample{{0, 5}, {seconds / 2, 1}}},
		{"in no time by a coarse clock", "shared", `"l"`, []schedule.Transfer{move(2, 2, gb, false)}, 0, []PowerSample{{0, 1}}},
		{"nothing at all", "shared", `"l"`, []schedule.Transfer{move(2, 3, 0, false)}, 0, []PowerSample{{0, 1}}},
	} {
		p := mustParse(t, strings.NewReplacer("SHARING", c.sharing, "ROUTE", c.route).Replace(oneLink))
		s := &schedule.Schedule{Makespan: 10 * seconds, Transfers: c.moves}
		prob := &schedule.Problem{Graph: mustBuild(t, dag.Task{Name: "A", Op: "o"}), Platform: p}
		r := must.Get(FromSchedule(s, prob))(t)
		if want := (Causes{Idle: 10, Transfer: c.joules}); !near(r.Causes.Idle, want.Idle) || !near(r.Causes.Transfer, want.Transfer) || !near(r.ByLink[0].Joules, 10+c.joules) {
			t.Errorf("%s: %+v, want %+v", c.words, r.Causes, want)
		}
		traces := must.Get(Traces(s, prob))(t)
		got := traces[2].Samples
		same := len(got) == len(c.trace)
		for i := range min(len(got), len(c.trace)) {
			same = same && got[i].At == c.trace[i].At && near(got[i].Watts, c.trace[i].Watts)
		}
		if !same {
			t.Errorf("%s: the trace is %v, want %v", c.words, got, c.trace)
		}
	}
}

// SimGrid's example energy-link sends over a link of 100 kB/s that draws 1 W idle and 3 W
// busy, after a pause of 10 s, without latency. Its expected output, the file
// s4u-energy-link.tesh, says 10.75 J after 25 kB, which end at 10.25 s, and 1510 J after
// 50 MB, which end at 510 s.
func TestSimGridLinkEnergy(t *testing.T) {
	src := strings.NewReplacer("SHARING", "shared", "ROUTE", `"l"`, "1 GB/s", "100 kB/s", `latency = "1 s"`, "").Replace(oneLink)
	prob := &schedule.Problem{Graph: mustBuild(t, dag.Task{Name: "A", Op: "o"}), Platform: mustParse(t, src)}
	var got []float64
	for _, bytes := range []int64{25_000, 50_000_000} {
		end := 10*seconds + prob.Platform.RouteTime(0, 1, bytes)
		r := must.Get(FromSchedule(&schedule.Schedule{Makespan: end, Transfers: []schedule.Transfer{{To: 1, Bytes: bytes, Start: 10 * seconds, End: end}}}, prob))(t)
		got = append(got, r.ByLink[0].Joules)
	}
	if want := []float64{10.75, 1510}; !reflect.DeepEqual(got, want) {
		t.Errorf("the link takes %v J, want %v", got, want)
	}
}
