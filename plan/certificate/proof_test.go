package certificate

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/schedule"
)

// chain is the worked example of doc.go: b of 4 ns after a of 3 ns, on one device of 10 W busy and 2 W
// idle, with a host of 1 W.
func chain(t *testing.T, o problem.Objective) *Model {
	t.Helper()
	return chainModel(o)
}

func chainModel(o problem.Objective) *Model {
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	b := dag.NewBuilder("chain")
	b.Task(dag.Task{Name: "a", Op: "op", Costs: []dag.Cost{{Key: "*", Ns: 3}}})
	b.Task(dag.Task{Name: "b", Op: "op", Costs: []dag.Cost{{Key: "*", Ns: 4}}, After: []dag.TaskID{0}})
	g, err := b.Build()
	check(err)
	p := &platform.Platform{Name: "p", HostPower: platform.Quantity{Value: 1, Source: platform.Guess}, Memories: []platform.Memory{{Name: "ram"}},
		Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: 1, IdleWatts: 2, Busy: platform.BusyPower{UnitWatts: 10}, PowerSource: platform.Guess}}}
	check(p.Complete())
	priced, err := schedule.Price(&dag.Program{Name: "chain", Graphs: []*dag.Graph{g}}, p, schedule.Unbound)
	check(err)
	m, err := NewModel(priced, o, false)
	check(err)
	return m
}

func example(scale float64) []Multiplied {
	return []Multiplied{
		{Row{Family: Precede, From: 0, To: 1}, scale}, {Row{Family: Finish, To: 1}, scale},
		{Row{Family: Assign, To: 0}, 3 * scale}, {Row{Family: Assign, To: 1}, 4 * scale},
	}
}

// Time: 7 ns. Energy: 7 ns at 3 W of host and idle are 21 nJ, and the tasks draw 8 W more for 7 ns, 56
// nJ: 77 nJ, which the assign rows prove with 8 W · 3 ns and 8 W · 4 ns on top. Watts are taken a little
// low, by a part in 10^12.
func TestWorkedExample(t *testing.T) {
	p := Proof{Value: 9, Rows: example(1)}
	if got, err := p.Bound(chain(t, problem.Time)); err != nil || got != 7 {
		t.Errorf("time %v, %v, want 7", got, err)
	}
	m := chain(t, problem.Energy)
	rows := example(3 * (1 - 1e-12))
	rows[2].Multiplier += 24 * (1 - 1e-12)
	rows[3].Multiplier += 32 * (1 - 1e-12)
	p = Proof{Value: 80, Rows: rows}
	if got, err := p.Bound(m); err != nil || math.Abs(got-77) > 1e-9 || got > 77 {
		t.Errorf("energy %v, %v, want 77 nJ", got, err)
	}
	// A bound above a known plan only says that the plan is the best.
	p = Proof{Value: 6, Rows: example(1)}
	if got, err := p.Bound(chain(t, problem.Time)); err != nil || got != 6 {
		t.Errorf("a plan of 6 ns is said to exist: bound %v, %v", got, err)
	}
}

// Multipliers that are off cost what the bounds of columns allow, and never give more than 7. More than
// needed of y = 1 costs nothing, since y is at most 1 anyway.
func TestWrongMultipliersProveLess(t *testing.T) {
	m := chain(t, problem.Time)
	for i := range 4 {
		for _, by := range []float64{-0.5, -1e-9, 1e-9, 0.5} {
			rows := example(1)
			rows[i].Multiplier += by
			p := Proof{Value: 9, Rows: rows}
			got, err := p.Bound(m)
			if err != nil || got > 7 || i < 2 && got == 7 {
				t.Errorf("multiplier %d off by %g: %v, %v", i, by, got, err)
			}
		}
	}
}

func TestBadProofs(t *testing.T) {
	m := chain(t, problem.Time)
	for _, c := range []struct {
		p    Proof
		want string
	}{
		{Proof{}, "without the value of a plan"},
		{Proof{Value: math.NaN()}, "without the value of a plan"},
		{Proof{Value: 9, Rows: []Multiplied{{Row{Family: Finish, To: 0}, -1}}}, `row "finish" has the multiplier -1; want a number that is not negative`},
		{Proof{Value: 9, Rows: []Multiplied{{Row{Family: Precede, From: 1, To: 0}, 1}}}, `the model has no row "precede" from 1 to 0`},
		{Proof{Value: 9, Rows: []Multiplied{{Row{Family: "magic"}, 1}}}, `no row "magic"`},
		// b follows a and reads nothing that a writes.
		{Proof{Value: 9, Rows: []Multiplied{{Row{Family: Deliver, From: 0, To: 1}, 1}}}, `no row "deliver" from 0 to 1`},
		{Proof{Value: 9, Rows: []Multiplied{{Row{Family: Period}, 1}}}, `no row "period"`},
		{Proof{Value: 9, Rows: []Multiplied{{Row{Family: Between, From: 1, To: 0}, 1}}}, `no row "between"`},
		{Proof{Value: 9, Rows: []Multiplied{{Row{Family: Area, Where: 1}, 1}}}, `no row "area"`},
	} {
		if _, err := c.p.Bound(m); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.p, err, c.want)
		}
	}
}

// What is read is refused or can be checked without harm.
// TestWrite: a certificate that is written leaf by leaf has the bytes that package json gives the whole.
func TestWrite(t *testing.T) {
	leaf := func(tiles tiling.Tiling) Leaf {
		return Leaf{Choice: space.Choice{Devices: "a<b", Tiles: tiles}, Claims: []Claim{{problem.Energy, 7.5, []*Proof{{Value: 9, Rows: example(1)}}}}}
	}
	braces := must.Get(tiling.Parse("default; ]}: 2 samples"))(t)
	for _, leaves := range [][]Leaf{{}, {leaf(tiling.Tiling{})}, {leaf(tiling.Of(tiling.Base{Kind: tiling.Whole})), leaf(tiling.InParts(2, dag.AlongRows)), leaf(braces)}} {
		c := &Certificate{Format: Format, Objective: "energy", Steady: true, Devices: []string{"", "]}"}, Tiles: []tiling.Tiling{{}}, Leaves: leaves}
		var whole, written bytes.Buffer
		if err := errors.Join(json.NewEncoder(&whole).Encode(c), c.Write(&written)); err != nil || written.String() != whole.String() {
			t.Errorf("%v, written\n%sand as a whole\n%s", err, &written, &whole)
		}
	}
}

func FuzzRead(f *testing.F) {
	p := Proof{Value: 9, Rows: example(1)}
	var b bytes.Buffer
	must.Do(f, (&Certificate{Objective: "time", Devices: []string{""}, Tiles: []tiling.Tiling{{}}, Leaves: []Leaf{{Claims: []Claim{{problem.Time, 7, []*Proof{&p}}}}}}).Write(&b))
	f.Add(b.String())
	f.Add(`{"format":"dahl-certificate 6","objective":"time","leaves":[{"claims":[{"objective":"time","proofs":[{"where":[{"tasks":[0],"devices":[0],"most":0}],"value":1e300,"rows":[{"row":{"family":"between","to":1},"multiplier":-1}]}]}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		m := chainModel(problem.Time)
		for _, leaf := range c.Leaves {
			for _, claim := range leaf.Claims {
				if bound, err := leaf.prove(m, claim.Proofs, nil); err == nil && bound > 7 {
					t.Errorf("it proves %v of a graph that takes 7", bound)
				}
			}
		}
	})
}
