package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/dag"
	"dahl/execute"
	"dahl/execute/mpi"
	"dahl/plan"
	"dahl/platform"
	"dahl/train"
	"dahl/train/budget"
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
		size = n.Size
		if o := &w.Options; o.KeepEvery > 0 { // after a loss they go on from a checkpoint
			if !n.Outlives() {
				return cli.InputErrorf("--continue-on-loss over ranks takes Open MPI from 5.0 on and mpirun --with-ft ulfm; leave it out, and go on with --resume after a loss, with the nodes that are left in a platform file")
			}
			o.Checkpoint.Steps, o.Checkpoint.AtBegin, o.KeepEvery = cmp.Or(o.Checkpoint.Steps, o.KeepEvery), true, 0
		}
	}
	return cli.AsInput(execute.CheckRanks(w.Platform, size))
}

// streamTogether streams the data where some rank cannot hold them: all have one program.
func (w *workload) streamTogether(n *execute.Ranks) error {
	if n == nil {
		return nil
	}
	streams, err := n.Any(w.Options.Stream)
	if err == nil && streams && !w.Options.Stream {
		err = w.Stream()
	}
	w.opts.Stream = w.Options.Stream
	return err
}

// goOnWithout goes on from the last checkpoint with the ranks that are left after a loss.
func (f *executeFlags) goOnWithout(cmd *cobra.Command, progress io.Writer, o *flags.Options, cause error) error {
	left, err := f.ranks.Shrink()
	if err != nil {
		return fmt.Errorf("%v; it cannot go on without: %w", cause, err)
	}
	f.from, f.Resume = nil, f.Out.Dir
	if f.ranks.Rank == 0 {
		cli.LogTo(f.stderr)
		if f.from, err = reopen(f.Out.Dir, o, left); err == nil {
			defer f.from.dir.Close()
			slog.Warn("a rank was lost; the training goes on from the last checkpoint", "cause", cause, "devices", o.Devices, "policy", o.Policy, "after_step", f.from.progress.Steps)
		} else {
			err = fmt.Errorf("%v; it cannot go on without: %v", cause, err) // no input was bad
		}
	}
	if err := shareOptions(f.ranks, o, err); err != nil {
		return err
	}
	return runTraining(cmd.Context(), cmd.OutOrStdout(), progress, o, f)
}

// reopen opens a training that goes on with the nodes of some ranks. Options become the ones that it goes on with.
func reopen(dir string, o *flags.Options, left []int) (*interrupted, error) {
	in, err := openFrom(dir, o, nil, nil)
	if err != nil {
		return nil, err
	}
	if err = onNodes(o, left); err != nil {
		in.dir.Close()
	}
	return in, err
}

// onNodes leaves a training the devices of some of its nodes. A strategy with a number of devices has as many in proportion.
func onNodes(o *flags.Options, left []int) error {
	p, err := flags.ThisMachine(o)
	if err != nil {
		return err
	}
	nodes := execute.WorkingNodes(p)
	var devices []*platform.Device
	for i := range p.Devices {
		if d := &p.Devices[i]; slices.Contains(left, slices.Index(nodes, p.NodeOf(d.Memory))) {
			devices = append(devices, d)
		}
	}
	o.Devices, o.Workers, o.Plan = platform.List(devices), 0, ""
	name, number, found := strings.Cut(o.Policy, ":")
	if !found {
		return nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n*len(left)%len(nodes) > 0 {
		return cli.InputErrorf("--policy %s is for another number of devices; go on with --resume, --devices %s and a policy for these", o.Policy, o.Devices)
	}
	o.Recorded = nil // it names lost devices
	if o.Policy = fmt.Sprintf("%s:%d", name, n*len(left)/len(nodes)); n*len(left) == len(nodes) {
		o.Policy = flags.ListPolicy
	}
	return nil
}

// ranksText says how many ranks train, and within what time their clocks were aligned with the clock of rank 0.
func (w *workload) ranksText() string {
	n := w.Options.Ranks
	if n == nil || n.Size == 1 { // no other rank is there, or all others were lost
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
	if err := w.agree(ctx, r.Runner); err != nil {
		return err
	}
	meters := w.startMeters()
	return r.Serve(func() any { return w.rankMeasured(r.Runner, meters) })
}

// startMeters starts the meters of the devices that this process uses.
func (w *workload) startMeters() *train.Meters {
	own := *w.Platform
	if n := w.Options.Ranks; n != nil {
		node := execute.WorkingNodes(w.Platform)[n.Rank]
		own.Devices = slices.DeleteFunc(slices.Clone(own.Devices), func(d platform.Device) bool { return own.NodeOf(d.Memory) != node })
	}
	return flags.StartMeters(&own)
}

// rankMeasured ends the meters of a rank, and returns what it has measured.
func (w *workload) rankMeasured(r *execute.Runner, meters *train.Meters) plan.RankMeasured {
	n := w.Options.Ranks
	machine, _ := os.Hostname() // a machine without a name has none here
	m := plan.RankMeasured{Node: w.Platform.Nodes[execute.WorkingNodes(w.Platform)[n.Rank]].Name, Machine: machine, Seconds: r.Spent().Seconds(),
		ClockErrorS: n.ClockError.Seconds(), PeakBytes: budget.PeakBytes(), SharesMeters: !n.FirstOfMachine()}
	if n.Rank == 0 {
		m.ClockErrorS = 0
	}
	var err error
	if m.Readings, err = meters.Stop(); err != nil {
		slog.Warn("an energy meter failed; its joules are modelled", "node", m.Node, "error", err)
	}
	m.Meters = meters.MeterStates()
	m.KeepOwn()
	return m
}

// gather adds what the other ranks have measured. A training that has failed has no other ranks any more.
func (t *trainer) gather(meters *train.Meters, failed error) {
	own := t.w.rankMeasured(t.Runner, meters)
	t.measured = []plan.RankMeasured{own}
	reports, err := t.w.Options.Ranks.Reports()
	for _, text := range reports {
		var m plan.RankMeasured
		err = cmp.Or(err, json.Unmarshal(text, &m))
		t.measured = append(t.measured, m)
	}
	if err != nil && failed == nil {
		slog.Warn("what other ranks have measured is missing", "error", err)
	}
	t.Readings = plan.ReadingsOf(t.measured)
	if len(t.measured) < t.w.Options.Ranks.Size {
		t.Readings = nil // of one node is not of all
	}
	t.MeterStates = own.Meters
}
