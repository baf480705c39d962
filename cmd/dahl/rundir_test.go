package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestForgedManifest: a manifest that a stranger wrote deletes nothing outside its directory,
// neither by a name that leads out of it nor through a link.
func TestForgedManifest(t *testing.T) {
	outside := t.TempDir()
	victim := filepath.Join(outside, "victim")
	for _, name := range []string{"../" + filepath.Base(outside) + "/victim", victim, "link/victim"} {
		if err := os.WriteFile(victim, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(filepath.Dir(outside), "forged")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		forged := &runDir{path: dir, files: []string{name}}
		if err := forged.writeManifest(&manifest{}); err != nil {
			t.Fatal(err)
		}
		if _, err := createRunDir(dir); err == nil {
			t.Errorf("%s: its directory is taken for a run to be replaced", name)
		}
		if _, err := os.Stat(victim); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}
