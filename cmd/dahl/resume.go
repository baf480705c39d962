package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/rundir"
	"dahl/train"
	"dahl/train/metrics"
)

// interrupted is a training that goes on.
type interrupted struct {
	dir        *rundir.Dir
	manifest   *record.Manifest  // as it began
	checkpoint *train.Checkpoint // nil means that the training goes on, and has its state
	progress   train.Progress    // of the checkpoint
	kept       kept
	steps      []metrics.Step  // until then
	epochs     []metrics.Epoch // likewise
}

// openInterrupted opens the directory of an interrupted training. The command takes over the
// options of that training, except for the given flags.
func openInterrupted(cmd *cobra.Command, dir string, o *flags.Options) (*interrupted, error) {
	given := map[string]string{}
	var refused error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if given[f.Name] = f.Value.String(); !slices.Contains(record.ResumeFlags, f.Name) && refused == nil {
			refused = cli.InputErrorf("--%s is fixed from the start of a training; leave it away to resume %s, or begin another", f.Name, dir)
		}
	})
	if refused != nil {
		return nil, refused
	}
	return openFrom(dir, o, cmd, given)
}

// openFrom opens the directory of an interrupted training, with the flags that are given.
func openFrom(dir string, o *flags.Options, cmd *cobra.Command, given map[string]string) (*interrupted, error) {
	in := &interrupted{manifest: new(record.Manifest)}
	var err error
	if in.dir, err = rundir.Resume(dir, in.manifest, record.StepsFile, record.EpochsFile); err != nil {
		return nil, cli.AsInput(err)
	}
	if err = in.load(o, cmd, given); err != nil {
		in.dir.Close()
		return nil, err
	}
	return in, nil
}

func (in *interrupted) load(o *flags.Options, cmd *cobra.Command, given map[string]string) error {
	asked := *o
	*o = in.manifest.Options
	o.Args = in.manifest.Args
	for name, value := range given {
		switch name {
		case "devices": // its value is a list, and Set would append to it
			o.Devices, o.Workers, o.Plan = asked.Devices, 0, ""
		case "workers":
			o.Devices, o.Workers, o.Plan = "", asked.Workers, ""
		case "clock": // likewise
			o.Clocks = asked.Clocks
		case "policy":
			o.Policy, o.Plan = asked.Policy, ""
		default:
			if err := cmd.Flags().Set(name, value); err != nil {
				return cli.AsInput(err)
			}
		}
	}
	if _, other := given["lowering"]; !other {
		o.Recorded = in.manifest.Lowering
	}
	for _, file := range in.manifest.Inputs {
		if file.Name != o.Model {
			continue
		}
		sum, err := cli.HashFile(file.Name)
		if err == nil && sum != file.SHA256 {
			err = cli.InputErrorf("%s has changed since the training began", file.Name)
		}
		if err != nil {
			return err
		}
	}
	steps, err := in.dir.Checkpoints()
	if err != nil {
		return err
	}
	var damaged []error
	for _, step := range steps {
		if err = in.read(step); err != nil {
			damaged = append(damaged, err)
			continue
		}
		for i, err := range damaged {
			slog.Warn("a checkpoint cannot be read; the one before it is taken", "after_step", steps[i], "error", err)
		}
		if done := in.progress.Epoch; in.dir.WasFinished() && done >= o.Epochs {
			return cli.InputErrorf("%s: all %d epochs are done; to go on, ask for more with --epochs", in.dir.Path(), done)
		}
		return nil
	}
	return cli.InputErrorf("%s: none of the %d checkpoints can be read; begin the training anew: %w", in.dir.Path(), len(steps), err)
}

// read reads the checkpoint after a step, and the rows of before.
func (in *interrupted) read(step int) error {
	f, err := in.dir.OpenCheckpoint(step)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if in.checkpoint, err = train.DecodeCheckpoint(f, info.Size()); err != nil {
		return err
	}
	in.progress, in.kept = in.checkpoint.Progress, kept{}
	if err = json.Unmarshal(in.checkpoint.Note, &in.kept); err == nil {
		in.steps, err = rowsOf(in.dir, record.StepsFile, &in.kept.Steps, metrics.ReadSteps)
	}
	if err == nil {
		in.epochs, err = rowsOf(in.dir, record.EpochsFile, &in.kept.Epochs, metrics.ReadEpochs)
	}
	return err
}

// resume makes the trainer that goes on, with the steps and epochs of before.
func (in *interrupted) resume(w *workload) (*train.Trainer, error) {
	t, err := w.Resume(in.checkpoint)
	if err != nil {
		return nil, err
	}
	t.Steps, t.Epochs = in.steps, in.epochs
	in.checkpoint = nil
	return t, nil
}

// follows refuses a training that is not the one of the checkpoint.
func (in *interrupted) follows(now *record.Manifest) error {
	what := in.kept.Recipe.Difference(now.Recipe())
	if what == "" {
		return nil
	}
	return cli.InputErrorf("%s cannot go on: %s", in.dir.Path(), what)
}

// since says where the training goes on, and whether it does so in the same way.
func (in *interrupted) since(now *record.Manifest) record.Resumption {
	was, is := &in.kept.Recipe, now.Recipe()
	return record.Resumption{AfterStep: in.progress.Steps, Alike: was.Graphs == is.Graphs && was.Variants == is.Variants}
}

// print says that the training goes on.
func (in *interrupted) print(out io.Writer, now *record.Manifest) {
	fmt.Fprintf(out, "resumed   after step %d, in epoch %d\n", in.progress.Steps, in.progress.Epoch+1)
	var what []string
	was, is := &in.kept.Recipe, now.Recipe()
	if is.Graphs != was.Graphs {
		what = append(what, "another task graph")
	}
	if is.Variants != was.Variants {
		what = append(what, "other kernels")
	}
	if what != nil {
		slog.Warn("the training goes on with " + strings.Join(what, " and ") + ": its weights may differ in their last bits from those of one that nothing disturbed")
	}
}
