package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/dag"
	"dahl/execute"
	"dahl/nn"
	"dahl/rundir"
	"dahl/train"
	"dahl/train/peer"
)

// manifest says how a run directory came to be, completely enough to repeat it.
// It holds no times and no output path, so that equal runs of the simulator
// give equal files.
type manifest struct {
	rundir.Head

	Build   cli.Build `json:"build"`
	Command string    `json:"command"` // subcommand
	Args    []string  `json:"args"`    // command line without the program and --out
	Host    cli.Host  `json:"host"`

	Options  flags.Options       `json:"options"`
	Model    string              `json:"model,omitempty"`
	Platform cli.Identity        `json:"platform"`
	Graphs   []cli.Identity      `json:"graphs"`
	Lowering *dag.Lowering       `json:"lowering,omitempty"`
	Chosen   *chosenDevices      `json:"chosen_devices,omitempty"`
	Variants []string            `json:"variants,omitempty"` // "device op type shape: variant", sorted
	Inputs   []cli.Identity      `json:"inputs,omitempty"`   // files that the options name, the platform excepted
	Data     *cli.Identity       `json:"data,omitempty"`     // what was trained and tested on
	GPUs     []train.DeviceState `json:"gpus,omitempty"`     // of an executed run, as it began

	Program *peer.Versions `json:"program,omitempty"` // that trained, where it is not this one

	MachineClocks *machineClocks `json:"machine_clocks,omitempty"` // of an executed run

	Issue *execute.Issue `json:"issue,omitempty"` // of a training step to devices, where its tasks are not timed; a plan's

	Losses  []train.DeviceLoss `json:"losses,omitempty"`  // what it went on without
	Resumed []resumption       `json:"resumed,omitempty"` // where it went on after interruptions

	// Interrupted says that a signal ended the search for the plan, which is the best until then.
	Interrupted bool `json:"interrupted,omitempty"`

	WeightsHash string `json:"weights_sha256,omitempty"` // after training
	FinalLoss   number `json:"final_loss,omitempty"`

	// Diverged is the first loss that was NaN or infinite, which ends a training that is not
	// told to go on.
	Diverged *train.Divergence `json:"diverged,omitempty"`
}

// readManifest reads the manifest of a run directory.
func readManifest(dir string) (*manifest, error) {
	m := new(manifest)
	return m, cli.AsInput(rundir.Open(dir, m))
}

// createRun begins the directory of a run. An input that lies in it is refused, since the run
// takes its place and could not be repeated.
func createRun(dir string, m *manifest) (*rundir.Dir, error) {
	for _, in := range append(m.Inputs[:len(m.Inputs):len(m.Inputs)], cli.Identity{Name: m.Options.Platform}) {
		if in.Name != "" && cli.LiesIn(in.Name, dir) {
			return nil, cli.InputErrorf("%s is read by this run and lies in the directory that it replaces; copy it elsewhere, or name another directory than %s with --out", in.Name, dir)
		}
	}
	d, err := rundir.Create(dir, m)
	return d, cli.AsInput(err)
}

// extendRun adds files to a finished run.
func extendRun(dir string, add func(*rundir.Dir) error) error {
	m := new(manifest)
	d, err := rundir.Extend(dir, m)
	if err != nil {
		return cli.AsInput(err)
	}
	defer d.Close()
	if err := add(d); err != nil {
		return err
	}
	_, err = d.Commit(m)
	return err
}

// ended reports whether a loss that is not finite ended the run.
func (m *manifest) ended() bool { return m.Diverged != nil && !m.Complete }

// argsWithout drops flags and their values.
func argsWithout(args []string, flags ...string) []string {
	var kept []string
	for i, arg := range args {
		if !slices.ContainsFunc(flags, func(flag string) bool {
			return arg == "--"+flag || i > 0 && args[i-1] == "--"+flag || strings.HasPrefix(arg, "--"+flag+"=")
		}) {
			kept = append(kept, arg)
		}
	}
	return kept
}

// hashInputs identifies the files that the options name, so that rerun can tell that one
// changed: except the platform, of which a run directory keeps a copy, and the data.
func hashInputs(o *flags.Options) ([]cli.Identity, error) {
	var ids []cli.Identity
	paths := readPaths()
	for _, in := range []struct {
		flag, value string
		fits        func(path string) error
	}{{"model", o.Model, cli.CheckWhole}, {"lowering", o.Lowering, cli.CheckWhole}, {"graph", o.Graph, cli.CheckGraph}, {"plan", o.Plan, cli.CheckWhole},
		{"init", o.Init, cli.CheckRegular}} { // of the last only what is wanted is read
		path := paths[in.flag](in.value)
		if path == "" {
			continue
		}
		if err := in.fits(path); err != nil {
			return nil, err
		}
		sum, err := cli.HashFile(path)
		if err != nil {
			return nil, err
		}
		ids = append(ids, cli.Identity{Name: path, SHA256: sum})
	}
	return ids, nil
}

// hashData identifies images and labels of both splits; test may be nil.
func hashData(ctx context.Context, train, test *nn.Dataset) (*cli.Identity, error) {
	h := until{ctx, sha256.New()}
	for _, d := range []*nn.Dataset{train, test} {
		if d == nil {
			continue
		}
		extents := []int64{int64(d.Shape[0]), int64(d.Shape[1]), int64(d.Shape[2]), int64(d.Len()), int64(d.Classes)}
		cli.Must(binary.Write(h.Hash, binary.LittleEndian, extents))
		if _, err := d.WriteTo(h); err != nil {
			return nil, fmt.Errorf("reading the data for their hash: %w", err)
		}
		cli.Must(binary.Write(h.Hash, binary.LittleEndian, d.Labels))
	}
	return &cli.Identity{Name: train.Name, SHA256: fmt.Sprintf("%x", h.Sum(nil))}, nil
}

// until is a hash that refuses what is written when its context has ended.
type until struct {
	ctx context.Context
	hash.Hash
}

func (u until) Write(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.Hash.Write(p)
}
