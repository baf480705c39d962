package grid

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/naming"
	"dahl/platform/tomlfile"
	"dahl/rundir/experiment"
)

// New is the command experiment.
func New([]string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment",
		Short: "run a grid of runs from one file, and repeat parts of it",
		Long: `experiment runs what one file describes: every combination of models, data, batch sizes,
machines, devices, policies and whatever else is a flag of simulate, plan or execute. Each
combination is a run directory of its own, which all other commands take. The results are
one CSV file, one table with medians and intervals, and figures over the grid.`,
		Args: func(cmd *cobra.Command, args []string) error {
			names := cli.Texts(cmd.Commands(), (*cobra.Command).Name)
			if len(args) == 0 {
				return fmt.Errorf("say what to do with an experiment: %s", naming.OneOf(names))
			}
			return fmt.Errorf("%q is nothing to do with an experiment: want %s%s", args[0], naming.OneOf(names), naming.DidYouMean(args[0], names))
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(newRun(), newVerify(), newList(), newShow())
	return cmd
}

func newList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "list the experiments that ship with dahl",
		Long:  `list prints the experiments that ship with dahl, and how many cells each has, with --small too.`,
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range experiment.Presets() {
				var cells [2]int
				var file *experiment.File
				for i, small := range []bool{true, false} {
					x, err := open(name, small, nil)
					if err != nil {
						return err
					}
					file, cells[i] = x.file, len(x.file.Cells())
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%-12s %4d cells, %3d with --small: %s\n", name, cells[1], cells[0], file.Sentence)
			}
			return nil
		},
	}
}

func newShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "print an experiment that ships with dahl",
		Long:    `show prints the file of an experiment that ships with dahl: save it, change it, and run it.`,
		Example: "  dahl experiment show schedulers > mine.toml",
		Args:    cli.WantArgs(1, 1, "the name of an experiment"),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := experiment.Preset(args[0])
			if err != nil {
				return cli.InputErrorf("%w%s", err, naming.DidYouMean(args[0], experiment.Presets()))
			}
			_, err = cmd.OutOrStdout().Write(src)
			return err
		},
	}
}

// source is an experiment file as it was given.
type source struct {
	name string // of the file, or of what ships with dahl
	text []byte
	file *experiment.File
}

// open reads a file, or what ships with dahl by its name. Data are pairs of the name of a
// case and of the data that it takes in the place of the file's.
func open(name string, small bool, data []string) (*source, error) {
	x := &source{name: name}
	var err error
	if x.text, err = textOf(name); err != nil {
		return nil, err
	}
	if x.file, err = experiment.Parse(x.text, name, small); err != nil {
		return nil, cli.AsInput(err)
	}
	for _, pair := range data {
		of, path, ok := strings.Cut(pair, "=")
		if !ok || of == "" || path == "" {
			return nil, cli.InputErrorf("--data %q: write the name of a case and its data, such as fashion=DIR", pair)
		}
		if err := x.file.SetData(of, path); err != nil {
			return nil, cli.InputErrorf("--data: %w", err)
		}
	}
	return x, nil
}

// textOf is the text of a file, or of what ships with dahl.
func textOf(name string) ([]byte, error) {
	if slices.Contains(experiment.Presets(), name) {
		return experiment.Preset(name)
	}
	if err := cli.CheckWhole(name); err != nil {
		return nil, err
	}
	src, err := tomlfile.Read(name)
	if errors.Is(err, fs.ErrNotExist) && filepath.Ext(name) == "" {
		_, err = experiment.Preset(name)
		return nil, cli.InputErrorf("%w, and there is no file of this name%s", err, naming.DidYouMean(name, experiment.Presets()))
	}
	return src, cli.AsInput(err)
}

// The files of the directory of an experiment.
const (
	CopyFile    = "experiment.toml" // a copy
	HeadFile    = "experiment.json"
	ResultsFile = "results.csv"
	TableFile   = "results.md"
	PageFile    = "results.html"
	FiguresDir  = "figures"
	CellsDir    = "cells"
	LockFile    = ".lock"
)

// headFormat is the format of HeadFile.
const headFormat = "dahl-experiment 1"

// Manifest says how the results of a directory came to be.
type Manifest struct {
	Format string       `json:"format"`
	Build  cli.Build    `json:"build"`
	Host   cli.Host     `json:"host"`
	CPU    string       `json:"cpu"`
	File   cli.Identity `json:"file"`
	Small  bool         `json:"small,omitempty"`
	Data   []string     `json:"data,omitempty"` // case=DATA, in the place of the file's
	Python string       `json:"python"`         // interpreter of contestants that need one

	Idle []IdlePower `json:"idle,omitempty"` // while nothing ran, where there are meters
}

// ReadManifest reads the manifest of a directory of results.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, HeadFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, cli.InputErrorf("%s holds no experiment: there is no %s in it", dir, HeadFile)
	}
	m, err := cli.ReadJSON[Manifest](path)
	if err == nil && m.Format != headFormat {
		err = cli.InputErrorf("%s: format %q, want %q", path, m.Format, headFormat)
	}
	return m, err
}

// source is the experiment of a directory, from the copy of its file.
func (m *Manifest) source(dir string) (*source, error) {
	path := filepath.Join(dir, CopyFile)
	sum, err := cli.HashFile(path)
	if err == nil && sum != m.File.SHA256 {
		err = cli.InputErrorf("%s has changed since the experiment ran", path)
	}
	if err != nil {
		return nil, err
	}
	return open(path, m.Small, m.Data)
}

// writeText writes what prints itself in lines.
func writeText(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}
