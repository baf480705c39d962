package certificate

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/platforms/testmachine"
	"dahl/schedule"
)

// pair prices a graph on two devices of one unit and one memory, or of two.
func pair(t *testing.T, g *dag.Graph) *schedule.Priced {
	t.Helper()
	p := testmachine.Shared(t, testmachine.CPU(1, 0, 3), testmachine.GPU("gpu", 0, 3))
	return must.Get(schedule.Price(&dag.Program{Name: "pair", Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
}

// tasks is a graph of tasks without data that take so long on any device, in a chain or not.
func tasks(t *testing.T, chain bool, nanos ...int64) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("tasks")
	for i, ns := range nanos {
		task := dag.Task{Name: string(rune('a' + i)), Op: "op", Costs: []dag.Cost{{Key: "*", Ns: ns}}}
		if chain && i > 0 {
			task.After = []dag.TaskID{dag.TaskID(i - 1)}
		}
		b.Task(task)
	}
	return must.Get(b.Build())(t)
}

// The worked example: three tasks of 4 ns take 6 ns by the work of both devices, half of the area of each and
// 2 of each assignment. If at most one runs on the first, T ≥ 4·Σ y on the second = 4·(3 − Σ y on the first) ≥
// 4·(3 − 1); if at least two do, T ≥ 4·2. So 8 ns, where both parts are proved.
func TestPartsProveMore(t *testing.T) {
	m := must.Get(NewModel(pair(t, tasks(t, false, 4, 4, 4)), problem.Time, false))(t)
	few := Condition{Tasks: []int32{0, 1, 2}, Devices: []int{0}, Most: 1}
	assign := func(y float64) (rows []Multiplied) {
		for task := range int32(3) {
			rows = append(rows, Multiplied{Row{Family: Assign, To: task}, y})
		}
		return rows
	}
	both := &Proof{Value: 99, Rows: append(assign(2), Multiplied{Row{Family: Area}, 0.5}, Multiplied{Row{Family: Area, Where: 1}, 0.5})}
	first := &Proof{Value: 99, Where: []Condition{few}, Rows: append(assign(4), Multiplied{Row{Family: Area, Where: 1}, 1}, Multiplied{Row{Family: Given}, 4})}
	second := &Proof{Value: 99, Where: []Condition{few.Other()}, Rows: []Multiplied{{Row{Family: Area}, 1}, {Row{Family: Given}, 4}}}
	for _, c := range []struct {
		what   string
		proofs []*Proof
		bound  float64
		want   string
	}{
		{"one part", []*Proof{both}, 6, ""},
		{"two parts", []*Proof{first, second}, 8, ""},
		{"two parts, one of them twice", []*Proof{second, first, second}, 8, ""},
		{"a part", []*Proof{first}, 0, "leave out some plans"},
		{"the other part", []*Proof{second}, 0, "leave out some plans"},
		{"no part", nil, 0, "leave out some plans"},
		{"a condition that is not there", []*Proof{{Value: 99, Rows: second.Rows}}, 0, `no row "given"`},
	} {
		var l Leaf
		if err := l.Add(m, c.proofs...); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || err == nil && l.Claims[0].Bound != c.bound {
			t.Errorf("%s: %v, %v; want %v, %q", c.what, l.Claims, err, c.bound, c.want)
		}
	}
}

// Lists are complete if they are the leaves of a tree in which every node splits by one condition.
func TestComplete(t *testing.T) {
	a, b := Condition{Tasks: []int32{0}, Devices: []int{0}}, Condition{Tasks: []int32{1}, Devices: []int{0}}
	c := Condition{Tasks: []int32{1}, Devices: []int{0}, Most: 1}
	for _, test := range []struct {
		lists [][]Condition
		want  bool
	}{
		{[][]Condition{nil}, true},
		{nil, false},
		{[][]Condition{{a}, {a.Other()}}, true},
		{[][]Condition{{a}, {a}}, false},
		{[][]Condition{{a}, {b.Other()}}, false},
		{[][]Condition{{a, b}, {a, b.Other()}, {a.Other(), c}, {a.Other(), c.Other()}}, true},
		{[][]Condition{{a, b}, {a, c.Other()}, {a.Other()}}, false},
		{[][]Condition{{a, b}, {a.Other(), b.Other()}}, false},
		{[][]Condition{{a, b}, {a}, {a.Other()}}, true},
		{[][]Condition{{Condition{Most: 5}}, {Condition{Most: 5, More: true}}}, true},
		{[][]Condition{{Condition{Most: 5}}, {Condition{Most: 6, More: true}}}, false},
	} {
		if got := complete(test.lists); got != test.want {
			t.Errorf("%v: complete is %v", test.lists, got)
		}
	}
}

// Conditions on what the model does not have are refused.
func TestBadConditions(t *testing.T) {
	m := must.Get(NewModel(pair(t, tasks(t, false, 4, 4)), problem.Time, false))(t)
	for _, c := range []Condition{
		{Most: -1}, {Most: math.NaN()}, {Most: math.Inf(1)}, {Devices: []int{0}}, {Tasks: []int32{0}}, {Tasks: []int32{2}, Devices: []int{0}},
		{Tasks: []int32{1, 0}, Devices: []int{0}}, {Tasks: []int32{0, 0}, Devices: []int{0}}, {Tasks: []int32{0}, Devices: []int{2}},
		{Tasks: []int32{-1}, Devices: []int{0}}, {Tasks: []int32{0}, Devices: []int{0}, Most: 0.5},
	} {
		if _, err := m.Given([]Condition{c}); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// rest + slope·T, and T times it, over intervals; the expected numbers are worked out by hand. 14·T − T²/2 is
// the product of the worked example of package relax.
func TestLeastOver(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		rest, slope, from, to float64
		product               bool
		want                  float64 // NaN: nothing is known
	}{
		{5, 2, 1, 3, false, 7}, {5, -2, 1, 3, false, -1}, {5, 2, 1, inf, false, 7}, {5, 0, 1, inf, false, 5}, {5, -2, 1, inf, false, math.NaN()},
		{14, -0.5, 4, 8, true, 48}, {14, -0.5, 4, 28, true, 0}, {14, -0.5, 4, inf, true, math.NaN()}, {3, 0, 2, inf, true, 6}, {-3, 0, 2, inf, true, math.NaN()},
		{1, 1, 2, 5, true, 6}, {-4, 1, 1, 5, true, -4}, // T² − 4·T is least at 2
		{-4, 1, 3, inf, true, -4}, // the vertex bounds what lies right of it
	} {
		got := leastOver(new(big.Rat).SetFloat64(c.rest), new(big.Rat).SetFloat64(c.slope), c.from, c.to, c.product)
		if got == nil != math.IsNaN(c.want) {
			t.Errorf("%+v: %v", c, got)
			continue
		}
		if got == nil {
			continue
		}
		if is, _ := got.Float64(); is != c.want {
			t.Errorf("%+v: %v", c, is)
		}
	}
}

// A joined model relaxes all that it is of, and has no option that none of them has.
func TestJoin(t *testing.T) {
	priced := diamond(t, "server")
	for _, o := range []problem.Objective{problem.Time, problem.Energy} {
		for _, sets := range [][]string{{"cpu0:1", "cpu0:36"}, {"cpu0:36", "cpu0:1"}, {"gpu0", "cpu0:4,cpu1:8", "cpu0:1,gpu2,gpu3"}, {"cpu0:2,gpu0", "cpu1:2,gpu1", ""}} {
			var models []*Model
			for _, set := range sets {
				models = append(models, modelOn(t, priced, set, o))
			}
			joined := must.Get(Join(models...))(t)
			options := 0
			for i, m := range models {
				if !joined.Relaxes(m) {
					t.Errorf("%s, %q: %q is not relaxed", o, sets, sets[i])
				}
				options += len(m.Tasks[0].Options)
			}
			if n := len(joined.Tasks[0].Options); n > options || n > len(joined.Devices) {
				t.Errorf("%s, %q: %d options on %d devices", o, sets, n, len(joined.Devices))
			}
		}
	}
	small, err := NewModel(pair(t, tasks(t, false, 4)), problem.Time, true)
	if err == nil {
		_, err = Join(modelOn(t, priced, "gpu0", problem.Time), small)
	}
	if err == nil || !strings.Contains(err.Error(), "cannot be joined") {
		t.Errorf("models of two graphs: %v", err)
	}
}
