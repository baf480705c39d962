package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlotSteps: five steps of 7 ms are drawn as asked for, else the second and the third, and steps
// that there are not are refused.
func TestPlotSteps(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.json", twoTasks)
	mustRun(t, "simulate", "--platform", "laptop", "--graph", "two.json", "--steps", "5", "--policy", "heft", "--out", "run")
	for steps, want := range map[string]string{"": "steps 2 and 3 of 5", "4": "step 4 of 5", "2:4": "steps 2 to 4 of 5", "all": ">step 5<"} {
		args := []string{"plot", "run", "gantt"}
		if steps != "" {
			args = append(args, "--steps", steps)
		}
		mustRun(t, args...)
		svg, err := os.ReadFile(filepath.Join("run", "gantt.svg"))
		if err != nil || !strings.Contains(string(svg), want) || !strings.Contains(string(svg), "no schedule of these tasks on these workers takes less than 35 ms") {
			t.Errorf("--steps %q: the picture lacks %q (%v)", steps, want, err)
		}
	}
	for steps, want := range map[string]string{
		"x": "--steps", "3:": "as 3:5, or all", "3:2": "as 3:5, or all",
		"0:2": "the run shows steps 1 to 5; write --steps 1:5", "5:6": "the run shows steps 1 to 5; write --steps 1:5",
	} {
		wantRefused(t, "plot run gantt --steps "+steps, want)
	}
}
