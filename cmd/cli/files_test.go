package cli

import (
	"errors"
	"os"
	"testing"
)

// TestWriteWhatIsNoFile: a device is written, not replaced by a file.
func TestWriteWhatIsNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Symlink(os.DevNull, "null"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(CheckWritable("null"), WriteFile("null", []byte("gone"))); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile("null"); err != nil || len(data) > 0 {
		t.Errorf("the device was replaced: %q, %v", data, err)
	}
}

// TestWriteFileCleansUp lets the last step fail: a file cannot be renamed onto a
// directory that is not empty.
func TestWriteFileCleansUp(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.Mkdir("target", 0o777), os.WriteFile("target/inside", nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile("target", []byte("new")); err == nil || CheckWritable("target") == nil {
		t.Error("writing a file over a directory succeeded")
	}
	if files, err := os.ReadDir("."); err != nil || len(files) != 1 {
		t.Errorf("a failed write left something behind: %v, %v", files, err)
	}
}
