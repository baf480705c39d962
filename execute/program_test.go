package execute

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
)

// The network of the tests: dense, ReLU, dense, softmax cross-entropy and SGD.
// Extents are different primes.
const (
	testSamples  = 13 // of the data set
	testBatch    = 7
	testTile     = 2 // tiles of 2, 2, 2 and 1 samples
	testFeatures = 11
	testHidden   = 5
	testClasses  = 3
)

// net builds a step of the test network.
type net struct {
	b    *dag.Builder
	bufs map[string]dag.BufferID
}

func (n *net) buffer(name string, t dag.DType, role dag.Role, shape ...int) {
	n.bufs[name] = n.b.Buffer(dag.Buffer{Name: name, Type: t, Role: role, Shape: shape})
}

// access names a buffer, or rows lo to hi of it.
func (n *net) access(mode dag.Mode, name string, rows ...int) dag.Access {
	id, ok := n.bufs[name]
	if !ok {
		panic("no buffer " + name)
	}
	a := dag.Access{Region: dag.Region{Buffer: id}, Mode: mode}
	if len(rows) == 2 {
		for _, e := range n.b.BufferAt(id).Shape {
			a.Box = append(a.Box, dag.Range{Lo: 0, Hi: e})
		}
		a.Box[0] = dag.Range{Lo: rows[0], Hi: rows[1]}
	}
	return a
}

func (n *net) task(op, name string, params dag.Params, accesses ...dag.Access) {
	kernels.Add(n.b, dag.Task{Name: name, Op: op, Type: dag.Float32, Params: params, Accesses: accesses})
}

func (n *net) data() {
	n.buffer("images", dag.Uint8, dag.Input, testSamples, testFeatures)
	n.buffer("labels", dag.Int32, dag.Input, testSamples)
	n.buffer("index", dag.Int32, dag.Input, testBatch)
	n.buffer("w1", dag.Float32, dag.Parameter, testHidden, testFeatures)
	n.buffer("b1", dag.Float32, dag.Parameter, testHidden)
	n.buffer("w2", dag.Float32, dag.Parameter, testClasses, testHidden)
	n.buffer("b2", dag.Float32, dag.Parameter, testClasses)
	n.buffer("x", dag.Float32, dag.Activation, testBatch, testFeatures)
	n.buffer("y", dag.Int32, dag.Activation, testBatch)
	n.buffer("h", dag.Float32, dag.Activation, testBatch, testHidden)
	n.buffer("a", dag.Float32, dag.Activation, testBatch, testHidden)
	n.buffer("mask", dag.Uint8, dag.Activation, testBatch, testHidden)
	n.buffer("z", dag.Float32, dag.Activation, testBatch, testClasses)
	n.buffer("losses", dag.Float32, dag.Activation, testBatch)
	n.buffer("hits", dag.Uint8, dag.Activation, testBatch)
	n.buffer("loss", dag.Float32, dag.Activation, 1)
	n.buffer("correct", dag.Int32, dag.Activation, 1)
}

// forward is the tasks of a tile up to the logits.
func (n *net) forward(lo, hi int) {
	at := fmt.Sprintf("[%d:%d]", lo, hi)
	r, w := dag.Read, dag.Write
	n.task("load", "load"+at, dag.Params{{Name: "divisor", Value: 255}}, n.access(w, "x", lo, hi), n.access(r, "images"), n.access(r, "index", lo, hi))
	n.task("load.labels", "labels"+at, nil, n.access(w, "y", lo, hi), n.access(r, "labels"), n.access(r, "index", lo, hi))
	n.task("dense", "fc1"+at, nil, n.access(w, "h", lo, hi), n.access(r, "x", lo, hi), n.access(r, "w1"), n.access(r, "b1"))
	n.task("relu", "relu1"+at, nil, n.access(w, "a", lo, hi), n.access(w, "mask", lo, hi), n.access(r, "h", lo, hi))
	n.task("dense", "fc2"+at, nil, n.access(w, "z", lo, hi), n.access(r, "a", lo, hi), n.access(r, "w2"), n.access(r, "b2"))
}

// report is the tasks that bring loss and hits to the caller.
func (n *net) report() {
	n.task("mean", "loss", nil, n.access(dag.Write, "loss"), n.access(dag.Read, "losses"))
	n.task("count", "correct", nil, n.access(dag.Write, "correct"), n.access(dag.Read, "hits"))
	n.task("fetch", "fetch", nil, n.access(dag.Read, "loss"), n.access(dag.Read, "correct"))
}

func tiles(visit func(lo, hi int)) {
	for lo := 0; lo < testBatch; lo += testTile {
		visit(lo, min(lo+testTile, testBatch))
	}
}

func trainGraph(t testing.TB) *dag.Graph {
	t.Helper()
	n := &net{b: dag.NewBuilder("train"), bufs: map[string]dag.BufferID{}}
	n.data()
	n.buffer("hyper", dag.Float64, dag.Input, 2)
	for _, g := range []struct {
		name  string
		shape []int
	}{{"g.z", []int{testBatch, testClasses}}, {"g.a", []int{testBatch, testHidden}}, {"g.h", []int{testBatch, testHidden}}} {
		n.buffer(g.name, dag.Float32, dag.Gradient, g.shape...)
	}
	params := []string{"w1", "b1", "w2", "b2"}
	for _, p := range params {
		n.buffer("g."+p, dag.Float32, dag.Gradient, n.b.BufferAt(n.bufs[p]).Shape...)
		n.buffer("v."+p, dag.Float32, dag.State, n.b.BufferAt(n.bufs[p]).Shape...)
	}
	r, w := dag.Read, dag.Write
	n.task("feed", "feed", nil, n.access(w, "index"), n.access(w, "hyper"))
	tiles(func(lo, hi int) {
		at := fmt.Sprintf("[%d:%d]", lo, hi)
		n.forward(lo, hi)
		n.task("softmax_xent", "xent"+at, dag.Params{{Name: "batch", Value: testBatch}, {Name: "smoothing", Value: 0}}, n.access(w, "g.z", lo, hi), n.access(w, "losses", lo, hi),
			n.access(w, "hits", lo, hi), n.access(r, "z", lo, hi), n.access(r, "y", lo, hi))
		n.task("dense.dx", "fc2.dx"+at, nil, n.access(w, "g.a", lo, hi), n.access(r, "g.z", lo, hi), n.access(r, "w2"))
		n.task("relu.dx", "relu1.dx"+at, nil, n.access(w, "g.h", lo, hi), n.access(r, "g.a", lo, hi), n.access(r, "mask", lo, hi))
		sum := dag.ReadWrite
		if lo == 0 {
			sum = w
		}
		n.task("dense.dw", "fc2.dw"+at, nil, n.access(sum, "g.w2"), n.access(r, "g.z", lo, hi), n.access(r, "a", lo, hi), n.access(sum, "g.b2"))
		n.task("dense.dw", "fc1.dw"+at, nil, n.access(sum, "g.w1"), n.access(r, "g.h", lo, hi), n.access(r, "x", lo, hi), n.access(sum, "g.b1"))
	})
	n.report()
	sgd := dag.Params{{Name: "momentum", Value: 0.5}, {Name: "nesterov", Value: 0}, {Name: "weight_decay", Value: 0}}
	for _, p := range params {
		n.task("sgd", "sgd."+p, sgd, n.access(dag.ReadWrite, p), n.access(r, "g."+p), n.access(r, "hyper"), n.access(dag.ReadWrite, "v."+p))
	}
	return must.Get(n.b.Build())(t)
}

func evalGraph(t testing.TB) *dag.Graph {
	t.Helper()
	n := &net{b: dag.NewBuilder("eval"), bufs: map[string]dag.BufferID{}}
	n.data()
	n.task("feed", "feed", nil, n.access(dag.Write, "index"))
	n.forward(0, testBatch)
	n.task("softmax_xent.eval", "xent", dag.Params{{Name: "smoothing", Value: 0}}, n.access(dag.Write, "losses"), n.access(dag.Write, "hits"), n.access(dag.Read, "z"), n.access(dag.Read, "y"))
	n.report()
	return must.Get(n.b.Build())(t)
}

func testProgram(t testing.TB) *dag.Program {
	return &dag.Program{Name: "test", Graphs: []*dag.Graph{trainGraph(t), evalGraph(t)}}
}

// machine is a platform of a number of cores and one memory without a limit.
func machine(t testing.TB, cores int) *platform.Platform { return node(t, cores, 0) }

// testHooks feed the samples in turn and keep the losses.
func testHooks(losses *[]float32) map[string]Hook {
	return map[string]Hook{
		"feed": func(step int, call *calls.Call) error {
			for i := range testBatch {
				calls.Data[int32](&call.Args[0])[i] = int32((step*testBatch + i) % testSamples)
			}
			if len(call.Args) > 1 {
				copy(calls.Data[float64](&call.Args[1]), []float64{0.125, float64(step + 1)})
			}
			return nil
		},
		"fetch": func(_ int, call *calls.Call) error {
			if losses != nil {
				*losses = append(*losses, calls.Data[float32](&call.Args[0])[0])
			}
			return nil
		},
	}
}

// initialise fills data and parameters.
func initialise(r *Runner) {
	rng := rand.New(rand.NewPCG(3, 5))
	for i := range r.Bytes("images") {
		r.Bytes("images")[i] = uint8(rng.IntN(256))
	}
	rng = rand.New(rand.NewPCG(3, 6)) // a runner may lack one of them
	labels := r.Int32s("labels")
	for i := range labels {
		labels[i] = int32(rng.IntN(testClasses))
	}
	rng = rand.New(rand.NewPCG(3, 7))
	for _, p := range []string{"w1", "b1", "w2", "b2"} {
		w := r.Float32s(p)
		for i := range w {
			w[i] = rng.Float32() - 0.5
		}
	}
}

// randomPlan puts the tasks on random workers, in the order of a random
// topological sort.
func randomPlan(g *dag.Graph, workers int, seed uint64) *schedule.Plan {
	rng := rand.New(rand.NewPCG(seed, 11))
	plan := &schedule.Plan{Policy: "random", Order: make([][]dag.TaskID, workers)}
	left := make([]int, len(g.Tasks))
	var ready []dag.TaskID
	for t := range g.Tasks {
		left[t] = len(g.Preds(dag.TaskID(t)))
		if left[t] == 0 {
			ready = append(ready, dag.TaskID(t))
		}
	}
	for len(ready) > 0 {
		i := rng.IntN(len(ready))
		t := ready[i]
		ready[i] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		w := rng.IntN(workers)
		plan.Order[w] = append(plan.Order[w], t)
		for _, s := range g.Succs(t) {
			if left[s]--; left[s] == 0 {
				ready = append(ready, dag.TaskID(s))
			}
		}
	}
	return plan
}

func randomPlans(p *dag.Program, workers int, seed uint64) []*schedule.Plan {
	var plans []*schedule.Plan
	for _, g := range p.Graphs {
		plans = append(plans, randomPlan(g, workers, seed))
	}
	return plans
}

// newRunner is New with the test network's data in place.
func newRunner(t testing.TB, prog *dag.Program, opt how) *Runner {
	t.Helper()
	r := must.Get(newOn(prog, opt))(t)
	t.Cleanup(r.Close)
	initialise(r)
	return r
}

// checkSpans compares a schedule with the graph's own orders: every instance
// once, never before its predecessors' ends, one task at a time on a worker.
func checkSpans(t *testing.T, s *schedule.Schedule, g *dag.Graph) {
	t.Helper()
	type key struct {
		task dag.TaskID
		step int32
	}
	at := map[key]schedule.Span{}
	for _, sp := range s.Spans {
		at[key{sp.Task, sp.Step}] = sp
	}
	if len(at) != len(s.Spans) || len(at) != len(g.Tasks)*s.Steps {
		t.Fatalf("%d spans of %d instances, want %d", len(s.Spans), len(at), len(g.Tasks)*s.Steps)
	}
	busy := map[platform.WorkerID]int64{}
	for _, sp := range s.Spans {
		after := func(preds []int32, step int32) {
			for _, p := range preds {
				if q, ok := at[key{dag.TaskID(p), step}]; ok && q.End > sp.Start {
					t.Errorf("step %d: %s starts at %v, before %s of step %d ends at %v", sp.Step, g.Tasks[sp.Task].Name, sp.Start, g.Tasks[p].Name, step, q.End)
				}
			}
		}
		for back := range g.Reach() + 1 {
			for _, preds := range g.PredsBack(sp.Task, back) {
				after(preds, sp.Step-back)
			}
		}
		if sp.Ready > sp.Start || sp.End < sp.Start || int64(sp.Start) < busy[sp.Worker] {
			t.Errorf("span %+v: ready, start and end are not in order, or worker busy until %d", sp, busy[sp.Worker])
		}
		busy[sp.Worker] = int64(sp.End)
	}
}

func finite(x float32) bool { return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) }
