package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"dahl/cmd/cli"
	"dahl/rundir/durable"
)

// runDir is a directory that one run writes. Every file appears under its final
// name only when it is complete.
type runDir struct {
	path  string
	files []string
}

const manifestName = "manifest.json"

// createRunDir makes the directory, or empties it of the files of an earlier run.
// A directory that exists, is not empty and has no dahl manifest is refused.
func createRunDir(path string) (*runDir, error) {
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(path, 0o777); err != nil {
			return nil, cli.InputErrorf("creating the output directory: %w", err)
		}
	case err != nil:
		return nil, cli.InputErrorf("output directory: %w", err)
	case len(entries) > 0:
		old, err := readManifest(path)
		if err != nil {
			return nil, cli.InputErrorf("output directory %s is not empty and not a run of dahl; name another with --out", path)
		}
		root, err := os.OpenRoot(path) // refuses names and links that lead out of it
		if err != nil {
			return nil, cli.InputErrorf("output directory: %w", err)
		}
		defer root.Close()
		for _, name := range append(old.Files, manifestName) {
			if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, cli.InputErrorf("output directory %s: replacing the run in it: %w", path, err)
			}
		}
	}
	d := &runDir{path: path}
	// A manifest from the start marks the directory as dahl's even if the run is cut.
	return d, cli.AsInput(d.writeManifest(&manifest{}))
}

// write makes one file of the run.
func (d *runDir) write(name string, fill func(w io.Writer) error) error {
	if err := durable.Write(filepath.Join(d.path, name), fill); err != nil {
		return err
	}
	d.noteFile(name)
	return nil
}

// noteFile lists a file that another package wrote into the directory.
func (d *runDir) noteFile(name string) {
	if !slices.Contains(d.files, name) {
		d.files = append(d.files, name)
	}
}

func (d *runDir) writeManifest(m *manifest) error {
	m.Format, m.Files = manifestFormat, d.files
	return durable.Write(filepath.Join(d.path, manifestName), func(w io.Writer) error { return cli.PrintJSON(w, m) })
}
