package rundir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/must"
	"dahl/rundir/durable"
)

// note is a manifest.
type note struct {
	Head
	Text string `json:"text"`
}

// files are contents by name.
type files map[string]string

var (
	oldRun = files{"both": "old", "gone": "old gone", "part/gone": "old part", "part/both": "old"}
	newRun = files{"both": "new", "more": "new more", "part/both": "new", "other/more": "new other"}
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// make writes a run as a program does.
func (f files) make(dir, said string) error {
	m := &note{Text: said}
	d, err := Create(dir, m)
	if err != nil {
		return err
	}
	defer d.Close()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if err := d.Write(name, text(f[name])); err != nil {
			return err
		}
	}
	m.Complete = true
	_, err = d.Commit(m)
	return err
}

func mustMake(t *testing.T, f files, dir, said string) {
	t.Helper()
	must.Do(t, f.make(dir, said))
}

var errFault = errors.New("the disk is broken")

// failAt makes the n-th operation fail, from 1, and those after it too where the program is cut
// off there. It counts all.
func failAt(n int, cutOff bool) (count *int) {
	count = new(int)
	durable.Fault = func(durable.Op, string) error {
		*count++
		if *count == n || cutOff && *count > n {
			return errFault
		}
		return nil
	}
	return count
}

// check holds a directory to one of the runs whole, with nothing beside it, and returns its text.
func check(t *testing.T, dir string, runs map[string]files) string {
	t.Helper()
	var m note
	must.Do(t, Open(dir, &m))
	must.Do(t, Verify(dir))
	got := files{}
	must.Do(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if name == stagingName || name == addingName {
			return fs.SkipDir
		}
		if err != nil || e.IsDir() || name == ManifestName || name == lockName {
			return err
		}
		data, err := fs.ReadFile(os.DirFS(dir), name)
		got[name] = string(data)
		return err
	}))
	if !maps.Equal(got, runs[m.Text]) {
		t.Fatalf("the run %q has the files %q, want %q", m.Text, got, runs[m.Text])
	}
	return m.Text
}

// TestCommitIsWhole lets every operation of a run over an earlier one fail, and cuts the program
// off there. The directory holds one run whole, and the next one replaces it.
func TestCommitIsWhole(t *testing.T) {
	defer func() { durable.Fault = nil }()
	t.Chdir(t.TempDir())
	runs := map[string]files{"old": oldRun, "new": newRun}
	mustMake(t, oldRun, "earlier", "old")
	for _, cutOff := range []bool{false, true} {
		for n, done := 1, false; !done; n++ {
			renew(t, "earlier", "run")
			operations := failAt(n, cutOff)
			err := newRun.make("run", "new")
			durable.Fault = nil
			if done = *operations < n; done && err != nil {
				t.Fatal(err)
			}
			want := "old"
			if _, err := os.Lstat(filepath.Join("run", commitName)); err == nil || done {
				want = "new"
				if cutOff {
					endCut(t, runs)
				}
			}
			if said := check(t, "run", runs); said != want && said != "new" {
				t.Fatalf("operation %d: the run is %q, want %q", n, said, want)
			}
			mustMake(t, newRun, "run", "new")
			check(t, "run", runs)
		}
	}
}

// endCut lets the program that ends a commit be cut off everywhere, too, and another end it.
func endCut(t *testing.T, runs map[string]files) {
	t.Helper()
	for n, done := 1, false; !done; n++ {
		renew(t, "run", "again")
		operations := failAt(n, true)
		err := Open("again", new(note))
		durable.Fault = nil
		if done = *operations < n; done && err != nil {
			t.Fatal(err)
		}
		if said := check(t, "again", runs); said != "new" {
			t.Fatalf("operation %d of its end: the run is %q", n, said)
		}
	}
}

// renew makes a directory a copy of another.
func renew(t *testing.T, from, to string) {
	t.Helper()
	must.Do(t, errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))))
}

// TestExtendIsWhole adds a file and replaces one, in a run and in a run inside another, with
// every operation failing and the program cut off at each.
func TestExtendIsWhole(t *testing.T) {
	defer func() { durable.Fault = nil }()
	extend := func(dir string) error {
		m := new(note)
		d, err := Extend(dir, m)
		if err != nil {
			return err
		}
		defer d.Close()
		if err := errors.Join(d.Write("added", text("added")), d.Write("both", text("changed"))); err != nil {
			return err
		}
		m.Text = "extended"
		_, err = d.Commit(m)
		return err
	}
	t.Chdir(t.TempDir())
	outer, inner := &note{Text: "outer"}, &note{Text: "inner"}
	outer.Complete, inner.Complete = true, true
	d, err := Create("earlier", outer)
	if err != nil {
		t.Fatal(err)
	}
	in := d.Inside("inner")
	err = errors.Join(d.Write("both", text("first")), in.Write("both", text("first")))
	_, errInner := in.Commit(inner)
	_, errOuter := d.Commit(outer)
	must.Do(t, errors.Join(err, errInner, errOuter, d.Close()))
	for _, dir := range []string{"run", "run/inner"} {
		for _, cutOff := range []bool{false, true} {
			for n, done := 1, false; !done; n++ {
				renew(t, "earlier", "run")
				operations := failAt(n, cutOff)
				err = extend(dir)
				durable.Fault = nil
				done = *operations < n
				var m note
				if err := errors.Join(Open("run", new(note)), Open(dir, &m), Verify("run"), Verify("run/inner")); err != nil {
					t.Fatalf("operation %d: %v", n, err)
				}
				if extended := m.Text == "extended"; extended != m.Lists("added") || done && (!extended || err != nil) {
					t.Errorf("operation %d (%v): the run %q lists %v", n, err, m.Text, m.Files)
				}
				if err := errors.Join(extend(dir), Verify("run"), Verify("run/inner")); err != nil {
					t.Errorf("after operation %d: %v", n, err)
				}
			}
		}
	}
}

// TestTwoWriters: the second is refused with the process of the first, and may begin after it.
func TestTwoWriters(t *testing.T) {
	t.Chdir(t.TempDir())
	mustMake(t, oldRun, "run", "old")
	first := must.Get(Create("run", &note{Text: "first"}))(t)
	for what, err := range map[string]error{"a run": newRun.make("run", "new"), "an addition": errOf(Extend("run", new(note)))} {
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("run: it is in use by process %d since 2", os.Getpid())) {
			t.Errorf("%s beside another: %v", what, err)
		}
	}
	if s := Look("run"); !strings.HasPrefix(s.Holder, "process ") {
		t.Errorf("state %+v", s)
	}
	check(t, "run", map[string]files{"old": oldRun}) // which is read meanwhile
	must.Do(t, first.Close())
	if s := Look("run"); s != (State{Interrupted: true}) {
		t.Errorf("state %+v", s)
	}
	mustMake(t, newRun, "run", "new")
	if s := Look("run"); s != (State{}) {
		t.Errorf("state %+v", s)
	}
}

func errOf(_ *Dir, err error) error { return err }

// TestVerifyFinds changes a run in ways that its other files do not show.
func TestVerifyFinds(t *testing.T) {
	t.Chdir(t.TempDir())
	edit := func(name, old, with string) func() error {
		return func() error {
			data, err := os.ReadFile("run/" + name)
			if err != nil || !strings.Contains(string(data), old) {
				return fmt.Errorf("%s does not hold %q (%w)", name, old, err)
			}
			return os.WriteFile("run/"+name, []byte(strings.Replace(string(data), old, with, 1)), 0o666)
		}
	}
	for _, c := range []struct {
		what   string
		change func() error
		want   string
	}{
		{"a byte", edit("both", "new", "now"), "damaged: both: its hash is"},
		{"a length", edit("both", "new", "newer"), "damaged: both: it has 5 bytes, the manifest says 3"},
		{"a missing file", func() error { return os.Remove("run/part/both") }, "damaged: part/both: no such file"},
		{"a link", func() error { return errors.Join(os.Remove("run/more"), os.Symlink("both", "run/more")) }, "damaged: more: it is no regular file"},
		{"the manifest", edit(ManifestName, `"text": "new"`, `"text": "odd"`), "is not as dahl sealed it"},
		{"the seal", edit(ManifestName, `"seal": "`, `"seal": "0`), "is not as dahl sealed it"},
		{"a stranger", func() error { return os.WriteFile("run/notes.txt", nil, 0o666) }, "notes.txt is not the run's"},
		{"a stranger below", func() error { return os.WriteFile("run/part/notes.txt", nil, 0o666) }, "part/notes.txt is not the run's"},
	} {
		mustMake(t, newRun, "run", "new")
		if err := Verify("run"); err != nil {
			t.Errorf("before %s: %v", c.what, err)
		}
		must.Do(t, c.change())
		if err := Verify("run"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
		must.Do(t, os.RemoveAll("run"))
	}
}

// TestForgedManifest: a manifest that a stranger wrote deletes nothing outside its directory,
// neither by a name that leads out of it nor through a link, and not when it ends a commit.
func TestForgedManifest(t *testing.T) {
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	for _, name := range []string{"../" + filepath.Base(outside) + "/victim", victim, "link/victim", "kept"} {
		for _, forged := range []string{"", commitName} {
			dir := filepath.Join(filepath.Dir(outside), "forged")
			data, err := encode(&note{Head: Head{Files: []File{{Name: name}}}})
			for path, content := range map[string][]byte{victim: []byte("mine"), filepath.Join(dir, forged, ManifestName): data, filepath.Join(dir, "kept/inside"): nil} {
				err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, content, 0o666))
			}
			must.Do(t, errors.Join(err, os.Symlink(outside, filepath.Join(dir, "link"))))
			if err := newRun.make(dir, "new"); err == nil && forged == "" {
				t.Errorf("%s: its directory is taken for a run to be replaced", name)
			}
			if data, err := os.ReadFile(victim); err != nil || string(data) != "mine" {
				t.Errorf("%s: %q, %v", name, data, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "kept/inside")); err != nil {
				t.Error(err)
			}
			must.Do(t, os.RemoveAll(dir))
		}
	}
}

// TestRefused: nothing is begun where something else lies, and nothing is made there.
func TestRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	mustMake(t, oldRun, "run", "old")
	for path, content := range map[string]string{
		"foreign/notes": "", "older/" + ManifestName: `{"format": "dahl-run 1", "files": ["a"]}`,
		"newer/" + ManifestName: `{"format": "dahl-run 3"}`, "broken/" + ManifestName: "{", "file": "",
	} {
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(content), 0o666)))
	}
	for path, want := range map[string]string{
		"foreign": "is not empty and not a run of dahl", "older": "it is a run of an older dahl", "newer": `of format "dahl-run 3"`, "broken": "not a run of dahl",
		"file": "not a directory", "file/run": "not a directory", "run/inner": "lies in ", "run/a/b": "lies in ", "run/.staging": "uses this name itself",
	} {
		if _, err := Create(path, new(note)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	for path, want := range map[string]string{"foreign": "foreign is not a run of dahl", "older": "older dahl", "newer": `of format "dahl-run 3"; this one reads "dahl-run 2"`, "missing": "not a run of dahl"} {
		if err := Open(path, new(note)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	for _, dir := range []string{"foreign", "older", "newer", "broken"} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s holds %v (%v)", dir, entries, err)
		}
	}
	check(t, "run", map[string]files{"old": oldRun})
}

// TestSyncedBeforeItDecides: whatever was written below the stage is synced when the stage is
// renamed, and so is what moved when its manifest does.
func TestSyncedBeforeItDecides(t *testing.T) {
	t.Chdir(t.TempDir())
	mustMake(t, oldRun, "run", "old")
	defer func() { durable.Fault = nil }()
	dirty := map[string]bool{} // files and directories
	renames := 0
	durable.Fault = func(op durable.Op, path string) error {
		dir := filepath.Dir(path)
		switch op {
		case durable.OpWrite:
			dirty[path] = true
		case durable.OpCreate:
			dirty[dir] = true
		case durable.OpSync:
			delete(dirty, path)
		case durable.OpRename:
			if renames++; path == filepath.Join("run", commitName) || path == filepath.Join("run", ManifestName) {
				for name := range dirty {
					if strings.HasPrefix(name, filepath.Join("run", stagingName)) || path != filepath.Join("run", commitName) && name != filepath.Join("run", lockName) {
						t.Errorf("%s is not synced when %s is renamed", name, path)
					}
				}
			}
			dirty[dir] = true
		}
		return nil
	}
	must.Do(t, newRun.make("run", "new"))
	// The manifest of the start and of the end, the stage, four files and the manifest.
	if renames != 2+1+len(newRun)+1 {
		t.Errorf("%d renames", renames)
	}
}
