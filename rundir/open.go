package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"dahl/rundir/durable"
)

// Open reads the manifest of a run into m. It ends a commit that was cut off first.
func Open(dir string, m Manifest) error {
	if _, err := os.Lstat(filepath.Join(dir, commitName)); err == nil {
		d, err := open(dir, stagingName)
		if err != nil {
			return err
		}
		d.Close()
	}
	_, err := read(dir, m)
	return err
}

// Extend adds files to a run that is finished, which it reads into m. They and the manifest
// that lists them are committed together. A run inside another is extended in that one.
func Extend(dir string, m Manifest) (*Dir, error) {
	top, below := outermost(dir)
	d, err := open(top, addingName)
	if err != nil {
		return nil, err
	}
	d.below = below
	if _, err = read(dir, m); err == nil {
		if err = d.dir.RemoveAll(addingName); err == nil {
			err = d.dir.Mkdir(addingName)
		}
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// outermost finds the run that a run belongs to, and its name there.
func outermost(dir string) (top, below string) {
	var h Head
	parent, name := filepath.Join(dir, ".."), ""
	if abs, err := filepath.Abs(dir); err == nil {
		name = filepath.Base(abs)
	}
	if _, err := read(parent, &h); err != nil || !h.Lists(path.Join(name, ManifestName)) {
		return dir, ""
	}
	return parent, name + "/"
}

// State is what goes on in a directory beside a finished run.
type State struct {
	Holder      string // who writes into it now; empty: nobody
	Interrupted bool   // a run that was begun and not committed
	Step        int    // after which it can be resumed; 0: it cannot
}

// Look tells the state of a directory.
func Look(dir string) (s State) {
	d, err := durable.OpenDir(dir)
	if err != nil {
		return s
	}
	defer d.Close()
	if _, err := d.Lstat(stagingName); err != nil {
		return s
	}
	by, held := d.Holder(lockName)
	if held {
		s.Holder = by
		return s
	}
	s.Interrupted = true
	if steps, err := checkpointsIn(d.FS(), path.Join(stagingName, checkpointsName)); err == nil && len(steps) > 0 {
		s.Step = steps[0]
	}
	return s
}

// Verify compares every file of a run with its manifest, and the manifest with its seal. It
// names what is damaged, missing, or in the directory without being the run's.
func Verify(dir string) error {
	var h Head
	data, err := read(dir, &h)
	if err != nil {
		return err
	}
	var found []error
	if !h.sealed(data) {
		found = append(found, fmt.Errorf("damaged: %s: it is not as it was written", ManifestName))
	}
	d, err := durable.OpenDir(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for _, f := range h.Files {
		if err := f.verify(d); err != nil {
			found = append(found, fmt.Errorf("damaged: %s: %w", f.Name, err))
		}
	}
	err = fs.WalkDir(d.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (name == stagingName || name == commitName || name == addingName || name == checkpointsName && filepath.Base(dir) == stagingName):
			return fs.SkipDir
		case !e.IsDir() && name != ManifestName && name != lockName && !h.Lists(name):
			found = append(found, fmt.Errorf("%s is not the run's: its manifest does not list it", name))
		}
		return nil
	})
	return errors.Join(append(found, err)...)
}

// verify compares one file with what the manifest says.
func (f *File) verify(d *durable.Dir) error {
	if info, err := d.Lstat(f.Name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("it is no regular file")
	}
	file, err := d.Open(f.Name)
	if err != nil {
		return durable.Cause(err)
	}
	defer file.Close()
	got, err := hashFile(file, f.Name)
	switch {
	case err != nil:
		return durable.Cause(err)
	case got.Bytes != f.Bytes:
		return fmt.Errorf("it has %d bytes, the manifest says %d", got.Bytes, f.Bytes)
	case got.SHA256 != f.SHA256:
		return fmt.Errorf("its hash is %.12s, the manifest says %.12s", got.SHA256, f.SHA256)
	}
	return nil
}
