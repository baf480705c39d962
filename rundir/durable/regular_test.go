//go:build unix

package durable

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"dahl/must"
)

// TestOpenRegular: a pipe, a device and a link to one are refused at once wherever a file is opened, by path or
// below a directory, to be read, written or locked. Nobody ever opens the other end of the pipe, so that an opening
// which waits for one hangs the test.
func TestOpenRegular(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, errors.Join(syscall.Mkfifo("pipe", 0o600), os.Symlink("pipe", "link"), os.WriteFile("file", []byte("abc"), 0o600)))
	d := must.Get(OpenDir("."))(t)
	defer d.Close()
	ways := map[string]func(name string) error{
		"Open":     func(name string) error { f, err := Open(name); return closed(f, err) },
		"Dir.Open": func(name string) error { f, err := d.Open(name); return closed(f, err) },
		"Append": func(name string) error {
			f, err := d.Append(name, 0)
			if err == nil {
				err = f.Close()
			}
			return err
		},
		"Create": func(name string) error { return d.Create(name, text("abc")) },
		"Lock": func(name string) error {
			f, err := d.Lock(name, "me")
			if err == nil {
				err = f.Unlock()
			}
			return err
		},
	}
	for what, open := range ways {
		if err := open("file"); err != nil {
			t.Errorf("%s of a file: %v", what, err)
		}
		for _, name := range []string{"pipe", "link"} {
			if err := open(name); !errors.As(err, new(irregularError)) {
				t.Errorf("%s of a %s: %v", what, name, err)
			}
		}
	}
	if by, held := d.Holder("pipe"); held || by != "" {
		t.Errorf("a pipe is a lock held by %q", by)
	}
	if err := closed(Open(os.DevNull)); !errors.As(err, new(irregularError)) {
		t.Errorf("Open of a device: %v", err)
	}
	if err := closed(Open(filepath.Join("no", "such"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open of nothing: %v", err)
	}
}

// TestOpenRegularAfter: what becomes a pipe between the look and the opening is found too.
func TestOpenRegularAfter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	must.Do(t, syscall.Mkfifo(path, 0o600))
	before := func(string) (os.FileInfo, error) { return nil, os.ErrNotExist } // it was not there
	if err := closed(openRegular(path, path, os.O_RDONLY, before, os.OpenFile)); !errors.As(err, new(irregularError)) {
		t.Error(err)
	}
}

func closed(f *os.File, err error) error {
	if err == nil {
		err = f.Close()
	}
	return err
}
