package shares

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/platforms/testmachine"
)

// example is the worked example of doc.go, at times that rounding does not matter for.
func example(t *testing.T) (*Step, *platform.Platform) {
	t.Helper()
	cpu := testmachine.CPU(2, 1, 3)
	cpu.Dispatch, cpu.FlopsPerSec = 1000, map[string]float64{"float32": 1e9}
	var work []dag.Work
	for _, name := range []string{"a", "b"} {
		work = append(work, dag.Work{Name: name, Forms: []dag.Form{{Op: name, Type: dag.Float32, Flops: 8000, Sides: []int{16}}}})
	}
	return NewStep(&dag.Step{Work: work, Chains: [][]dag.Link{{{Work: 0, Uniform: true}, {Work: 1, Uniform: true}}}}), testmachine.Shared(t, cpu)
}

// The multipliers 3/8 and 1/4 prove 2·(8·3/8 + 1/4 + 2·√(8·3/8·1/4)) = 9.964 us of the worked example of doc.go. With one of the two units
// it takes at least 2·(8 + 1) us.
func TestExample(t *testing.T) {
	step, p := example(t)
	for _, c := range []struct {
		most  int
		proof Proof
		want  float64
	}{
		{2, Proof{Units: []float64{0.375}, Chains: []float64{0.25}}, 9964.102},
		{2, Proof{Units: []float64{0.5}}, 9000},
		{2, Proof{Units: []float64{0}, Chains: []float64{1}}, 3000}, // tiles of 1/16 take 1.5 us
		{1, Proof{Units: []float64{1}}, 18_000},
	} {
		m := must.Get(NewModel(step, p, Sets{[]int{0}, []int{c.most}}, problem.Time, true))(t)
		if got := must.Get(c.proof.Bound(m, 0))(t); got > c.want || got < 0.999*c.want-1 {
			t.Errorf("%d units, %+v: %g, want %g", c.most, c.proof, got, c.want)
		}
	}
	// Two idle units draw 2 W, and a busy one 2 W more: 16 us of work take 32 uJ, and 9.964 us of idle power 19.928 uJ. The multipliers of 2 W
	// are twice as large.
	m := must.Get(NewModel(step, p, All(p), problem.Energy, true))(t)
	proof := Proof{Units: []float64{0.749999999}, Chains: []float64{0.499999999}}
	if got := must.Get(proof.Bound(m, 0))(t); got > 51_928.21 || got < 51_928 {
		t.Errorf("%g nJ, want 51928.2", got)
	}
	// No step of at most 9 us has all this work: with more multipliers than watts a deadline counts.
	proof = Proof{Units: []float64{7.5}, Chains: []float64{5}}
	if _, err := proof.Bound(m, 0); err == nil {
		t.Error("multipliers of 20 W where there are 2 W")
	}
	if got := must.Get(proof.Bound(m, 9000))(t); got < 69_281 || got > 69_283 { // 32000 + 10·19928.2 − 18·9000
		t.Errorf("%g nJ by a deadline of 9 us, want 69282", got)
	}
}

// Levels bound what all tiles of a product of matrices move, and the best tile of a level moves at most a quarter more.
func TestLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 8))
	for range 30 {
		n := [3]int{1 + r.IntN(13), 1 + r.IntN(17), 1 + r.IntN(19)}
		moved := []dag.Moved{{Depends: 0b011}, {Depends: 0b101}, {Depends: 0b110}}
		for i := range moved {
			moved[i].Bytes = float64(1 + r.IntN(99))
		}
		f := form{Form: &dag.Form{Sides: n[:], Moved: moved}}
		levels := f.newLevels()
		least := slices.Repeat([]float64{math.Inf(1)}, len(levels))
		var x [3]int
		for x[0] = 1; x[0] <= n[0]; x[0]++ {
			for x[1] = 1; x[1] <= n[1]; x[1]++ {
				for x[2] = 1; x[2] <= n[2]; x[2]++ {
					share, bytes := 1.0, 0.0
					for s := range x {
						share *= float64(x[s]) / float64(n[s])
					}
					for _, m := range f.Moved {
						part := m.Bytes
						for s := range x {
							if m.Depends>>s&1 == 1 {
								part *= float64(x[s]) / float64(n[s])
							}
						}
						bytes += part
					}
					for i, l := range levels {
						if share <= l.most {
							least[i] = min(least[i], bytes/share)
						}
					}
					if share < f.smallest() {
						t.Fatalf("a tile of %v with the share %g, and the smallest has %g", n, share, f.smallest())
					}
				}
			}
		}
		for i, l := range levels {
			if least[i] < l.bytes {
				t.Errorf("%v: tiles up to %g move %g per share, and the level says %g", n, l.most, least[i], l.bytes)
			}
		}
		if least[0] > 1.001*levels[0].bytes {
			t.Errorf("%v: the whole moves %g, and the level says %g", n, least[0], levels[0].bytes)
		}
	}
}

// A bound is refused that claims too much, leaves out a set, has multipliers that no row has, or is of something else.
func TestCheck(t *testing.T) {
	step, p := example(t)
	aim := problem.Aim{Objective: problem.Time, Steady: true}
	bound := func() *Bound {
		return &Bound{Of: Covered, Leaves: []Leaf{
			{Sets: Sets{[]int{2}, []int{2}}, Bounds: []float64{9964}, Proofs: []*Proof{{Units: []float64{0.375}, Chains: []float64{0.25}}}},
			{Sets: Sets{[]int{0}, []int{1}}, Bounds: []float64{17_990}, Proofs: []*Proof{{Units: []float64{1}}}},
		}}
	}
	b := bound()
	must.Do(t, b.Check(step, p, aim))
	if got := b.Bound(); got > 9.964e-6 || got < 9.963e-6 {
		t.Errorf("bound %g, want 9.964e-6", got)
	}
	for what, change := range map[string]func(b *Bound){
		"claim":       func(b *Bound) { b.Leaves[0].Bounds[0] = 9965 },
		"missing":     func(b *Bound) { b.Leaves = b.Leaves[:1] },
		"gap":         func(b *Bound) { b.Leaves[1].Least[0], b.Leaves[1].Most[0] = 0, 0 },
		"more time":   func(b *Bound) { b.Leaves[0].Proofs[0].Units[0] = 0.376 },
		"negative":    func(b *Bound) { b.Leaves[0].Proofs[0].Chains[0] = -0.1 },
		"not finite":  func(b *Bound) { b.Leaves[0].Proofs[0].Chains[0] = math.NaN() },
		"devices":     func(b *Bound) { b.Leaves[0].Proofs[0].Units = []float64{0.2, 0.2} },
		"moves":       func(b *Bound) { b.Leaves[0].Proofs[0].Moves = [][][]float64{{{0.1}, {0}}} },
		"other links": func(b *Bound) { b.Leaves[0].Proofs[0].Moves = [][][]float64{{{0}}} },
		"no proof":    func(b *Bound) { b.Leaves[0].Proofs = nil },
		"of":          func(b *Bound) { b.Of = "some" },
	} {
		b := bound()
		if change(b); b.Check(step, p, aim) == nil {
			t.Errorf("%s: the bound is not refused", what)
		}
	}
}

// Leaves cover a box of sets if and only if each set is in one.
func TestCovered(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	yes := 0
	for range 2000 {
		most := []int{r.IntN(4), r.IntN(3), r.IntN(3)}
		var leaves []Leaf
		for range 1 + r.IntN(6) {
			l := Leaf{Sets: Sets{make([]int, 3), make([]int, 3)}}
			for d, n := range most {
				l.Least[d] = r.IntN(2) * r.IntN(n+1)
				l.Most[d] = n - r.IntN(2)*r.IntN(n-l.Least[d]+1)
			}
			leaves = append(leaves, l)
		}
		want := true
		for a := range most[0] + 1 {
			for b := range most[1] + 1 {
				for c := range most[2] + 1 {
					in := slices.ContainsFunc(leaves, func(l Leaf) bool {
						return l.Least[0] <= a && a <= l.Most[0] && l.Least[1] <= b && b <= l.Most[1] && l.Least[2] <= c && c <= l.Most[2]
					})
					want = want && (in || a+b+c == 0)
				}
			}
		}
		if got := covered(Sets{make([]int, 3), most}, leaves); got != want {
			t.Fatalf("%v by %v: %v, want %v", most, leaves, got, want)
		}
		if want {
			yes++
		}
	}
	if yes < 200 {
		t.Errorf("%d of 2000 are covered: the test tests little", yes)
	}
}
