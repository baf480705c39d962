package main

import (
	"strings"
	"testing"

	"dahl/cmd/dahl/inspect"
	"dahl/must"
)

// TestDoctorSaysWhatThereIs looks at a machine with a fake tree of clocks, from 0.8 to 3 GHz.
func TestDoctorSaysWhatThereIs(t *testing.T) {
	newClockTree(t)
	var all inspect.Findings
	object := mustRun(t, "doctor", "--json")
	decodeObject(t, object, &all)
	must.Contain(t, object, "\n  \"findings\": [")
	found := map[string]inspect.Finding{}
	for _, f := range all.Findings {
		if f.Text == "" {
			t.Errorf("%s: no text", f.Of)
		}
		found[f.Of] = f
	}
	for _, of := range []string{"processor", "kernels", "memory", "library cudnn", "joules of processors", "temperature", "joules of GPUs", "calibration"} {
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
