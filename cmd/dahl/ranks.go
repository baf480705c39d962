package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/dag"
	"dahl/execute"
	"dahl/execute/mpi"
)

// withMPI is the program that loads MPI libraries. It lies in the directory of this one.
const withMPI = "dahl-mpi"

// useMPI replaces this program by the one with MPI in its directory. The default program loads no libraries, so that it needs none.
func useMPI(place mpi.Launch) error {
	if mpi.Loads {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	with := filepath.Join(filepath.Dir(self), withMPI)
	if _, err := os.Stat(with); err != nil {
		_, err = mpi.Open(place)
		return err
	}
	return syscall.Exec(with, append([]string{with}, os.Args[1:]...), os.Environ())
}

// joinRanks makes this process one of those that a launcher of MPI has started. Without a launcher, or with one process, there are none.
func joinRanks() (*execute.Ranks, error) {
	place, launched := mpi.Launched()
	if !launched || place.Size == 1 {
		return nil, nil
	}
	if err := useMPI(place); err != nil {
		return nil, once(place, err)
	}
	n, err := execute.Join(place, mpi.Open)
	return n, once(place, err)
}

// once is an error of all ranks of a machine. The first of them reports it.
func once(place mpi.Launch, err error) error {
	if err != nil && place.LocalRank > 0 {
		return execute.ErrReported
	}
	return cli.AsInput(err)
}

// shareOptions gives all ranks the options of a training that goes on: rank 0 alone opens its directory.
func shareOptions(n *execute.Ranks, o *flags.Options, failed error) error {
	if n == nil {
		return failed
	}
	all := struct {
		Options  flags.Options
		Recorded *dag.Lowering
	}{*o, o.Recorded}
	err := n.Share(&all, failed)
	if n.Rank > 0 && err == nil {
		args := o.Args
		*o = all.Options
		o.Recorded, o.Args = all.Recorded, args
	}
	return err
}

// checkRanks refuses another number of ranks than the platform has nodes, and what ranks cannot do.
func (w *workload) checkRanks() error {
	size := 1
	if n := w.Options.Ranks; n != nil {
		if size = n.Size; w.Options.KeepEvery > 0 {
			return cli.InputErrorf("--continue-on-loss goes on in one process only; over ranks leave it out, and go on with --resume after a loss, with the nodes that are left in a platform file")
		}
	}
	return cli.AsInput(execute.CheckRanks(w.Platform, size))
}

// ranksText says how many ranks train, and within what time their clocks were aligned with the clock of rank 0.
func (w *workload) ranksText() string {
	n := w.Options.Ranks
	if n == nil {
		return ""
	}
	return fmt.Sprintf("; %d ranks, of which the clocks were aligned within %v", n.Size, n.ClockError.Round(time.Microsecond/10))
}

// agree refuses ranks that would not do their parts of one training.
func (w *workload) agree(ctx context.Context, r *execute.Runner) error {
	n := w.Options.Ranks
	if n == nil {
		return nil
	}
	facts, err := w.facts(ctx, r)
	return cli.AsInput(n.Agree(facts, err))
}

// programFact is the program that this process runs.
func programFact() (execute.Fact, error) {
	self, err := os.Executable()
	if err != nil {
		return execute.Fact{}, err
	}
	hash, err := cli.HashFile(self)
	return execute.Fact{What: "program", Hash: hash}, err
}

func (w *workload) facts(ctx context.Context, r *execute.Runner) ([]execute.Fact, error) {
	program, err := programFact()
	if err != nil {
		return nil, err
	}
	m, err := (&trainer{w: w}).begins(ctx, "execute")
	if err != nil {
		return nil, err
	}
	facts := []execute.Fact{program}
	add := func(what, hash string) { facts = append(facts, execute.Fact{What: what, Hash: hash}) }
	add("platform", m.Platform.SHA256)
	recipe := m.Recipe()
	add("network", recipe.Graphs)
	add("choice of kernels", recipe.Variants)
	add("plan", r.PlanHash())
	add("data set", m.Data.SHA256)
	add("set of options", record.HashOf(recipe.Fixed))
	return facts, nil
}

// serve does the part of a rank other than rank 0.
func (w *workload) serve(ctx context.Context) error {
	if err := w.checkRanks(); err != nil {
		return err
	}
	r, err := w.Serve()
	if err != nil {
		return err
	}
	defer r.Close()
	if err := w.agree(ctx, r); err != nil {
		return err
	}
	return r.Serve()
}
