//go:build unix

package data

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dahl/must"
)

// TestPipes: a pipe that nobody writes to holds nothing up in the place of a file of a vocabulary, a text or a picture.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	pipe := func(name string) string {
		path := filepath.Join(dir, name)
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600)))
		return path
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "is no regular file and may never end") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := ReadMerges(filepath.Dir(pipe("pieces/" + piecesFile)))
	refused("the pieces of a vocabulary", err)
	writeFile(t, dir, "merges/"+piecesFile, []byte(`{"a":0}`))
	_, err = ReadMerges(filepath.Dir(pipe("merges/" + mergesFile)))
	refused("the merges of a vocabulary", err)
	_, err = Open(pipe("a.txt"), Options{Positions: 1, Vocabulary: must.Get(VocabularyOf(mergesDir))(t)})
	refused("a text", err)
	writePNG(t, dir, "set/class/1.png", 5, 3, 1)
	writePNG(t, dir, "set/class/2.png", 5, 3, 2)
	set, picture := filepath.Join(dir, "set"), filepath.Join(dir, "set/class/2.png")
	d := must.Get(Open(set, Options{}))(t)
	must.Do(t, errors.Join(os.Remove(picture), os.Symlink(pipe("picture"), picture)))
	_, err = Open(set, Options{})
	refused("a picture", err)
	refused("a picture that was one when the data were opened", d.Fill(make([]byte, d.Bytes())))
}

// TestVocabularyTooLarge: a file of a vocabulary that is too large is not read. This one has no bytes on the disk.
func TestVocabularyTooLarge(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.Truncate(writeFile(t, dir, piecesFile, nil), maxVocabularyBytes+1))
	if _, err := ReadMerges(dir); err == nil || !strings.Contains(err.Error(), "67108865 bytes; at most 67108864 are read") { // 2^26
		t.Error(err)
	}
}
