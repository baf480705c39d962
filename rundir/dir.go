package rundir

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"dahl/rundir/durable"
)

// The names in a run directory that are no files of the run.
const (
	lockName    = ".lock"
	stagingName = ".staging" // of a run that is being written
	addingName  = ".adding"  // of files that are being added to a finished one
	commitName  = ".commit"  // of what is being moved to its place
)

// Dir is a run directory that is being written. It is locked until it is closed.
type Dir struct {
	*stage
	below string // "", or the name of a run inside with a slash
}

// stage is where the files of a run lie until it is committed.
type stage struct {
	dir   *durable.Dir
	lock  *durable.File
	name  string   // stagingName or addingName
	files []string // written, from the stage on, in their order
	again bool     // it goes on with the finished run
	keep  func()   // the stage, from what durable.Stop removes; nil means that it stays
}

// Create makes a run directory, or begins a run that will replace the one in it. The manifest is
// written at once, so that a run can be recognised after it was cut off. Refused are directories
// with other contents, with a run being written, or with an interrupted training.
func Create(path string, start Manifest) (*Dir, error) {
	if err := CheckReplaceable(path); err != nil {
		return nil, err
	}
	dir, err := durable.MakeDir(path)
	if err != nil {
		return nil, err
	}
	d, err := hold(dir, stagingName)
	if err != nil {
		return nil, err
	}
	if err := d.begin(start); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Resume goes on with an interrupted training, of which a checkpoint is kept, or else with a
// finished one. It reads what runs into m. Files count as the run's once they are written or
// appended to; growing names such files of a finished run, which stays until the next commit.
func Resume(path string, m Manifest, growing ...string) (*Dir, error) {
	d, err := open(path, stagingName)
	if err != nil {
		return nil, err
	}
	steps, err := d.Checkpoints()
	if err == nil && len(steps) == 0 {
		err = d.restage(growing)
	}
	if err == nil {
		err = read(filepath.Join(path, stagingName), m)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	m.head().Files, m.head().Complete = nil, false
	return d, nil
}

// WasFinished reports whether a run goes on that had been committed.
func (d *Dir) WasFinished() bool { return d.again }

// restage copies what the finished run of the directory needs to go on into the stage. The
// checkpoint comes last, so that the stage of a copy that is cut off cannot be resumed.
func (d *Dir) restage(growing []string) error {
	steps, err := checkpointsIn(d.dir.FS(), checkpointsName)
	if err != nil {
		return err
	}
	if len(steps) == 0 {
		return fmt.Errorf("%s holds no checkpoint; there is nothing to resume", d.Path())
	}
	var finished Head
	if err := read(d.Path(), &finished); err != nil {
		return err
	}
	checkpoint := path.Join(checkpointsName, strconv.Itoa(steps[0]))
	for _, name := range append(growing, checkpoint) {
		if err := finished.verify(d.dir, name); err != nil {
			return fmt.Errorf("damaged: %s: %w; take the run from a copy, or repeat it", filepath.Join(d.Path(), name), err)
		}
	}
	if err := cmp.Or(d.dir.RemoveAll(stagingName), d.dir.Mkdir(stagingName)); err != nil {
		return err
	}
	for _, name := range append(growing, ManifestName) {
		if err := d.dir.Create(d.at(name), d.copyOf(name)); err != nil {
			return err
		}
	}
	d.again = true
	return d.WriteCheckpoint(steps[0], d.copyOf(checkpoint))
}

// copyOf writes a file of the finished run.
func (d *Dir) copyOf(name string) func(io.Writer) error {
	return func(w io.Writer) error {
		f, err := d.dir.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	}
}

// open holds a run directory that is there.
func open(path, stage string) (*Dir, error) {
	dir, err := durable.OpenDir(path)
	if err != nil {
		return nil, err
	}
	return hold(dir, stage)
}

// hold locks a directory and ends a commit that was cut off. It takes dir over.
func hold(dir *durable.Dir, name string) (*Dir, error) {
	lock, err := dir.Lock(lockName, fmt.Sprintf("process %d since %s", os.Getpid(), time.Now().UTC().Format("2006-01-02 15:04:05 UTC")))
	if err != nil {
		dir.Close()
		if held := (durable.HeldError{}); errors.As(err, &held) {
			return nil, fmt.Errorf("%s: %w; wait for it, or name another directory", dir.Path(), held)
		}
		return nil, err
	}
	d := &Dir{stage: &stage{dir: dir, lock: lock, name: name}}
	if err := rollForward(dir); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// CheckReplaceable refuses a directory that holds something else than a run, and one inside a run. So does [Create], which may come hours later.
func CheckReplaceable(path string) error {
	if base := filepath.Base(path); base == stagingName || base == commitName || base == addingName {
		return fmt.Errorf("output directory %s: dahl uses this name itself; name another directory", path)
	}
	if run, ok := Within(path); ok {
		return fmt.Errorf("output directory %s lies in %s, which holds a run; name another directory", path, run)
	}
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("output directory: %w", err)
	}
	var h Head
	err = read(path, &h)
	if errors.As(err, new(versionError)) || errors.As(err, new(damageError)) {
		return fmt.Errorf("output directory %w", err)
	}
	if err == nil || isRun(path) {
		return nil
	}
	for _, e := range entries {
		if !slices.Contains([]string{lockName, stagingName, addingName, commitName}, e.Name()) {
			return fmt.Errorf("output directory %s is not empty and not a run of dahl; name another with --out", path)
		}
	}
	return nil
}

// begin empties the stage.
func (d *Dir) begin(start Manifest) error {
	path := d.Path()
	steps, err := d.Checkpoints()
	if err != nil {
		return err
	}
	var staged Head
	if err := read(filepath.Join(path, stagingName), &staged); len(steps) > 0 && (err != nil || staged.Keep) {
		return fmt.Errorf("output directory %s holds a training that was interrupted after step %d: go on with dahl execute --resume %s, or remove %s",
			path, steps[0], path, filepath.Join(path, stagingName))
	}
	if err := d.checkEarlier(); err != nil {
		return fmt.Errorf("output directory %s: replacing the run in it: %w", path, err)
	}
	for _, name := range []string{stagingName, addingName} {
		if _, err := d.dir.Lstat(name); err != nil {
			continue
		}
		if err := d.dir.RemoveAll(name); err != nil {
			return err
		}
	}
	d.keep = d.dir.Discard(stagingName)
	if err := d.dir.Mkdir(stagingName); err != nil {
		return err
	}
	if err := d.writeManifest(start); err != nil {
		return err
	}
	return d.dir.Sync(".")
}

// checkEarlier refuses an earlier run whose files could not be removed, such as names of files
// elsewhere in its manifest.
func (d *Dir) checkEarlier() error {
	var earlier Head
	if err := read(d.Path(), &earlier); err != nil {
		return nil // there is none
	}
	for _, f := range earlier.Files {
		switch info, err := d.dir.Lstat(f.Name); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case info.IsDir():
			return fmt.Errorf("its manifest lists %s, which is a directory", f.Name)
		}
	}
	return nil
}

// Restate writes the manifest of a run that is being written anew.
func (d *Dir) Restate(m Manifest) error { return d.writeManifest(m) }

// Open opens a file of a run that is being written, to be read.
func (d *Dir) Open(name string) (*os.File, error) {
	if err := d.notLink(name); err != nil {
		return nil, err
	}
	return d.dir.Open(d.at(name))
}

// notLink refuses a link in the place of a file, which would lead elsewhere once it is moved to the run.
func (d *Dir) notLink(name string) error {
	if info, err := d.dir.Lstat(d.at(name)); err == nil && info.Mode().Type() == fs.ModeSymlink {
		return fmt.Errorf("%s is a link; put the file itself in its place", filepath.Join(d.Path(), d.at(name)))
	}
	return nil
}

// Path is the run directory.
func (d *Dir) Path() string { return d.dir.Path() }

// Close gives the lock back. What was written of a run without being committed stays in the
// stage.
func (d *Dir) Close() error {
	if d.keep != nil {
		defer d.keep()
	}
	if _, err := d.dir.Lstat(addingName); err == nil && d.stage.name == addingName {
		d.dir.RemoveAll(addingName) // what was not added; whoever adds next removes it too
	}
	if d.again && len(d.files) == 0 {
		d.dir.RemoveAll(stagingName) // a copy; whoever goes on makes another
	}
	return errors.Join(d.lock.Unlock(), d.dir.Close())
}

// Inside returns a run of its own in a directory inside d. Its files belong to d, and it has to be
// committed before d.
func (d *Dir) Inside(name string) *Dir { return &Dir{d.stage, path.Join(d.below, name) + "/"} }

// at is where a file of the run lies until it is committed.
func (d *Dir) at(name string) string { return path.Join(d.stage.name, d.below, name) }

// Write makes one file of the run.
func (d *Dir) Write(name string, fill func(io.Writer) error) error {
	if err := d.room(name); err != nil {
		return err
	}
	if err := d.dir.Create(d.at(name), fill); err != nil {
		d.dir.Remove(d.at(name)) // half of it helps nobody; the first error says what is wrong
		return err
	}
	d.note(name)
	return nil
}

// Append opens a growing file of the run, cut to its earlier length. Zero makes a new file. The
// caller syncs and closes it.
func (d *Dir) Append(name string, lengthBytes int64) (*durable.File, error) {
	if err := d.room(name); err != nil {
		return nil, err
	}
	if err := d.notLink(name); err != nil {
		return nil, err
	}
	f, err := d.dir.Append(d.at(name), lengthBytes)
	if err != nil {
		return nil, err
	}
	d.note(name)
	return f, nil
}

// room makes the directory of a file that does not lie in the stage itself.
func (d *Dir) room(name string) error {
	if dir := path.Dir(path.Join(d.below, name)); dir != "." {
		return d.dir.Mkdir(path.Join(d.stage.name, dir))
	}
	return nil
}

func (d *Dir) note(name string) {
	if name = d.below + name; !slices.Contains(d.files, name) {
		d.files = append(d.files, name)
	}
}
