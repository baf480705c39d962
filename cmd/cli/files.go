package cli

import (
	"encoding/json"
	"io"
	"os"

	"dahl/rundir/durable"
)

// CheckWritable reports early that a file of a result could not be made.
func CheckWritable(path string) error {
	if path == "" {
		return nil
	}
	return AsInput(durable.CheckWritable(path))
}

// CheckRegular refuses a file to be read that may never end, such as a pipe or a device. It says
// nothing of one that is not there.
func CheckRegular(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return InputErrorf("%s is no regular file and may never end; copy what it gives into one", path)
	}
	return nil
}

// PrintJSON prints one object.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
