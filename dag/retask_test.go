package dag_test

import (
	"testing"

	"dahl/dag"
	"dahl/must"
)

// TestRetask: a graph with other labels and orders equals one that was built with them.
func TestRetask(t *testing.T) {
	build := func(stage int32, after []dag.TaskID) *dag.Graph {
		b := dag.NewBuilder("retasked")
		var halves [2]dag.BufferID
		for i, name := range []string{"x", "y"} {
			halves[i] = b.Buffer(dag.Buffer{Name: name, Shape: []int{3, 5}, Type: dag.Float32})
		}
		for i, name := range []string{"first", "second", "third"} {
			task := dag.Task{Name: name, Op: "op", Labels: dag.Labels{Stage: stage},
				Accesses: []dag.Access{{Region: dag.Region{Buffer: halves[i%2], Box: dag.Box{{Lo: i, Hi: i + 1}, {Lo: 0, Hi: 5}}}, Mode: dag.Write}}}
			if i == 2 {
				task.After = after
			}
			b.Task(task)
		}
		return must.Get(b.Build())(t)
	}
	plain, want := build(0, nil), build(7, []dag.TaskID{1})
	got := must.Get(plain.Retask(func(id dag.TaskID, task *dag.Task) {
		task.Labels.Stage = 7
		if id == 2 {
			task.After = []dag.TaskID{1}
		}
	}))(t)
	if got.Hash() != want.Hash() || plain.Hash() == got.Hash() {
		t.Errorf("hash %s, want %s; before %s", got.Hash(), want.Hash(), plain.Hash())
	}
	must.Do(t, got.Check())
	if p := got.Preds(2); len(p) != 1 || p[0] != 1 || len(plain.Preds(2)) != 0 {
		t.Errorf("the third task follows %v, and before %v", p, plain.Preds(2))
	}
	if _, err := plain.Retask(func(id dag.TaskID, task *dag.Task) { task.After = []dag.TaskID{id} }); err == nil {
		t.Error("a task follows itself")
	}
}
