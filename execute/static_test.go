package execute

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/schedule"
	"dahl/schedule/layout"
)

// TestWaitsOfAChain derives the waits by hand. a writes x, b turns x into y, c
// adds y to the carried z; a and c on worker 0, b on worker 1.
//
//	worker 0: a, c (2 per step)     worker 1: b (1 per step)
//	a: follows b of the step before, which reads x: b is at position 0 of 1, so
//	   worker 1 must have reached 0+1-1·1 = 0
//	b: follows a, at position 0 of 2: worker 0 must have reached 1; and c of the
//	   step before, which reads y: 1+1-1·2 = 0, implied by 1
//	c: follows b: worker 1 must have reached 1
//
// The wait of a is implied by that of c in the step before: 1 then is 0 now.
func TestWaitsOfAChain(t *testing.T) {
	b := dag.NewBuilder("chain")
	var ids []dag.BufferID
	for _, name := range []string{"x", "y", "z"} {
		ids = append(ids, b.Buffer(dag.Buffer{Name: name, Shape: []int{1}, Type: dag.Float32}))
	}
	access := func(i int, m dag.Mode) dag.Access { return dag.Access{Region: dag.Region{Buffer: ids[i]}, Mode: m} }
	ta := b.Task(dag.Task{Name: "a", Accesses: []dag.Access{access(0, dag.Write)}})
	tb := b.Task(dag.Task{Name: "b", Accesses: []dag.Access{access(1, dag.Write), access(0, dag.Read)}})
	tc := b.Task(dag.Task{Name: "c", Accesses: []dag.Access{access(2, dag.ReadWrite), access(1, dag.Read)}})
	g := must.Get(b.Build())(t)
	r := must.Get(compileReplay(g, [][]dag.TaskID{{ta, tc}, {tb}}, nil, 3, noLag))(t)
	for _, c := range []struct {
		worker, index int
		want          []wait
	}{
		{0, 0, nil},
		{0, 1, []wait{{worker: 1, need: 1, length: 1}}},
		{1, 0, []wait{{worker: 0, need: 1, length: 2}}},
	} {
		it := r.lists[c.worker][c.index]
		if got := r.waits[it.firstWait:it.endWait]; !slices.Equal(got, c.want) {
			t.Errorf("worker %d, task %d waits for %v, want %v", c.worker, c.index, got, c.want)
		}
	}
	if len(r.lists[2]) != 0 {
		t.Errorf("worker 2 runs %d tasks, the plan has none for it", len(r.lists[2]))
	}
}

// TestWaitsImplyEveryOrder replays random plans of random graphs without
// threads, with copies of buffers, at each moment advancing any worker whose waits are met, and checks
// each start against the orders of the graph and of the layout.
func TestWaitsImplyEveryOrder(t *testing.T) {
	const workers, steps = 3, 7
	far := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 17))
		g := withRandomCopies(t, rng, randomGraph(t, rng))
		far += int(g.Reach()) - 1
		plan := randomPlan(g, workers, seed)
		l := &layout.Layout{ReuseNext: []dag.Edge{randomEdge(rng, len(g.Tasks)), randomEdge(rng, len(g.Tasks))}}
		// An order within the step must agree with the plan: from an earlier to a later task of one list.
		if list := plan.Order[0]; len(list) > 1 {
			l.Reuse = []dag.Edge{{From: list[0], To: list[len(list)-1]}}
		}
		r := must.Get(compileReplay(g, plan.Order, [][]dag.Edge{l.Reuse, l.ReuseNext}, workers, noLag))(t)
		done := make([]int64, workers)
		ended := make(map[dag.Instance]bool)
		for range steps * len(g.Tasks) {
			w := pickWorker(rng, r, done, steps)
			if w < 0 {
				t.Fatalf("seed %d: nobody can go on at %v", seed, done)
			}
			n := int64(len(r.lists[w]))
			i := dag.Instance{Task: dag.TaskID(r.lists[w][done[w]%n].task), Step: int32(done[w] / n)}
			mustFollow(t, g, l, ended, i)
			ended[i] = true
			done[w]++
		}
	}
	if far < 100 {
		t.Errorf("the graphs reach %d steps further than one in all: the test tests little", far)
	}
}

// withRandomCopies gives up to four copies to storages that can have them.
func withRandomCopies(t *testing.T, rng *rand.Rand, g *dag.Graph) *dag.Graph {
	t.Helper()
	copies := slices.Repeat([]int32{1}, len(g.Buffers))
	for b := range copies {
		if g.WrittenStorages()[b] && !g.Carried(dag.BufferID(b)) {
			copies[b] += int32(rng.IntN(4))
		}
	}
	return must.Get(g.WithVersions(copies))(t)
}

func randomEdge(rng *rand.Rand, tasks int) dag.Edge {
	return dag.Edge{From: dag.TaskID(rng.IntN(tasks)), To: dag.TaskID(rng.IntN(tasks))}
}

func randomGraph(t *testing.T, rng *rand.Rand) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("random")
	for i := range 4 {
		b.Buffer(dag.Buffer{Name: string(rune('a' + i)), Shape: []int{5}, Type: dag.Float32})
	}
	for i := range 10 {
		task := dag.Task{Name: string(rune('A' + i))}
		for _, buf := range rng.Perm(4)[:2] {
			lo := rng.IntN(5)
			box := dag.Box{{Lo: lo, Hi: lo + 1 + rng.IntN(5-lo)}}
			task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: dag.BufferID(buf), Box: box}, Mode: dag.Mode(rng.IntN(3))})
		}
		b.Task(task)
	}
	return must.Get(b.Build())(t)
}

// pickWorker returns a random worker whose next task may start, -1 for none.
func pickWorker(rng *rand.Rand, r *replay, done []int64, steps int) int {
	for _, w := range rng.Perm(len(done)) {
		n := int64(len(r.lists[w]))
		if done[w] == n*int64(steps) {
			continue
		}
		it, step := r.lists[w][done[w]%n], done[w]/n
		met := true
		for _, wt := range r.waits[it.firstWait:it.endWait] {
			met = met && done[wt.worker] >= wt.need+step*wt.length
		}
		if met {
			return w
		}
	}
	return -1
}

func mustFollow(t *testing.T, g *dag.Graph, l *layout.Layout, ended map[dag.Instance]bool, i dag.Instance) {
	t.Helper()
	check := func(p dag.TaskID, step int32) {
		if step >= 0 && !ended[dag.Instance{Task: p, Step: step}] {
			t.Fatalf("%s of step %d starts before %s of step %d has ended", g.Tasks[i.Task].Name, i.Step, g.Tasks[p].Name, step)
		}
	}
	for back := range g.Reach() + 1 {
		for _, preds := range g.PredsBack(i.Task, back) {
			for _, p := range preds {
				check(dag.TaskID(p), i.Step-back)
			}
		}
	}
	for _, e := range l.Reuse {
		if e.To == i.Task {
			check(e.From, i.Step)
		}
	}
	for _, e := range l.ReuseNext {
		if e.To == i.Task {
			check(e.From, i.Step-1)
		}
	}
}

func TestPlansThatCannotRun(t *testing.T) {
	// a, b and c, d are two chains.
	b := dag.NewBuilder("chains")
	ids := map[string]dag.TaskID{}
	for _, chain := range [][2]string{{"a", "b"}, {"c", "d"}} {
		ids[chain[0]] = b.Task(dag.Task{Name: chain[0]})
		ids[chain[1]] = b.Task(dag.Task{Name: chain[1], After: []dag.TaskID{ids[chain[0]]}})
	}
	g := must.Get(b.Build())(t)
	for _, c := range []struct {
		order []string // a string per worker, tasks as letters
		want  string
	}{
		{[]string{"ba", "cd"}, `has task "b" before "a"`},
		{[]string{"bc", "da"}, "waits in turn"}, // b for a, which is after d, which waits for c, after b
		{[]string{"abc"}, `does not name task "d"`},
		{[]string{"abcda"}, `names task "a" twice`},
		{[]string{"abcdz"}, "names task 99"},
		{[]string{"ab", "cd", ""}, "3 workers"},
	} {
		plan := &schedule.Plan{}
		for _, list := range c.order {
			var tasks []dag.TaskID
			for _, letter := range strings.Split(list, "") {
				id, ok := ids[letter]
				if !ok {
					id = 99
				}
				tasks = append(tasks, id)
			}
			plan.Order = append(plan.Order, tasks)
		}
		if _, err := compileReplay(g, plan.Order, nil, 2, noLag); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("plan %v: error %v, want one about %q", c.order, err, c.want)
		}
	}
}

// noLag is a plan in which steps follow each other.
func noLag(dag.TaskID) int32 { return 0 }
