package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dahl/must"
)

var errFault = errors.New("the disk is broken")

// failAt makes the n-th operation fail, from 1, and those after it too where the program is cut
// off there. It counts all.
func failAt(t *testing.T, n int, cutOff bool) (count *int) {
	t.Helper()
	count = new(int)
	Fault = func(Op, string) error {
		*count++
		if *count == n || cutOff && *count > n {
			return errFault
		}
		return nil
	}
	t.Cleanup(func() { Fault = nil })
	return count
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	return string(data)
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// TestWriteIsWhole lets each operation fail and cuts the program off before each: the file is
// the old one or the new one, and nothing lies beside it unless the program was cut off. The
// operations are create, write, sync, close, rename and the sync of the directory.
func TestWriteIsWhole(t *testing.T) {
	for _, cutOff := range []bool{false, true} {
		for n := 1; ; n++ {
			t.Chdir(t.TempDir())
			must.Do(t, Write("file", text("old")))
			count := failAt(t, n, cutOff)
			err := Write("file", text("new, and longer"))
			Fault = nil
			got := mustRead(t, "file")
			if err == nil {
				if n != 1+6 || *count != 6 || got != "new, and longer" {
					t.Errorf("%d operations, want 6; the file holds %q", *count, got)
				}
				break
			}
			if want := map[bool]string{false: "old", true: "new, and longer"}[n == 6]; got != want {
				t.Errorf("operation %d failed (%v): the file holds %q, want %q", n, err, got, want)
			}
			if !errors.Is(err, errFault) || strings.Contains(err.Error(), "file-") {
				t.Errorf("operation %d: error %q, want the fault without a temporary name", n, err)
			}
			if left := names(t, "."); left != "file" && !cutOff {
				t.Errorf("operation %d: left are %s", n, left)
			}
		}
	}
}

func TestFillFails(t *testing.T) {
	t.Chdir(t.TempDir())
	err := Write("file", func(io.Writer) error { return errFault })
	if !errors.Is(err, errFault) || err.Error() != "writing file: the disk is broken" || names(t, ".") != "" {
		t.Errorf("%v; left %q", err, names(t, "."))
	}
	// A writer that hides why it failed does not hide it here.
	failAt(t, 2, false)
	err = Write("file", func(w io.Writer) error {
		if _, err := w.Write(make([]byte, 2*bufferBytes)); err != nil {
			return errors.New("something went wrong")
		}
		return nil
	})
	if !errors.Is(err, errFault) {
		t.Error(err)
	}
}

// TestWriteFollows writes through links to a file, to one that is not there yet, and to a
// device, none of which is replaced.
func TestWriteFollows(t *testing.T) {
	t.Chdir(t.TempDir())
	for link, to := range map[string]string{"a": "sub/target", "b": "a", "null": os.DevNull, "round": "round"} {
		must.Do(t, os.Symlink(to, link))
	}
	must.Do(t, os.Mkdir("sub", 0o777))
	for _, content := range []string{"first", "second"} { // of a link that leads nowhere, and to a file
		must.Do(t, errors.Join(CheckWritable("b"), Write("b", text(content))))
		if got := mustRead(t, "sub/target"); got != content {
			t.Errorf("the target holds %q, want %q", got, content)
		}
	}
	if err := errors.Join(CheckWritable("null"), Write("null", text("gone"))); err != nil {
		t.Error(err)
	}
	if got := mustRead(t, "null"); got != "" {
		t.Errorf("the device was replaced: %q", got)
	}
	for _, link := range []string{"a", "b", "null"} {
		if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("the link %s was replaced", link)
		}
	}
	if CheckWritable("round") == nil || Write("round", text("")) == nil {
		t.Error("a link to itself was written")
	}
}

func TestNotWritable(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, errors.Join(os.Mkdir("dir", 0o777), os.WriteFile("dir/inside", nil, 0o666), os.WriteFile("flat", nil, 0o666)))
	for _, path := range []string{"dir", "missing/file", "flat/file", strings.Repeat("x", 300)} {
		if CheckWritable(path) == nil || Write(path, text("new")) == nil {
			t.Errorf("%s was written", path)
		}
	}
	if left := names(t, "."); left != "dir flat" {
		t.Errorf("left are %s", left)
	}
}

// TestMakeDir: where a directory cannot be made, no other is.
func TestMakeDir(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"none/../here", "none/..", "", "none/../../here/."} {
		if d, err := MakeDir(path); err == nil {
			t.Errorf("%q was opened as %s", path, d.Path())
		}
	}
	if left := names(t, "."); left != "" {
		t.Errorf("left are %s", left)
	}
	for _, path := range []string{"a/./b/", "a/../c", "d/."} {
		d := must.Get(MakeDir(path))(t)
		d.Close()
	}
	if left := names(t, "."); left != "a c d" {
		t.Errorf("made were %s", left)
	}
}

// TestNamesStayInside: neither dots nor links lead out of a directory.
func TestNamesStayInside(t *testing.T) {
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	must.Do(t, os.WriteFile(victim, []byte("mine"), 0o666))
	path := t.TempDir()
	must.Do(t, os.Symlink(outside, filepath.Join(path, "link")))
	d := must.Get(OpenDir(path))(t)
	defer d.Close()
	must.Do(t, d.Create("own", text("own")))
	for _, name := range []string{"link/victim", victim, "../" + filepath.Base(outside) + "/victim"} {
		for what, err := range map[string]error{
			"removed": d.Remove(name), "replaced": d.Replace(name, text("")), "emptied": d.Create(name, text("")),
			"overwritten": d.Rename("own", name), "moved": d.Rename(name, "mine"),
		} {
			if err == nil {
				t.Errorf("%s was %s", name, what)
			}
		}
	}
	if err := d.RemoveAll("link"); err != nil {
		t.Error(err)
	}
	if got := mustRead(t, victim); got != "mine" {
		t.Errorf("the victim holds %q", got)
	}
}

// TestAppend writes 5 bytes, and 4 more in place of the last 2: 3 + 4 = 7.
func TestAppend(t *testing.T) {
	d := must.Get(OpenDir(t.TempDir()))(t)
	defer d.Close()
	for _, c := range []struct {
		keep     int64
		add, all string
	}{{0, "abcde", "abcde"}, {3, "WXYZ", "abcWXYZ"}, {7, "", "abcWXYZ"}, {0, "1", "1"}} {
		f := must.Get(d.Append("rows", c.keep))(t)
		if _, err := io.WriteString(f, c.add); err != nil || f.Sync() != nil || f.Len() != int64(len(c.all)) {
			t.Errorf("%v: the length is %d (%v), want %d", c, f.Len(), err, len(c.all))
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if got := mustRead(t, d.join("rows")); got != c.all {
			t.Errorf("the file holds %q, want %q", got, c.all)
		}
	}
	if _, err := d.Append("rows", 2); err == nil || !strings.Contains(err.Error(), "it has 1 bytes, of which 2 are to be kept") {
		t.Errorf("a file of one byte was cut to two: %v", err)
	}
}
