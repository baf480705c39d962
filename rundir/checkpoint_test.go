package rundir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/must"
	"dahl/rundir/durable"
)

// TestCheckpoints writes ten and keeps three, and lets each operation of the next fail or cut
// the program off: its training goes on from that one or the one before.
func TestCheckpoints(t *testing.T) {
	defer func() { durable.Fault = nil }()
	for _, cutOff := range []bool{false, true} {
		for n, done := 1, false; !done; n++ {
			t.Chdir(t.TempDir())
			mustMake(t, oldRun, "run", "old")
			d, err := Create("run", &note{Head: Head{Keep: true}, Text: "training"})
			if err != nil {
				t.Fatal(err)
			}
			for step := 1; step <= 10; step++ {
				must.Do(t, d.WriteCheckpoint(step, text(strings.Repeat("x", step))))
			}
			if steps, err := d.Checkpoints(); err != nil || !slices.Equal(steps, []int{10, 9, 8}) {
				t.Fatalf("kept are %v (%v)", steps, err)
			}
			operations := failAt(n, cutOff)
			err = d.WriteCheckpoint(11, text(strings.Repeat("x", 11)))
			done = *operations < n
			if err == nil != done {
				t.Errorf("operation %d: %v", n, err)
			}
			d.Close()
			durable.Fault = nil
			if err := newRun.make("run", "new"); err == nil || !strings.Contains(err.Error(), "go on with dahl execute --resume run, or remove run/.staging") {
				t.Errorf("an interrupted training is replaced: %v", err)
			}
			newest := Look("run").Step
			var m note
			d = must.Get(Resume("run", &m))(t)
			f := must.Get(d.OpenCheckpoint(newest))(t)
			data, err := io.ReadAll(f)
			if err != nil || f.Close() != nil || len(data) != newest || newest < 10 || done && newest < 11 || m.Text != "training" {
				t.Errorf("operation %d: the checkpoint of step %d of the run %q has %d bytes (%v)", n, newest, m.Text, len(data), err)
			}
			check(t, "run", map[string]files{"old": oldRun})
			m.Complete = true
			if at, err := d.Commit(&m); err != nil || at != "run" || d.Close() != nil {
				t.Errorf("%s: %v", at, err)
			}
			check(t, "run", map[string]files{"training": {fmt.Sprint("checkpoints/", newest): strings.Repeat("x", newest)}})
		}
	}
}

// TestResumeFinished goes on with a complete run, and cuts the program off at every operation: the
// run stays whole until the longer one is committed, and one that nothing was added to leaves
// nothing behind.
func TestResumeFinished(t *testing.T) {
	defer func() { durable.Fault = nil }()
	t.Chdir(t.TempDir())
	d, err := Create("finished", &note{Text: "short"})
	if err != nil {
		t.Fatal(err)
	}
	add := func(d *Dir, keep int64, rows string) error {
		f, err := d.Append("steps.csv", keep)
		if err != nil {
			return err
		}
		_, err = io.WriteString(f, rows)
		return errors.Join(err, f.Sync(), f.Close())
	}
	m := &note{Head: Head{Complete: true}, Text: "short"}
	err = errors.Join(add(d, 0, "1\n2\n"), d.WriteCheckpoint(1, text("a")), d.WriteCheckpoint(2, text("b")))
	if _, errCommit := d.Commit(m); errors.Join(err, errCommit, d.Close()) != nil {
		t.Fatal(err, errCommit)
	}
	short := files{"checkpoints/2": "b", "steps.csv": "1\n2\n"}
	long := files{"checkpoints/3": "c", "steps.csv": "1\n2\n3\n"}
	check(t, "finished", map[string]files{"short": short})
	goOn := func() error {
		var m note
		d, err := Resume("run", &m, "steps.csv")
		if err != nil {
			return err
		}
		defer d.Close()
		if err := errors.Join(add(d, 4, "3\n"), d.WriteCheckpoint(3, text("c"))); err != nil {
			return err
		}
		m.Complete, m.Text = true, "long"
		_, err = d.Commit(&m)
		return err
	}
	for n, done := 1, false; !done; n++ {
		must.Do(t, errors.Join(os.RemoveAll("run"), os.CopyFS("run", os.DirFS("finished"))))
		operations := failAt(n, true)
		err := goOn()
		done = *operations < n
		durable.Fault = nil
		if done && err != nil {
			t.Errorf("operation %d: %v", n, err)
		}
		if err := Open("run", new(note)); err != nil {
			t.Errorf("operation %d: %v", n, err)
		}
		if got := check(t, "run", map[string]files{"short": short, "long": long}); got == "short" {
			if err := goOn(); err != nil {
				t.Errorf("operation %d: going on after it: %v", n, err)
			}
		}
		check(t, "run", map[string]files{"long": long})
	}
	if d, err = Resume("run", m, "steps.csv"); err != nil || d.Close() != nil {
		t.Fatal(err)
	}
	if s := Look("run"); s != (State{}) {
		t.Errorf("nothing was done, and the directory says %+v", s)
	}
}

// TestShortTrainings are replaced without a word: what nobody asked to keep.
func TestShortTrainings(t *testing.T) {
	t.Chdir(t.TempDir())
	d := must.Get(Create("run", &note{Text: "short"}))(t)
	must.Do(t, errors.Join(d.WriteCheckpoint(3, text("")), d.Close(), newRun.make("run", "new")))
	check(t, "run", map[string]files{"new": newRun})
}

// TestRunThatEndedEarly stays in the stage if it would replace a complete one or can be resumed.
func TestRunThatEndedEarly(t *testing.T) {
	for _, c := range []struct {
		earlier          func(dir string) error
		checkpoint, drop bool
		at               string
	}{
		{earlier: nil, at: "run"},
		{earlier: nil, checkpoint: true, at: "run/.staging"},
		{earlier: nil, checkpoint: true, drop: true, at: "run"},
		{earlier: func(dir string) error { return oldRun.make(dir, "old") }, at: "run/.staging"},
		{earlier: func(dir string) error { return cutShort(dir) }, at: "run"},
	} {
		t.Chdir(t.TempDir())
		if c.earlier != nil {
			must.Do(t, c.earlier("run"))
		}
		m := &note{Text: "cut"}
		d, err := Create("run", m)
		if err != nil {
			t.Fatal(err)
		}
		err = d.Write("done", text("done"))
		if c.checkpoint {
			err = errors.Join(err, d.WriteCheckpoint(7, text("")))
		}
		if c.drop {
			err = errors.Join(err, d.DropCheckpoints())
		}
		at, errCommit := d.Commit(m)
		if err = errors.Join(err, errCommit, d.Close()); err != nil || at != filepath.FromSlash(c.at) {
			t.Errorf("%+v: it lies in %s (%v)", c, at, err)
		}
		want := files{"done": "done"}
		if c.checkpoint && !c.drop {
			want["checkpoints/7"] = ""
		}
		if got := check(t, c.at, map[string]files{"cut": want}); got != "cut" {
			t.Errorf("%+v: %s holds %q", c, at, got)
		}
		if c.earlier != nil && at != "run" {
			check(t, "run", map[string]files{"old": oldRun})
		}
	}
}

// cutShort makes a run that is not complete.
func cutShort(dir string) error {
	m := &note{Text: "earlier"}
	d, err := Create(dir, m)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Write("earlier", text("")); err != nil {
		return err
	}
	_, err = d.Commit(m)
	return err
}

// TestCheckpointsOfOtherNames: a number in another spelling, such as +9, is the name of no checkpoint.
func TestCheckpointsOfOtherNames(t *testing.T) {
	t.Chdir(t.TempDir())
	d := must.Get(Create("run", &note{Text: "training"}))(t)
	defer d.Close()
	must.Do(t, d.WriteCheckpoint(7, text("x")))
	for _, name := range []string{"+9", "-9", "09", "9e1", "99999999999999999999"} {
		must.Do(t, os.WriteFile(filepath.Join("run", stagingName, checkpointsName, name), nil, 0o666))
	}
	if steps, err := d.Checkpoints(); err != nil || !slices.Equal(steps, []int{7}) {
		t.Errorf("checkpoints %v, want 7 alone (%v)", steps, err)
	}
}

// TestGrowingFiles goes on with rows after a cut: what came after the checkpoint is cut away. It takes no link, which
// would lead elsewhere from the finished run.
func TestGrowingFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	d := must.Get(Create("run", &note{Text: "training"}))(t)
	add := func(d *Dir, keep int64, rows ...string) int64 {
		t.Helper()
		f := must.Get(d.Append("steps.csv", keep))(t)
		for _, row := range rows {
			must.Get(io.WriteString(f, row+"\n"))(t)
		}
		must.Do(t, errors.Join(f.Sync(), f.Close()))
		return f.Len()
	}
	length := add(d, 0, "step", "1", "2")
	must.Do(t, d.WriteCheckpoint(2, text("")))
	add(d, length, "3", "4 is cut o")
	d.Close()
	var m note
	d = must.Get(Resume("run", &m))(t)
	steps, other := filepath.Join("run", stagingName, "steps.csv"), filepath.Join("run", "other")
	must.Do(t, errors.Join(os.Rename(steps, other), os.Symlink("../other", steps)))
	_, appendErr := d.Append("steps.csv", length)
	_, openErr := d.Open("steps.csv")
	for _, err := range []error{appendErr, openErr} {
		if err == nil || err.Error() != steps+" is a link; put the file itself in its place" {
			t.Errorf("a link in the place of the file: %v", err)
		}
	}
	must.Do(t, os.Rename(other, steps))
	add(d, length, "3", "4")
	m.Complete = true
	if _, err := d.Commit(&m); err != nil || d.Close() != nil {
		t.Fatal(err)
	}
	check(t, "run", map[string]files{"training": {"checkpoints/2": "", "steps.csv": "step\n1\n2\n3\n4\n"}})
}

func TestWithin(t *testing.T) {
	t.Chdir(t.TempDir())
	mustMake(t, oldRun, "run", "old")
	d := must.Get(Create("begun", new(note)))(t)
	defer d.Close()
	must.Do(t, errors.Join(os.Mkdir("free", 0o777), os.Symlink("../run", "free/link")))
	for path, want := range map[string]bool{
		"run/w.npz": true, "run/manifest.json": true, "run/a/b/w.npz": true, "run": false, "w.npz": false, "begun/w.npz": true,
		"free/w.npz": false, "free/link/w.npz": true, "missing/w.npz": false,
	} {
		if dir, ok := Within(path); ok != want {
			t.Errorf("%s lies in the run %q", path, dir)
		}
	}
}
