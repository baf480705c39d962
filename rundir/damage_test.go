package rundir

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// TestEveryBitOfManifest flips each bit of the manifest of a finished run and of an interrupted training beside it: no
// way to read it takes any. A run is not replaced either, since its manifest says what would be removed. Ways that
// take the lock are tried with one bit of each byte.
func TestEveryBitOfManifest(t *testing.T) {
	t.Chdir(t.TempDir())
	mustMake(t, files{"a": "1"}, "run", "finished")
	d, err := Create("run", &note{Head: Head{Keep: true}, Text: "training"})
	if err == nil {
		err = errors.Join(d.WriteCheckpoint(1, text("x")), d.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		ways map[string]func() error
	}{
		{filepath.Join("run", ManifestName), map[string]func() error{
			"Open":   func() error { return Open("run", new(note)) },
			"Verify": func() error { return Verify("run") },
			"Extend": func() error { return discard(Extend("run", new(note))) },
			"Create": func() error { return discard(Create("run", new(note))) },
		}},
		{filepath.Join("run", stagingName, ManifestName), map[string]func() error{
			"Resume": func() error { return discard(Resume("run", new(note))) },
			"Create": func() error { return discard(Create("run", new(note))) },
		}},
	} {
		whole := must.Get(os.ReadFile(c.path))(t)
		for bit := range 8 * len(whole) {
			damaged := []byte(string(whole))
			damaged[bit/8] ^= 1 << (bit % 8)
			must.Do(t, os.WriteFile(c.path, damaged, 0o666))
			for what, way := range c.ways {
				if what != "Open" && bit%8 != bit/8%8 {
					continue
				}
				if err := way(); err == nil || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s takes %s with bit %d of byte %d (%q) changed: %v", what, c.path, bit%8, bit/8, damaged[max(0, bit/8-9):][:10], err)
				}
			}
		}
		must.Do(t, os.WriteFile(c.path, whole, 0o666))
	}
	if err := discard(Resume("run", new(note))); err != nil {
		t.Error(err)
	}
	check(t, "run", map[string]files{"finished": {"a": "1"}})
}

// TestResumeBesideDamaged: a training that ends where the manifest of an earlier run is damaged leaves no checkpoint of that run.
func TestResumeBesideDamaged(t *testing.T) {
	t.Chdir(t.TempDir())
	trained := func(resume bool, step int) error {
		m := &note{Head: Head{Keep: true}, Text: "training"}
		create := func() (*Dir, error) { return Create("run", m) }
		if resume {
			create = func() (*Dir, error) { return Resume("run", m) }
		}
		d, err := create()
		if err != nil {
			return err
		}
		defer d.Close()
		if err := d.WriteCheckpoint(step, text("x")); err != nil || step == 2 {
			return err
		}
		m.Complete = true
		_, err = d.Commit(m)
		return err
	}
	path := filepath.Join("run", ManifestName)
	must.Do(t, errors.Join(trained(false, 1), trained(false, 2), os.WriteFile(path, []byte("damaged"), 0o666), trained(true, 3)))
	if err := Verify("run"); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob("run/checkpoints/*")
	if want := []string{filepath.Join("run", "checkpoints", "3")}; err != nil || !slices.Equal(left, want) {
		t.Errorf("checkpoints %q, want %q (%v)", left, want, err)
	}
}

func discard(d *Dir, err error) error {
	if err == nil {
		err = d.Close()
	}
	return err
}

// TestResumeFinishedComparesHashes: a finished run goes on with no other tables, and from no other checkpoint, than its
// manifest lists, and is left as it is.
func TestResumeFinishedComparesHashes(t *testing.T) {
	t.Chdir(t.TempDir())
	finished := func() error {
		m := &note{Head: Head{Complete: true}}
		d, err := Create("run", m)
		if err != nil {
			return err
		}
		err = errors.Join(d.Write("steps.csv", text("1\n2\n")), d.Write("other.csv", text("1\n")), d.WriteCheckpoint(2, text("state")))
		_, commitErr := d.Commit(m)
		return errors.Join(err, commitErr, d.Close())
	}
	for name, want := range map[string]bool{"steps.csv": false, "checkpoints/2": false, "other.csv": true} {
		must.Do(t, errors.Join(os.RemoveAll("run"), finished(), discard(Resume("run", new(note), "steps.csv"))))
		data, err := os.ReadFile(filepath.Join("run", name))
		if err != nil {
			t.Fatal(err)
		}
		data[0] ^= 2
		must.Do(t, os.WriteFile(filepath.Join("run", name), data, 0o666))
		err = discard(Resume("run", new(note), "steps.csv"))
		if want != (err == nil) || !want && !strings.Contains(err.Error(), "damaged: "+filepath.Join("run", name)+": its hash is") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join("run", stagingName)); err == nil {
			t.Errorf("%s: a stage is left", name)
		}
	}
}

// TestExtendBesideInterrupted adds a file to a finished run while an interrupted training lies in the stage. The
// training can go on after it.
func TestExtendBesideInterrupted(t *testing.T) {
	t.Chdir(t.TempDir())
	mustMake(t, files{"a": "1"}, "run", "finished")
	d, err := Create("run", &note{Head: Head{Keep: true}, Text: "training"})
	if err == nil {
		err = errors.Join(d.WriteCheckpoint(7, text("x")), d.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	m := new(note)
	d = must.Get(Extend("run", m))(t)
	err = d.Write("b", text("2"))
	if _, commitErr := d.Commit(m); errors.Join(err, commitErr, d.Close()) != nil {
		t.Fatal(err, commitErr)
	}
	check(t, "run", map[string]files{"finished": {"a": "1", "b": "2"}})
	d = must.Get(Resume("run", m))(t)
	defer d.Close()
	f := must.Get(d.OpenCheckpoint(7))(t)
	if data, err := io.ReadAll(f); err != nil || f.Close() != nil || string(data) != "x" || m.Text != "training" {
		t.Errorf("the checkpoint of %q is %q (%v)", m.Text, data, err)
	}
}
