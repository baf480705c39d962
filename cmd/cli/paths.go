package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"
)

// OfCommand is a line of a table of flags, where there is one.
func OfCommand[T any](table map[string]T, cmd *cobra.Command, flag string) (line T, ok bool) {
	if line, ok = table[Words(cmd)+"."+flag]; !ok {
		line, ok = table[flag]
	}
	return line, ok
}

// LiesIn reports whether a file is in a directory or below; neither needs to be there.
func LiesIn(file, dir string) bool {
	rel, err := filepath.Rel(resolved(dir), resolved(file))
	return err == nil && filepath.IsLocal(rel)
}

// resolved is the absolute path without links, as far as it is there.
func resolved(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if to, err := filepath.EvalSymlinks(path); err == nil {
		return to
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(resolved(parent), filepath.Base(path))
	}
	return path
}
