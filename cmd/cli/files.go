package cli

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"dahl/rundir"
	"dahl/rundir/durable"
	"dahl/train/budget"
)

// CheckWritable reports early that a result file could not be made, or would lie in a run
// directory. A run lists its own files.
func CheckWritable(path string) error {
	if path == "" {
		return nil
	}
	target, err := durable.Follow(path)
	if err != nil {
		return AsInput(err)
	}
	if run, ok := rundir.Within(target); ok {
		return InputErrorf("cannot write %s: it lies in %s, which holds a run; name a file elsewhere", path, run)
	}
	return AsInput(durable.CheckWritable(path))
}

// CheckRegular refuses a file to be read that may never end, such as a pipe or a device.
func CheckRegular(path string) error { return AsInput(durable.CheckRegular(path)) }

// The memory that a file takes once it is read, over its size: at least wholeFactor for most files, and graphFactor
// for a graph, as measured with 50 bytes for each task.
const (
	wholeFactor = 4
	graphFactor = 20
)

// CheckWhole is CheckRegular for a file that is read as a whole: it also refuses one of which more is made
// than the memory holds, such as one with holes.
func CheckWhole(path string) error { return checkFits(path, wholeFactor) }

// CheckGraph is CheckWhole for a graph.
func CheckGraph(path string) error { return checkFits(path, graphFactor) }

func checkFits(path string, factor int64) error {
	if err := CheckRegular(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil // whoever reads it says so
	}
	if left := budget.Available(); info.Size() > left.Bytes/factor {
		return InputErrorf("%s has %s, and what it describes takes at least %d times as much: %s has %s left", path, ShortBytes(info.Size()), factor, left.Of, ShortBytes(max(0, left.Bytes)))
	}
	return nil
}

// PrintJSON prints one object.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// ReadJSON reads a file that holds one object.
func ReadJSON[T any](path string) (*T, error) {
	if err := CheckWhole(path); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, AsInput(err)
	}
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, InputErrorf("%s: %w", path, err)
	}
	return v, nil
}

// Identity is a named input and the hash of its contents.
type Identity struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// HashFile is the SHA-256 of a file.
func HashFile(path string) (string, error) {
	f, err := durable.Open(path)
	if err != nil {
		return "", AsInput(err)
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return fmt.Sprintf("%x", h.Sum(nil)), AsInput(err)
}
