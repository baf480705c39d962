package durable

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes a file whole. A link is followed to its target. A pipe or a device, such as
// /dev/null, is written as it is.
func Write(path string, fill func(io.Writer) error) error {
	if isDevice(path) {
		return writeDevice(path, fill)
	}
	path, err := Follow(path)
	if err != nil {
		return err
	}
	d, err := OpenDir(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer d.Close()
	return d.Replace(filepath.Base(path), fill)
}

// CheckWritable reports early that a file could not be made. It leaves nothing behind.
func CheckWritable(path string) error {
	if isDevice(path) {
		return nil
	}
	path, err := Follow(path)
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("writing %s: it is a directory", path)
	}
	d, err := OpenDir(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer d.Close()
	temporary, f, keep, err := d.temporary(filepath.Base(path))
	if err != nil {
		return err
	}
	defer keep()
	return errors.Join(f.Close(), d.Remove(temporary))
}

// maxLinks bounds links that name each other.
const maxLinks = 40

// Follow gives the name behind a link; there need not be a file of that name yet.
func Follow(path string) (string, error) {
	at := path
	for range maxLinks {
		info, err := os.Lstat(at)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return at, nil
		}
		to, err := os.Readlink(at)
		if err != nil {
			return "", fmt.Errorf("following %s: %w", path, Cause(err))
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(at), to)
		}
		at = to
	}
	return "", fmt.Errorf("following %s: more than %d links", path, maxLinks)
}

func isDevice(path string) bool { return CheckRegular(path) != nil }

func writeDevice(path string, fill func(io.Writer) error) error {
	f := &File{path: path}
	err := do(OpAppend, "writing", path, func() (err error) {
		f.f, err = os.OpenFile(path, os.O_WRONLY, 0)
		return err
	})
	if err != nil {
		return err
	}
	return cmp.Or(f.fill(fill), f.Close())
}
