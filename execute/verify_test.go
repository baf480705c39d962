package execute

import (
	"errors"
	"hash/maphash"

	"dahl/dag"
	"dahl/kernels/calls"
)

var errReadChanged = errors.New("an operand that it only reads changed while it ran")

// verifyReads makes every task of a cpu worker fail if its read-only operands change while it runs: a
// kernel writes where it must not, or an order is missing.
func verifyReads(r *Runner) {
	seed := maphash.MakeSeed()
	for _, c := range r.graphs {
		for t := range c.tasks {
			bound := &c.tasks[t]
			checked := func(body func() error) error {
				before := sumOfReads(seed, c.graph, dag.TaskID(t), bound.call.Args)
				if err := body(); err != nil {
					return err
				}
				if sumOfReads(seed, c.graph, dag.TaskID(t), bound.call.Args) != before {
					return errReadChanged
				}
				return nil
			}
			if hook := bound.hook; hook != nil {
				bound.hook = func(step int, args []calls.Arg) error {
					return checked(func() error { return hook(step, args) })
				}
			}
			for d, run := range bound.run {
				if run == nil {
					continue
				}
				bound.run[d] = func(call *calls.Call) {
					if err := checked(func() error { run(call); return nil }); err != nil {
						panic(err)
					}
				}
			}
		}
	}
}

// sumOfReads is a checksum of the elements that a task may only read.
func sumOfReads(seed maphash.Seed, g *dag.Graph, t dag.TaskID, args []calls.Arg) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range args {
		if args[i].Mode == dag.Read {
			size := g.Buffers[g.Tasks[t].Accesses[i].Buffer].Type.SizeBytes()
			eachRow(&args[i], int(size), func(row []byte) { h.Write(row) })
		}
	}
	return h.Sum64()
}
