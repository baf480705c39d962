package rundir

import (
	"path/filepath"
	"slices"

	"dahl/rundir/durable"
)

// Changed names the tables and descriptions of a run that are not as its manifest says, for those who read them
// and do not verify the run. Weights and figures are what they make of them, and nobody reads these.
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
