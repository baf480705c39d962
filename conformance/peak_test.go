package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/schedule"
	"dahl/schedule/layout"
)

// TestReplayIsExact executes static plans, made by heft and written down from a
// dynamic run: every task runs on the planned worker in the planned order, the
// highest byte touched in each arena is the planned one (in the scratch at most
// that), and what the measured schedule keeps live never exceeds the layout.
func TestReplayIsExact(t *testing.T) {
	var scratch int64
	for _, model := range []string{"digits-cnn", "lenet5", branching, sentences, "recomputed"} {
		recomputed := model == "recomputed"
		if recomputed {
			model = sentences
		}
		n := newNetwork(t, model, dag.Float32, 2)
		if model == branching { // layers are recomputed
			n.lower(t, n.mixedLowering())
		}
		if recomputed {
			l := fixtureLowering()
			l.Recompute = []string{"attention", "ge*"}
			n.lower(t, l)
		}
		for workers := 1; workers <= 3; workers++ {
			p := machine(t, workers)
			eager := n.execute(t, how{platform: p, policy: "eager"})
			for name, h := range map[string]how{
				"heft":         {platform: p, policy: "heft", poison: true},
				"eager's plan": {platform: p, plans: eager.plans(), poison: true},
			} {
				t.Run(fmt.Sprintf("%s/%d/%s", model, workers, name), func(t *testing.T) {
					scratch = max(scratch, n.checkReplay(t, h))
				})
			}
		}
	}
	if scratch == 0 {
		t.Error("no task of any case uses a workspace")
	}
}

// checkReplay executes plans and returns the highest byte of scratch that they use.
func (n *network) checkReplay(t *testing.T, h how) int64 {
	t.Helper()
	tr := n.execute(t, h)
	for _, r := range tr.runs {
		checkPlanned(t, r, tr.decision.Graphs[r.graph].Plan)
		checkLive(t, r, tr.layout(r.graph))
	}
	high, planned := must.Get(tr.runner.HighWater(0))(t), tr.plannedHighWater()
	// What a kernel declares as workspace is enough for every level of instructions,
	// so the scratch is held to it as to a bound.
	used := high[layout.ScratchArena]
	if bound := tr.plannedScratch(); used > bound || bound > planned[layout.ScratchArena] {
		t.Errorf("scratch is touched up to byte %d, workspaces end at %d, planned are %d", used, bound, planned[layout.ScratchArena])
	}
	planned[layout.ScratchArena] = used
	if high != planned {
		t.Errorf("highest bytes %v, planned %v", high, planned)
	}
	return used
}

// TestPoliciesKeepTheBound: where the policy decides at run time, the layout is a
// bound that holds in any order.
func TestPoliciesKeepTheBound(t *testing.T) {
	for _, model := range []string{"digits-cnn", "lenet5"} {
		n := newNetwork(t, model, dag.Float32, 2)
		for workers := 1; workers <= 3; workers++ {
			for _, policy := range []string{"eager", "dmda"} {
				tr := n.execute(t, how{platform: machine(t, workers), policy: policy, poison: true})
				for _, r := range tr.runs {
					checkLive(t, r, tr.layout(r.graph))
				}
				high, planned := must.Get(tr.runner.HighWater(0))(t), tr.plannedHighWater()
				for a := range high {
					if high[a] > planned[a] {
						t.Errorf("%s, %d workers, %s: arena %v touched up to byte %d, the bound is %d", model, workers, policy, layout.Arena(a), high[a], planned[a])
					}
				}
			}
		}
	}
}

// checkPlanned compares worker and order of every span with the plan's lists.
func checkPlanned(t *testing.T, r run, plan *schedule.Plan) {
	t.Helper()
	got := make([][]dag.TaskID, len(r.problem.Platform.Workers))
	for _, s := range r.schedule.Spans { // by start
		got[s.Worker] = append(got[s.Worker], s.Task)
	}
	for w := range got {
		var want []dag.TaskID
		for range r.schedule.Steps {
			if w < len(plan.Order) {
				want = append(want, plan.Order[w]...)
			}
		}
		if !slices.Equal(got[w], want) {
			t.Errorf("graph %q: worker %d ran %v, planned %v", r.problem.Graph.Name, w, got[w], want)
		}
	}
}

// layout is where the storages of a graph lie in the host's memory.
func (tr *training) layout(graph int) *layout.Layout {
	return tr.decision.Layouts(graph)[tr.decision.Priced.Platform.HostMemory()]
}

// plannedHighWater is the end of the last storage of each arena in any graph; of the scratch,
// its size.
func (tr *training) plannedHighWater() (end [layout.NumArenas]int64) {
	for i, g := range tr.prog.Graphs {
		l := tr.layout(i)
		for b := range dag.BufferID(len(g.Buffers)) {
			end[l.Arena(b)] = max(end[l.Arena(b)], l.Offset(b)+g.Buffers[b].Bytes())
		}
		end[layout.ScratchArena] = max(end[layout.ScratchArena], l.ArenaBytes[layout.ScratchArena])
	}
	return end
}

// plannedScratch is the highest byte of the scratch arena that the plans use: in
// the piece of the last worker that has any, the largest workspace of its tasks.
func (tr *training) plannedScratch() int64 {
	workers := len(tr.decision.Priced.Platform.Workers)
	piece := tr.plannedHighWater()[layout.ScratchArena] / int64(workers)
	var end int64
	for i, g := range tr.prog.Graphs {
		for w, list := range tr.decision.Graphs[i].Plan.Order {
			for _, task := range list {
				if bytes := workspace(g, task); bytes > 0 {
					end = max(end, int64(w)*piece+bytes)
				}
			}
		}
	}
	return end
}

// workspace is what the default variant of a task declares.
func workspace(g *dag.Graph, task dag.TaskID) int64 {
	k, _ := kernels.KernelByName(g.Tasks[task].Op)
	if k.Host {
		return 0
	}
	v := k.Default()
	if v.WorkspaceBytes == nil {
		return 0
	}
	return v.WorkspaceBytes(calls.SpecOf(&g.Tasks[task], func(b dag.BufferID) dag.Buffer { return g.Buffers[b] }))
}

// checkLive derives from the spans alone when every storage of the step arena is
// live, from the first start to the last end of the tasks of a step that touch it.
// Storages that share a byte are never live at once, and the live bytes never
// exceed the arena, nor does the sum over all arenas fall below the schedule's own
// peak.
func checkLive(t *testing.T, r run, l *layout.Layout) {
	t.Helper()
	g, lives := r.problem.Graph, stepLives(r)
	for _, x := range lives {
		for _, y := range lives {
			sharesBytes := x.storage != y.storage && l.Arena(x.storage) == layout.StepArena && l.Arena(y.storage) == layout.StepArena &&
				l.Offset(x.storage) < l.Offset(y.storage)+g.Buffers[y.storage].Bytes() && l.Offset(y.storage) < l.Offset(x.storage)+g.Buffers[x.storage].Bytes()
			if sharesBytes && x.from < y.to && y.from < x.to {
				t.Errorf("graph %q: %q of step %d and %q of step %d share bytes and are both live from %v to %v",
					g.Name, g.Buffers[x.storage].Name, x.step, g.Buffers[y.storage].Name, y.step, max(x.from, y.from), min(x.to, y.to))
			}
		}
	}
	for a := range layout.ScratchArena {
		if peak := peakOf(g, lives, func(b dag.BufferID) bool { return l.Arena(b) == a }); peak > l.ArenaBytes[a] || peak == 0 {
			t.Errorf("graph %q: %d bytes live in arena %v of %d", g.Name, peak, a, l.ArenaBytes[a])
		}
	}
	all := peakOf(g, lives, func(dag.BufferID) bool { return true })
	if host := r.problem.Platform.HostMemory(); r.schedule.PeakBytes[host] > all {
		t.Errorf("graph %q: the schedule's peak is %d bytes, whole storages have %d", g.Name, r.schedule.PeakBytes[host], all)
	}
}

// life is the time in which a storage holds what a step needs.
type life struct {
	storage  dag.BufferID
	step     int32
	from, to time.Duration
}

// stepLives are the lives of all storages in all steps. One that keeps its contents
// from step to step, or that no task writes, lives for the whole run.
func stepLives(r run) []life {
	g := r.problem.Graph
	written := make([]bool, len(g.Buffers))
	for i := range g.Tasks {
		for _, a := range g.Tasks[i].Accesses {
			written[g.Storage(a.Buffer)] = written[g.Storage(a.Buffer)] || a.Mode.Writes()
		}
	}
	type key struct {
		storage dag.BufferID
		step    int32
	}
	at := map[key]int{}
	var lives []life
	for _, s := range r.schedule.Spans {
		for _, a := range g.Tasks[s.Task].Accesses {
			x := life{g.Storage(a.Buffer), s.Step, s.Start, s.End}
			if g.Carried(x.storage) || !written[x.storage] {
				x.step, x.from, x.to = 0, 0, r.schedule.Makespan
			}
			k := key{x.storage, x.step}
			i, ok := at[k]
			if !ok {
				i = len(lives)
				at[k] = i
				lives = append(lives, x)
			}
			lives[i].from, lives[i].to = min(lives[i].from, x.from), max(lives[i].to, x.to)
		}
	}
	return lives
}

// peakOf is the largest number of bytes of chosen storages live at once. Lives of
// one storage in different steps that overlap, tile by tile, count once.
func peakOf(g *dag.Graph, lives []life, chosen func(dag.BufferID) bool) int64 {
	type change struct {
		at      time.Duration
		by      int
		storage dag.BufferID
	}
	var changes []change
	for _, x := range lives {
		if chosen(x.storage) {
			changes = append(changes, change{x.from, 1, x.storage}, change{x.to, -1, x.storage})
		}
	}
	// At one moment ends come first: what follows an end may start with it.
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	holders := make([]int, len(g.Buffers))
	var live, peak int64
	for _, c := range changes {
		before := holders[c.storage]
		holders[c.storage] += c.by
		switch {
		case before == 0:
			live += g.Buffers[c.storage].Bytes()
		case holders[c.storage] == 0:
			live -= g.Buffers[c.storage].Bytes()
		}
		peak = max(peak, live)
	}
	return peak
}
