package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestDoctorSaysWhatThereIs looks at a machine with a fake tree of clocks, from 0.8 to 3 GHz.
func TestDoctorSaysWhatThereIs(t *testing.T) {
	newClockTree(t)
	var all findings
	decodeObject(t, mustRun(t, "doctor", "--json"), &all)
	found := map[string]finding{}
	for _, f := range all.Findings {
		if f.Text == "" {
			t.Errorf("%s: no text", f.Of)
		}
		found[f.Of] = f
	}
	for _, of := range []string{"processor", "memory", "joules of processors", "joules of GPUs", "calibration"} {
		if _, said := found[of]; !said {
			t.Errorf("nothing is said of %s", of)
		}
	}
	if f := found["clocks of processors"]; !f.Has || !strings.HasPrefix(f.Text, "0.8 to 3 GHz") {
		t.Errorf("clocks: %+v, want 0.8 to 3 GHz", f)
	}
	if text := mustRun(t, "doctor"); strings.Count(text, "\n") != 1+len(all.Findings) {
		t.Errorf("want the machine and a line for each finding:\n%s", text)
	}
}

// TestDoctorOpensCounters reads a fake tree of RAPL, and says why where there is none.
func TestDoctorOpensCounters(t *testing.T) {
	root := t.TempDir()
	if err := raplHere(root); err == nil || !strings.Contains(err.Error(), root) {
		t.Errorf("no counter: %v, want an error that names %s", err, root)
	}
	for file, text := range map[string]string{"name": "package-0", "energy_uj": "17", "max_energy_range_uj": "262143328850"} {
		writeTestFile(t, filepath.Join(root, "intel-rapl:0", file), text+"\n")
	}
	if err := raplHere(root); err != nil {
		t.Errorf("with a counter: %v", err)
	}
}
