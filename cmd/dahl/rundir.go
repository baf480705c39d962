package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"dahl/cmd/cli"
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
		for _, name := range append(old.Files, manifestName) {
			if !filepath.IsLocal(name) {
				return nil, cli.InputErrorf("output directory %s: its manifest lists %q, which is outside it", path, name)
			}
			if err := os.Remove(filepath.Join(path, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, cli.InputErrorf("replacing the earlier run: %w", err)
			}
		}
	}
	d := &runDir{path: path}
	// A manifest from the start marks the directory as dahl's even if the run is cut.
	return d, cli.AsInput(d.writeManifest(&manifest{}))
}

// write makes one file of the run.
func (d *runDir) write(name string, fill func(w io.Writer) error) error {
	var buf bytes.Buffer
	if err := fill(&buf); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	if err := cli.WriteFile(filepath.Join(d.path, name), buf.Bytes()); err != nil {
		return err
	}
	d.noteFile(name)
	return nil
}

// noteFile lists a file that another package wrote into the directory.
func (d *runDir) noteFile(name string) {
	for _, f := range d.files {
		if f == name {
			return
		}
	}
	d.files = append(d.files, name)
}

func (d *runDir) writeJSON(name string, v any) error {
	return d.write(name, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	})
}

func (d *runDir) writeManifest(m *manifest) error {
	m.Format, m.Files = manifestFormat, d.files
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", manifestName, err)
	}
	return cli.WriteFile(filepath.Join(d.path, manifestName), append(data, '\n'))
}
