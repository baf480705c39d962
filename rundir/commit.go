package rundir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"dahl/rundir/durable"
)

// Commit ends the writing: the manifest gets the hashes of all files, and one rename makes them
// the run of the directory. It returns where the run lies. An incomplete run stays in the stage if
// it can be resumed, or would replace a complete one. A run inside another is committed with that
// one.
func (d *Dir) Commit(m Manifest) (path string, err error) {
	if err := d.finish(m); err != nil {
		return "", err
	}
	if d.below != "" {
		return d.commitInside(m)
	}
	stays, err := d.stays(m)
	if stays || err != nil {
		return filepath.Join(d.Path(), d.stage.name), err
	}
	if err := d.dir.Rename(d.stage.name, commitName); err != nil {
		return "", err
	}
	if err := d.dir.Sync("."); err != nil {
		return "", err
	}
	return d.Path(), rollForward(d.dir)
}

// commitInside leaves a run in the stage of the outer run. Where the outer run is finished, the
// added files are listed in its manifest.
func (d *Dir) commitInside(m Manifest) (string, error) {
	if d.stage.name == stagingName {
		return filepath.Join(d.Path(), d.stage.name, d.below), nil
	}
	outer := reflect.New(reflect.TypeOf(m).Elem()).Interface().(Manifest)
	if err := read(d.Path(), outer); err != nil {
		return "", err
	}
	return (&Dir{stage: d.stage}).Commit(outer)
}

// stays reports whether a run is not to be committed.
func (d *Dir) stays(m Manifest) (bool, error) {
	if m.head().Complete || d.stage.name == addingName {
		return false, nil
	}
	var earlier Head
	if err := read(d.Path(), &earlier); err == nil && earlier.Complete {
		return true, nil
	}
	steps, err := d.Checkpoints()
	return len(steps) > 0, err
}

// finish makes the files of the run last and lists them in its manifest.
func (d *Dir) finish(m Manifest) error {
	if m.head().Complete && d.below == "" {
		steps, err := d.Checkpoints()
		if err != nil {
			return err
		}
		for i, step := range steps {
			if i == 0 { // so that the training can go on
				d.note(path.Join(checkpointsName, strconv.Itoa(step)))
			} else if err := d.dir.Remove(d.checkpoint(step)); err != nil {
				return err
			}
		}
	}
	var dirs []string
	for _, name := range d.files {
		name, ok := strings.CutPrefix(name, d.below)
		if !ok {
			continue
		}
		f, err := d.hash(name)
		if err != nil {
			return fmt.Errorf("reading what was written: %w", err)
		}
		if err := d.dir.Sync(d.at(name)); err != nil {
			return err
		}
		if dir := path.Dir(name); dir != "." && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		m.head().set(f)
	}
	for _, dir := range dirs { // the stage itself is synced after the manifest
		if err := d.dir.Sync(d.at(dir)); err != nil {
			return err
		}
	}
	if err := d.writeManifest(m); err != nil {
		return err
	}
	if d.below != "" {
		d.note(ManifestName)
	}
	return nil
}

func (d *Dir) hash(name string) (File, error) {
	f, err := d.dir.Open(d.at(name))
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	return hashFile(f, name)
}

func (d *Dir) writeManifest(m Manifest) error {
	if err := d.room(ManifestName); err != nil {
		return err
	}
	data, err := encode(m)
	if err != nil {
		return fmt.Errorf("writing %s: %w", ManifestName, err)
	}
	return d.dir.Replace(d.at(ManifestName), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// rollForward ends a commit that was decided: what the earlier run had and the new one has not
// goes, all files move to their places, and the manifest last. It may be cut off anywhere and
// begin again.
func rollForward(d *durable.Dir) error {
	if _, err := d.Lstat(commitName); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := d.Lstat(path.Join(commitName, ManifestName)); errors.Is(err, fs.ErrNotExist) {
		return d.RemoveAll(commitName) // everything had moved
	}
	var now, earlier Head
	if err := read(filepath.Join(d.Path(), commitName), &now); err != nil {
		return fmt.Errorf("a commit cannot be ended; remove %s to go on without it: %w", filepath.Join(d.Path(), commitName), err)
	}
	if err := read(d.Path(), &earlier); err != nil {
		// There is no earlier run, or its files are unknown. Its checkpoints have to go, since the new run would seem to
		// have two.
		steps, err := checkpointsIn(d.FS(), checkpointsName)
		if err != nil {
			return err
		}
		earlier.Files = nil
		for _, step := range steps {
			earlier.Files = append(earlier.Files, File{Name: path.Join(checkpointsName, strconv.Itoa(step))})
		}
	}
	if err := removeEarlier(d, &earlier, &now); err != nil {
		return err
	}
	if err := moveFiles(d, &now); err != nil {
		return err
	}
	if err := d.Rename(path.Join(commitName, ManifestName), ManifestName); err != nil {
		return err
	}
	if err := d.Sync("."); err != nil {
		return err
	}
	return d.RemoveAll(commitName)
}

// removeEarlier removes the files of the earlier run that the new one lacks, and directories left
// empty.
func removeEarlier(d *durable.Dir, earlier, now *Head) error {
	for _, f := range earlier.Files {
		if now.Lists(f.Name) {
			continue
		}
		if _, err := d.Lstat(f.Name); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := d.Remove(f.Name); err != nil {
			return err
		}
		if dir := path.Dir(f.Name); dir != "." {
			d.Remove(dir) // it stays where something is left in it
		}
	}
	return nil
}

// moveFiles moves what has not moved yet, and makes it last.
func moveFiles(d *durable.Dir, now *Head) error {
	dirs := []string{"."}
	for _, f := range now.Files {
		from := path.Join(commitName, f.Name)
		if _, err := d.Lstat(from); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if dir := path.Dir(f.Name); !slices.Contains(dirs, dir) {
			if err := d.Mkdir(dir); err != nil {
				return err
			}
			dirs = append(dirs, dir)
		}
		if err := d.Rename(from, f.Name); err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		if err := d.Sync(dir); err != nil {
			return err
		}
	}
	return nil
}
