package nn

import (
	"dahl/dag"
	"dahl/kernels"
)

// A device of a fold takes the tasks of a stage on a micro-batch one after the other in the order of the program, as a GPU does whose kernels all go to one stream. Otherwise
// gradients of weights would fill the gaps of a pipeline, as in P. Qi et al., "Zero bubble pipeline parallelism", ICLR 2024. Without a pipeline micro-batches follow each other, too.

// stream lets each task of a stage on a micro-batch follow the one before it, and so for the whole batch. Tasks of the host are left out.
func (l *lowerer) stream() (err error) {
	if !l.folds() {
		return nil
	}
	type block struct{ stage, batch int32 }
	before := map[block]dag.TaskID{}
	b := dag.NewBuilder(l.graph.Name)
	b.Grow(len(l.graph.Tasks))
	declareAll(b, l.graph)
	for t, task := range l.graph.Tasks {
		if of := (block{task.Labels.Stage, task.Labels.MicroBatch}); task.Placement == nil || task.Placement.Device != kernels.HostKind {
			if len(l.opt.Lowering.Stages) == 1 {
				of.batch = min(of.batch, 1)
			}
			if last, known := before[of]; known {
				task.After = append(task.After[:len(task.After):len(task.After)], last)
			}
			before[of] = dag.TaskID(t)
		}
		b.Task(task)
	}
	l.graph, err = b.Build()
	return err
}
