package certificate

import (
	"math"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/platform"
	"dahl/schedule"
)

// oneCall prices one call on a core of 1 W idle and 5 W busy with a low clock of half the speed. It takes 10 ns by
// variant fast, and by frugal 30 ns and 5 nJ, or 12 ns at the low clock.
func oneCall(t *testing.T, clock int) *schedule.Priced {
	t.Helper()
	b := dag.NewBuilder("one")
	b.Task(dag.Task{Name: "a", Op: "op", Type: dag.Float32, Shape: "4"})
	g := must.Get(b.Build())(t)
	power := platform.BusyPower{UnitWatts: 5}
	p := &platform.Platform{Name: "p", Memories: []platform.Memory{{Name: "ram"}}, Devices: []platform.Device{
		{Name: "cpu", Kind: "cpu", Count: 1, IdleWatts: 1, Busy: power, PowerSource: platform.Guess,
			Clocks: []platform.Clock{{Name: "own", Scale: 1, Idle: 1, Busy: power}, {Name: "low", Scale: 0.5, Idle: 1, Busy: power}}}}}
	for _, m := range []platform.Model{{Variant: "fast", MedianNs: 10, Compute: 1}, {Variant: "frugal", MedianNs: 30, Compute: 1, Joules: 5e-9}, {Variant: "frugal", Clock: "low", MedianNs: 12}} {
		m.Op, m.Type, m.Device, m.Shape, m.Active, m.Count = "op", "float32", "cpu", "4", 1, 1
		p.Models = append(p.Models, m)
	}
	p.Devices[0].AtClock, p.Devices[0].ClockHeld = platform.ClockID(clock), true
	must.Do(t, p.Complete())
	return must.Get(schedule.Price(&dag.Program{Name: "one", Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
}

// TestVariantsBound: an option takes the least of all variants, each number by itself: fast takes 10 ns and 4·10 nJ above what
// the core draws idle, and frugal 30 ns and 5 nJ. At the low clock fast takes 20 ns, and frugal 12 ns and 4·12 nJ.
func TestVariantsBound(t *testing.T) {
	for clock, want := range []Option{{Nanos: 10, Nanojoules: 5}, {Clock: 1, Nanos: 12, AwakeNanos: 12, Nanojoules: 48}} {
		m := must.Get(NewModel(oneCall(t, clock), problem.Energy, false))(t)
		of := m.Tasks[0].Options
		if len(of) != 1 || math.Abs(of[0].Nanojoules-want.Nanojoules) > 1e-9 {
			t.Fatalf("options %+v, want %+v", of, want)
		}
		if of[0].Nanojoules = want.Nanojoules; of[0] != want {
			t.Errorf("option %+v, want %+v", of[0], want)
		}
	}
}

// TestVariantsRefuseClaims: at the low clock the variant of the price takes 20 ns, which no certificate can claim, since another
// takes 12.
func TestVariantsRefuseClaims(t *testing.T) {
	priced := oneCall(t, 1)
	s := space.Of(priced, []string{""})
	for nanos, want := range map[float64]string{12: "", 20: "it claims that no plan takes less time than 20, and proves 12"} {
		proof := &Proof{Value: 40, Rows: []Multiplied{{Row{Family: Finish}, 1}, {Row{Family: Assign}, nanos}}}
		c := &Certificate{Objective: "time", Devices: s.Devices, Tiles: s.Tiles,
			Leaves: []Leaf{{Graph: priced.Program.Graphs[0].Hash(), Claims: []Claim{{problem.Time, nanos, []*Proof{proof}}}}}}
		if err := c.Check(s); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%g ns: %v, want %q", nanos, err, want)
		}
	}
}
