package durable

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Op is an operation that changes the file system.
type Op string

// The operations. OpCreate makes a file, OpMkdir a directory, and OpAppend opens an existing file.
const (
	OpCreate   Op = "create"
	OpAppend   Op = "append"
	OpWrite    Op = "write"
	OpTruncate Op = "truncate"
	OpSync     Op = "sync"
	OpClose    Op = "close"
	OpRename   Op = "rename"
	OpRemove   Op = "remove"
	OpMkdir    Op = "mkdir"
)

// Fault is asked before every operation, and what it returns is the operation's error. It is nil
// outside of tests. Where it fails a write, half of the bytes are written, as on a full disk;
// a close that fails has closed.
var Fault func(op Op, path string) error

// Dir is a directory. Names mean files below it, and lead out of it neither by dots nor through
// links.
type Dir struct{ root *os.Root }

// OpenDir opens a directory that is there.
func OpenDir(path string) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("opening directory %s: %w", path, Cause(err))
	}
	return &Dir{root}, nil
}

// MakeDir opens a directory, and makes missing ones on its path.
func MakeDir(path string) (*Dir, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		up, name := filepath.Split(strings.TrimRight(path, string(filepath.Separator)))
		switch name {
		case "", "..": // of none/../here nothing is made where none is not there
			return OpenDir(path)
		case ".":
			return MakeDir(cmp.Or(up, "."))
		}
		parent, err := MakeDir(cmp.Or(up, "."))
		if err != nil {
			return nil, err
		}
		defer parent.Close()
		if err := parent.Mkdir(name); err != nil {
			return nil, err
		}
		if err := parent.Sync("."); err != nil {
			return nil, err
		}
	}
	return OpenDir(path)
}

// Path is the name under which the directory was opened.
func (d *Dir) Path() string { return d.root.Name() }

// FS reads the directory.
func (d *Dir) FS() fs.FS { return d.root.FS() }

// Close ends the use of the directory. Nothing depends on its success.
func (d *Dir) Close() error { return d.root.Close() }

// Lstat describes a file, and a link as a link.
func (d *Dir) Lstat(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }

// Open is [Open] of a file in the directory.
func (d *Dir) Open(name string) (*os.File, error) { return d.regular(name, os.O_RDONLY) }

// regular opens a regular file, or makes it where the flag says so.
func (d *Dir) regular(name string, flag int) (*os.File, error) {
	return openRegular(name, d.join(name), flag, d.root.Stat, d.root.OpenFile)
}

func (d *Dir) join(name string) string { return filepath.Join(d.root.Name(), name) }

// do carries out an operation. Its error names the operation and the file.
func do(op Op, doing, path string, work func() error) error {
	err := error(nil)
	if Fault != nil {
		err = Fault(op, path)
	}
	if err == nil {
		running.RLock()
		err = work()
		running.RUnlock()
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", doing, path, Cause(err))
	}
	return nil
}

// Mkdir makes a directory and those that it lies in; one that is there already is fine.
func (d *Dir) Mkdir(name string) error {
	return do(OpMkdir, "making directory", d.join(name), func() error { return d.root.MkdirAll(name, 0o777) })
}

// Rename moves a file or directory to another name below d, where it replaces a file.
func (d *Dir) Rename(from, to string) error {
	return do(OpRename, "writing", d.join(to), func() error { return d.root.Rename(from, to) })
}

// Remove removes a file or an empty directory; one that is not there is fine.
func (d *Dir) Remove(name string) error {
	return do(OpRemove, "removing", d.join(name), func() error {
		if err := d.root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

// RemoveAll removes a directory with all that is in it. Links are removed, not followed.
func (d *Dir) RemoveAll(name string) error {
	return do(OpRemove, "removing", d.join(name), func() error { return d.root.RemoveAll(name) })
}

// Sync makes the names in a directory last, such as the names of renamed files.
func (d *Dir) Sync(name string) error {
	return do(OpSync, "writing directory", d.join(name), func() error {
		f, err := d.root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		if runtime.GOOS == "windows" {
			return nil // which makes names last by itself
		}
		if err := f.Sync(); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		return nil // the file system has no such operation
	})
}

// Replace writes a file whole: until it is, and when anything fails, the one that was there
// stays. It lasts when Replace returns.
func (d *Dir) Replace(name string, fill func(io.Writer) error) error {
	temporary, f, keep, err := d.temporary(name)
	if err != nil {
		return err
	}
	defer keep()
	if err = f.fill(fill); err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err == nil {
		if err = d.Rename(temporary, name); err == nil {
			return d.Sync(filepath.Dir(name))
		}
	}
	d.Remove(temporary) // what went wrong is said by the first error
	return err
}

// temporary makes a file in the directory of the file that it will replace. [Stop] removes it until
// keep is called.
func (d *Dir) temporary(name string) (temporary string, f *File, keep func(), err error) {
	dir, base := filepath.Split(name)
	for {
		temporary = fmt.Sprintf("%s.%s-%08x", dir, base, rand.Uint32())
		keep = d.Discard(temporary)
		if f, err = d.open(OpCreate, temporary, d.join(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL); err == nil {
			return temporary, f, keep, nil
		}
		if keep(); !errors.Is(err, fs.ErrExist) {
			return "", nil, nil, err
		}
	}
}

// Create makes or empties a file. It lasts after [Dir.Sync] of the file and its directory.
func (d *Dir) Create(name string, fill func(io.Writer) error) error {
	f, err := d.open(OpCreate, name, d.join(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	return cmp.Or(f.fill(fill), f.Close())
}

// Append opens a growing file and cuts it to a length, which it must have. A missing file is made
// where the length is 0.
func (d *Dir) Append(name string, lengthBytes int64) (*File, error) {
	f, err := d.open(OpAppend, name, d.join(name), os.O_WRONLY|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := f.cut(lengthBytes); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (d *Dir) open(op Op, name, shown string, flag int) (*File, error) {
	f := &File{path: shown}
	return f, do(op, "writing", shown, func() (err error) {
		f.f, err = d.regular(name, flag)
		return err
	})
}

// Cause is an error of the file system without the name of the call and its path, which whoever
// made the call says better.
func Cause(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	if e := (*os.LinkError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}
