package rundir

import (
	"errors"
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
	return read(dir, m)
}

// Extend adds files to a finished run, and reads its manifest into m. The files and the manifest
// are committed together. A run inside another is extended in that one.
func Extend(dir string, m Manifest) (*Dir, error) {
	top, below := outermost(dir)
	d, err := open(top, addingName)
	if err != nil {
		return nil, err
	}
	d.below, d.keep = below, d.dir.Discard(addingName)
	if err = read(dir, m); err == nil {
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
	if err := read(parent, &h); err != nil || !h.Lists(path.Join(name, ManifestName)) {
		return dir, ""
	}
	return parent, name + "/"
}

// State describes an unfinished run in a directory.
type State struct {
	Holder      string // who writes into it now; empty means nobody
	Interrupted bool   // a run that was begun and not committed
	Step        int    // after which it can be resumed; 0 means that it cannot
	Damage      error  // why it cannot, whatever is kept; nil means nothing that its manifest shows
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
	if err := read(filepath.Join(dir, stagingName), new(Head)); errors.As(err, new(damageError)) {
		s.Damage = err
	}
	if steps, err := checkpointsIn(d.FS(), path.Join(stagingName, checkpointsName)); err == nil && len(steps) > 0 {
		s.Step = steps[0]
	}
	return s
}
