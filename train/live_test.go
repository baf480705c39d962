package train

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
)

// TestLive follows two epochs of 3 steps of 5 samples, a last one of 2 samples and 2 steps through the
// test set. They have 60, 24 and 13 operations: an epoch has 3·60 + 24 + 2·13 = 230.
func TestLive(t *testing.T) {
	graph := func(name string, batch int, flops float64) *dag.Graph {
		b := dag.NewBuilder(name)
		b.Buffer(dag.Buffer{Name: "step.index", Type: dag.Int32, Shape: []int{batch}, Role: dag.Input})
		b.Task(dag.Task{Name: name, Flops: flops})
		g := must.Get(b.Build())(t)
		return g
	}
	epoch := []dag.Segment{{Graph: 0, Steps: 3}, {Graph: 1, Steps: 1}, {Graph: 2, Steps: 2}}
	w := &Workload{Options: Options{Epochs: 2}, Program: &dag.Program{
		Graphs: []*dag.Graph{graph(nn.GraphTrain, 5, 60), graph(nn.GraphTrainTail, 2, 24), graph("evaluate", 7, 13)},
		Order:  append(epoch, epoch...)}}
	tr := &Trainer{}
	for _, c := range []struct {
		name    string
		at      Progress
		steps   int // of the piece
		step    int
		of      int
		samples int
		done    float64
		train   bool
		lossNow float64
	}{
		{"two steps", Progress{}, 2, 2, 4, 10, 120 / 460., true, 2},
		{"the third, after a checkpoint", Progress{Within: 2}, 1, 3, 4, 15, 180 / 460., true, 1},
		{"the short one", Progress{Segment: 1}, 1, 4, 4, 17, 204 / 460., true, 1},
		{"the test set", Progress{Segment: 2}, 2, 2, 2, 17, 230 / 460., false, 1},
		{"the next epoch", Progress{Epoch: 1}, 3, 3, 4, 32, 410 / 460., true, 3},
		{"one step again", Progress{Epoch: 1, Segment: 2, Within: 1}, 3, 2, 2, 32, 1, false, 3},
	} {
		tr.live.begin(w, &c.at)
		for step := range c.steps {
			tr.live.step(step, float64(step+1))
		}
		l := tr.Live()
		if l.Epoch != c.at.Epoch+1 || l.Epochs != 2 || l.Step != c.step || l.Steps != c.of || l.Samples != c.samples ||
			math.Abs(l.Done-c.done) > 1e-12 || l.Training != c.train || l.Loss != c.lossNow {
			t.Errorf("%s: %+v", c.name, l)
		}
	}
	if allocations := testing.AllocsPerRun(10, func() { tr.live.step(0, 1) }); allocations != 0 {
		t.Errorf("a step allocates %v times", allocations)
	}
}

// TestLiveTime: 7 s of training, 5 s on the test set and 2 s of the next epoch are 9 s of training.
func TestLiveTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		graphs := []*dag.Graph{must.Get(dag.NewBuilder(nn.GraphTrain).Build())(t), must.Get(dag.NewBuilder("evaluate").Build())(t)}
		w := &Workload{Options: Options{Epochs: 2}, Program: &dag.Program{Graphs: graphs, Order: []dag.Segment{{Steps: 1}, {Graph: 1, Steps: 1}, {Steps: 1}, {Graph: 1, Steps: 1}}}}
		tr := &Trainer{}
		for _, c := range []struct {
			at   Progress
			took time.Duration
		}{{Progress{}, 7 * time.Second}, {Progress{Segment: 1}, 5 * time.Second}, {Progress{Epoch: 1}, 2 * time.Second}} {
			tr.live.begin(w, &c.at)
			time.Sleep(c.took)
		}
		if got := tr.Live().Trained; got != 9*time.Second {
			t.Errorf("%v of training, want 9 s", got)
		}
	})
}
