package meter

import (
	"os"
	"path/filepath"
	"testing"

	"dahl/must"
)

// TestPackageSensor reads two packages at 47 and 61.5 degrees beside a sensor of something else.
func TestPackageSensor(t *testing.T) {
	root := t.TempDir()
	if PackageSensor(root) != nil {
		t.Error("there is a sensor in an empty directory")
	}
	zone := func(name, kind, temp string) {
		dir := filepath.Join(root, name)
		must.Do(t, os.Mkdir(dir, 0o777))
		for file, text := range map[string]string{"type": kind, "temp": temp} {
			must.Do(t, os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o666))
		}
	}
	zone("thermal_zone0", "acpitz", "99000")
	zone("thermal_zone1", "x86_pkg_temp", "47000")
	zone("thermal_zone2", "x86_pkg_temp", "61500")
	if celsius, err := PackageSensor(root)(); celsius != 61.5 || err != nil {
		t.Errorf("%g degrees, %v; want 61.5", celsius, err)
	}
	zone("thermal_zone3", "x86_pkg_temp", "hot")
	if celsius, err := PackageSensor(root)(); err == nil {
		t.Errorf("%g degrees of a sensor that says hot", celsius)
	}
}
