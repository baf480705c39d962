package record

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/dag"
	"dahl/execute"
	"dahl/nn/data"
	"dahl/rundir"
	"dahl/train"
	"dahl/train/peer"
)

// Manifest says how a run directory came to be, completely enough to repeat it.
// It holds no times and no output path, so that equal runs of the simulator
// give equal files.
type Manifest struct {
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
	Chosen   *ChosenDevices      `json:"chosen_devices,omitempty"`
	Variants []string            `json:"variants,omitempty"` // "device op type shape: variant", sorted
	Inputs   []cli.Identity      `json:"inputs,omitempty"`   // files that the options name, the platform excepted
	Data     *cli.Identity       `json:"data,omitempty"`     // what was trained and tested on
	Tokens   *data.Vocabulary    `json:"tokens,omitempty"`   // of the text that was trained on
	GPUs     []train.DeviceState `json:"gpus,omitempty"`     // of an executed run, as it began

	Program *peer.Versions `json:"program,omitempty"` // that trained, where it is not this one

	MachineClocks *MachineClocks `json:"machine_clocks,omitempty"` // of an executed run

	Issue *execute.Issue `json:"issue,omitempty"` // of a training step to devices, where its tasks are not timed; a plan's

	Losses  []train.DeviceLoss `json:"losses,omitempty"`  // what it went on without
	Resumed []Resumption       `json:"resumed,omitempty"` // where it went on after interruptions

	// Interrupted reports that a signal ended the search. The plan is the best one found until
	// then.
	Interrupted bool `json:"interrupted,omitempty"`

	WeightsHash string `json:"weights_sha256,omitempty"` // after training
	FinalLoss   Number `json:"final_loss,omitempty"`

	// Diverged is the first loss that was NaN or infinite. Without --continue-on-nan it ends the
	// training.
	Diverged *train.Divergence `json:"diverged,omitempty"`
}

// ReadManifest reads the manifest of a run directory.
func ReadManifest(dir string) (*Manifest, error) {
	m := new(Manifest)
	return m, cli.AsInput(rundir.Open(dir, m))
}

// CreateRun begins the directory of a run. An input that lies in it is refused, since the run
// takes its place and could not be repeated.
func CreateRun(dir string, m *Manifest) (*rundir.Dir, error) {
	for _, in := range append(m.Inputs[:len(m.Inputs):len(m.Inputs)], cli.Identity{Name: m.Options.Platform}) {
		if in.Name != "" && cli.LiesIn(in.Name, dir) {
			return nil, cli.InputErrorf("%s is read by this run and lies in the directory that it replaces; copy it elsewhere, or name another directory than %s with --out", in.Name, dir)
		}
	}
	d, err := rundir.Create(dir, m)
	return d, cli.AsInput(err)
}

// CheckRun refuses before a long work what [CreateRun] would refuse after it.
func CheckRun(dir string) error { return cli.AsInput(rundir.CheckReplaceable(dir)) }

// ExtendRun adds files to a finished run.
func ExtendRun(dir string, add func(*rundir.Dir) error) error {
	m := new(Manifest)
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

// Ended reports whether a loss that is not finite ended the run.
func (m *Manifest) Ended() bool { return m.Diverged != nil && !m.Complete }

// ArgsWithout drops flags and their values.
func ArgsWithout(args []string, flags ...string) []string {
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

// HashInputs hashes the files that the options name, so that rerun notices a change. The platform,
// of which a run directory keeps a copy, and the data are left out.
func HashInputs(o *flags.Options) ([]cli.Identity, error) {
	var ids []cli.Identity
	paths := flags.ReadPaths()
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

// HashData identifies samples and labels of both splits; test may be nil.
func HashData(ctx context.Context, train, test *data.Dataset) (*cli.Identity, error) {
	h := until{ctx, sha256.New()}
	for _, d := range []*data.Dataset{train, test} {
		if d == nil {
			continue
		}
		var extents []int64
		for _, e := range slices.Concat(d.Shape, []int{d.Len(), d.Classes}, d.Positions) {
			extents = append(extents, int64(e))
		}
		cli.Must(binary.Write(h.Hash, binary.LittleEndian, extents))
		if _, err := d.WriteTo(h); err != nil {
			return nil, fmt.Errorf("reading the data for their hash: %w", err)
		}
		labels := d.Labels
		if d.OnlyRead() { // all tokens but the last are in samples
			labels = make([]int32, d.Positions[0])
			if err := d.ReadLabels(labels, []int32{int32(d.Len() - 1)}); err != nil {
				return nil, fmt.Errorf("reading the data for their hash: %w", err)
			}
		}
		if d.Vocabulary != nil {
			h.Hash.Write([]byte(d.Vocabulary.Characters + strings.Join(d.Vocabulary.Pieces, " ") + strings.Join(d.Vocabulary.Merges, " "))) // never fails
		}
		cli.Must(binary.Write(h.Hash, binary.LittleEndian, labels))
	}
	return &cli.Identity{Name: train.Name, SHA256: fmt.Sprintf("%x", h.Sum(nil))}, nil
}

// until is a hash that fails once its context has ended.
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

// ChangedInput returns an error that names an input changed since the run.
func (m *Manifest) ChangedInput() error {
	for _, file := range m.Inputs {
		sum, err := cli.HashFile(file.Name)
		if err != nil {
			return fmt.Errorf("an input of the run is missing: %w", err)
		}
		if sum != file.SHA256 {
			return fmt.Errorf("%s has changed since the run", file.Name)
		}
	}
	return nil
}

// Given returns the inputs of the run by their JSON names in the manifest, without results.
func (m *Manifest) Given() map[string]string {
	given := struct {
		Command  string        `json:"command"`
		Options  flags.Options `json:"options"`
		Platform cli.Identity  `json:"platform"`
		Lowering any           `json:"lowering"`
		Chosen   string        `json:"chosen_devices,omitempty"`
		Inputs   []string      `json:"inputs"`
		Data     *cli.Identity `json:"data"`
		Build    cli.Build     `json:"build"`
		Host     cli.Host      `json:"host"`
	}{Command: m.Command, Options: m.Options, Platform: m.Platform, Lowering: m.Lowering, Data: m.Data, Build: m.Build, Host: m.Host}
	if m.Chosen != nil {
		given.Chosen = m.Chosen.Devices
	}
	for _, in := range m.Inputs {
		given.Inputs = append(given.Inputs, in.SHA256)
	}
	text, err := json.Marshal(given)
	cli.Must(err)
	var tree any
	cli.Must(json.Unmarshal(text, &tree))
	leaves := map[string]string{}
	addLeaves(leaves, "", tree)
	return leaves
}

// addLeaves flattens a JSON value: its numbers and texts by the names on the way to them.
func addLeaves(leaves map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, of := range v {
			addLeaves(leaves, strings.TrimPrefix(path+"."+name, "."), of)
		}
	case []any:
		for i, of := range v {
			addLeaves(leaves, fmt.Sprintf("%s[%d]", path, i), of)
		}
	case nil:
	default:
		leaves[path] = fmt.Sprint(v)
	}
}

// PeerCommand is the command in the manifest of a training by another program.
const PeerCommand = "peer"
