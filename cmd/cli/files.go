package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"dahl/train/budget"
)

// CheckWritable reports early that a file of a result could not be made.
func CheckWritable(path string) error {
	if path == "" {
		return nil
	}
	dir := filepath.Dir(path)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return InputErrorf("cannot write %s: there is no directory %s", path, dir)
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return InputErrorf("cannot write %s: it is a directory", path)
	case err == nil && !info.Mode().IsRegular():
		return nil // it is written as it is
	}
	f, err := temporaryFor(path)
	if err != nil {
		return InputErrorf("cannot write %s: %w", path, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// CheckRegular refuses a file to be read that may never end, such as a pipe or a device. It says
// nothing of one that is not there.
func CheckRegular(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return InputErrorf("%s is no regular file and may never end; copy what it gives into one", path)
	}
	return nil
}

// wholeFactor is how many times the size of a file what is made of it takes, at least.
const wholeFactor = 4

// CheckWhole is CheckRegular for a file that is read as a whole: it also refuses one that is larger
// than the memory, such as one with holes.
func CheckWhole(path string) error {
	if err := CheckRegular(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil // whoever reads it says so
	}
	if left := budget.Available(); info.Size() > left.Bytes/wholeFactor {
		return InputErrorf("%s has %s, and what it describes takes several times as much: %s has %s left", path, budget.Size(info.Size()), left.Of, budget.Size(max(0, left.Bytes)))
	}
	return nil
}

// WriteTo writes a file under a temporary name and renames it.
func WriteTo(path string, fill func(io.Writer) error) error {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return WriteFile(path, b.Bytes())
}

// temporaryFor makes a file beside another that will replace it.
func temporaryFor(path string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
}

// WriteFile writes to a temporary name beside the target and renames it; what is no
// file, such as a pipe or /dev/null, is written as it is.
func WriteFile(path string, data []byte) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return os.WriteFile(path, data, 0)
	}
	f, err := temporaryFor(path)
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = f.Write(data)
	if err = cmp.Or(err, f.Chmod(0o666&^umask), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// umask is the usual one; reading the process's would change it for a moment.
const umask = 0o022

// PrintJSON prints one object.
func PrintJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
