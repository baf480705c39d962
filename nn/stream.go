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
	l.graph, err = l.graph.Retask(func(t dag.TaskID, task *dag.Task) {
		if of := (block{task.Labels.Stage, task.Labels.MicroBatch}); task.Placement == nil || task.Placement.Device != kernels.HostKind {
			if len(l.opt.Lowering.Stages) == 1 {
				of.batch = min(of.batch, 1)
			}
			if last, known := before[of]; known {
				task.After = append(task.After[:len(task.After):len(task.After)], last)
			}
			before[of] = t
		}
	})
	return err
}
