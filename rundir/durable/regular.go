package durable

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// irregularError says that a file may never end, such as a pipe or a device.
type irregularError string

func (e irregularError) Error() string {
	return string(e) + " is no regular file and may never end; copy what it gives into one"
}

// CheckRegular refuses a file to be read that may never end, such as a pipe or a device. It says
// nothing of one that is not there.
func CheckRegular(path string) error {
	info, err := os.Stat(path)
	return regular(path, info, err)
}

// Open opens a file to be read that is regular, or refuses it without waiting for anybody.
func Open(path string) (*os.File, error) {
	return openRegular(path, path, os.O_RDONLY, os.Stat, os.OpenFile)
}

// regular is [CheckRegular] of what was found at a path.
func regular(path string, info fs.FileInfo, err error) error {
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return irregularError(path)
	}
	return nil
}

// openRegular opens what is a regular file before, so that no device is touched, and after, since
// another may have taken its place. Between the two a pipe does not hold it up. Shown is the name in errors.
func openRegular(name, shown string, flag int, stat func(string) (fs.FileInfo, error), open func(string, int, os.FileMode) (*os.File, error)) (*os.File, error) {
	info, err := stat(name)
	if err := regular(shown, info, err); err != nil {
		return nil, err
	}
	f, err := open(name, flag|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, err
	}
	info, err = f.Stat()
	if err := regular(shown, info, err); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
