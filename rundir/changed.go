package rundir

import (
	"path/filepath"
	"slices"

	"dahl/rundir/durable"
)

// Changed lists the tables and descriptions of a run that differ from its manifest, for readers without a
// verification. It leaves out weights and figures, which no command reads.
func Changed(dir string, m Manifest) (paths []string, err error) {
	d, err := durable.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	for _, f := range m.head().Files {
		if slices.Contains([]string{".json", ".csv", ".toml"}, filepath.Ext(f.Name)) && f.verify(d) != nil {
			paths = append(paths, filepath.Join(dir, filepath.FromSlash(f.Name)))
		}
	}
	return paths, nil
}
