package nn

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"dahl/dag"
)

// pass is one step of a lowering. It goes on from the results of the passes before it.
type pass struct {
	name string
	run  func(*lowerer) error
}

// passes lists the passes in their order.
var passes = []pass{
	{"group", (*lowerer).group},         // layers that one kind of task computes
	{"tile", (*lowerer).tile},           // tasks of each micro-batch, and the updates
	{"expand", (*lowerer).expand},       // sums over accumulators in a fixed order
	{"stage", (*lowerer).stage},         // devices of the stages of a pipeline
	{"stash", (*lowerer).stash},         // older weights for mini-batches in a pipeline
	{"recompute", (*lowerer).recompute}, // tasks that run twice, to save memory
	{"stream", (*lowerer).stream},       // the order of tasks on devices of a fold
	{"once", (*lowerer).runOnce},        // tasks that need not run in every step of an inference
}

// Passes names the passes of [Model.Lower] in their order.
func Passes() (names []string) {
	for _, p := range passes {
		names = append(names, p.name)
	}
	return names
}

// Lowered is the state of a lowering after a pass.
type Lowered struct {
	Name   string     // of the graph
	Groups [][]*Stage // the layers of each group
	Graph  *dag.Graph // Nil means that there are no tasks yet.
}

func (l *lowerer) state() *Lowered {
	s := &Lowered{Name: l.opt.Name, Graph: l.graph}
	for _, g := range l.groups {
		var stages []*Stage
		for _, stage := range g.stages {
			stages = append(stages, &l.m.Stages[stage])
		}
		s.Groups = append(s.Groups, stages)
	}
	return s
}

// Dump writes the groups, or the graph once there is one, as text.
func (s *Lowered) Dump(out io.Writer) error {
	if s.Graph != nil {
		return s.Graph.WriteText(out)
	}
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "graph %s\n", s.Name)
	for _, group := range s.Groups {
		var names []string
		for _, stage := range group {
			names = append(names, stage.Name)
		}
		fmt.Fprintf(w, "  %s\n", strings.Join(names, " + "))
	}
	return w.Flush()
}

func (l *lowerer) group() error {
	if slices.ContainsFunc(l.opt.Lowering.Stages, func(s dag.Stage) bool { return s.Shared() }) {
		l.cutShares()
	}
	l.groups = l.m.groupsOf(&l.opt.Lowering, l.opt.Train, l.opt.Unfused)
	return nil
}

func (l *lowerer) tile() (err error) {
	if l.stashes() {
		l.graph, err = l.miniBatches()
		return err
	}
	l.b = dag.NewBuilder(l.opt.Name)
	for range l.groups {
		l.learned = append(l.learned, &learned{})
	}
	l.fillBuckets()
	for _, l.now = range l.opt.microBatches() {
		l.addMicroBatch()
	}
	if l.opt.After == nil { // nobody looks at the graph before it is expanded
		return l.b.Err()
	}
	l.graph, err = l.b.Build()
	return err
}

func (l *lowerer) expand() (err error) {
	if l.graph == nil {
		l.graph, err = l.b.BuildExpanded(l.summing)
	} else {
		l.graph, err = dag.ExpandShared(l.graph, l.summing)
	}
	return err
}

func (l *lowerer) recompute() (err error) {
	l.graph, err = recompute(l.graph, &l.opt.Lowering)
	return err
}

func (l *lowerer) runOnce() (err error) {
	if l.opt.Prepared {
		l.once, l.graph, err = l.graph.Once(GraphPrepare)
	}
	return err
}
