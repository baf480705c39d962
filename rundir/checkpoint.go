package rundir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
)

const (
	checkpointsName = "checkpoints" // below the stage
	keptCheckpoints = 3
)

// WriteCheckpoint writes the checkpoint of a step and keeps the two before it. Wherever the program
// is cut off, the new one or the older ones are there. Files that grow have to be synced before.
func (d *Dir) WriteCheckpoint(step int, fill func(io.Writer) error) error {
	if err := d.dir.Mkdir(d.at(checkpointsName)); err != nil {
		return err
	}
	if err := d.dir.Replace(d.checkpoint(step), fill); err != nil {
		return err
	}
	if err := d.dir.Sync(d.at("")); err != nil {
		return err
	}
	steps, err := d.Checkpoints()
	if err != nil {
		return err
	}
	for _, old := range steps[min(keptCheckpoints, len(steps)):] {
		if err := d.dir.Remove(d.checkpoint(old)); err != nil {
			return err
		}
	}
	return nil
}

// Checkpoints are the steps with a checkpoint in the unfinished run, the newest first.
func (d *Dir) Checkpoints() ([]int, error) {
	return checkpointsIn(d.dir.FS(), path.Join(d.stage.name, checkpointsName))
}

// OpenCheckpoint opens the checkpoint of a step for reading.
func (d *Dir) OpenCheckpoint(step int) (*os.File, error) {
	f, err := d.dir.Open(d.checkpoint(step))
	if err != nil {
		return nil, fmt.Errorf("reading the checkpoint of step %d: %w", step, err)
	}
	return f, nil
}

// DropCheckpoints removes all, so that the run is over and not to be resumed.
func (d *Dir) DropCheckpoints() error { return d.dir.RemoveAll(d.at(checkpointsName)) }

func (d *Dir) checkpoint(step int) string {
	return d.at(path.Join(checkpointsName, strconv.Itoa(step)))
}

func checkpointsIn(root fs.FS, dir string) (steps []int, err error) {
	if info, err := fs.Stat(root, dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("reading checkpoints: %s is no directory", dir)
	}
	entries, err := fs.ReadDir(root, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading checkpoints: %w", err)
	}
	for _, e := range entries {
		if step, err := strconv.Atoi(e.Name()); err == nil && step >= 0 && strconv.Itoa(step) == e.Name() { // others were never finished
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	slices.Reverse(steps)
	return steps, nil
}
