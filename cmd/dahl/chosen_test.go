package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/rundir"
)

// TestChosenDevices: a plan for some of the devices says so. simulate replays it on the whole machine's file
// without being told, to the byte; rerun searches again among all devices, and finds the same.
func TestChosenDevices(t *testing.T) {
	t.Chdir(t.TempDir())
	on := []string{"--platform", "manycore", "--model", "dahl-cnn", "--batch", "10"}
	out := mustRun(t, append([]string{"plan", "--objective", "energy", "--budget", "5000", "--out", "p"}, on...)...)
	plan, err := cli.ReadJSON[struct{ On string }](filepath.Join("p", rundir.PlanFile))
	if err != nil {
		t.Fatal(err)
	}
	// A step of 22 tasks does not pay for 64 cores, each of which draws watts in all of it.
	if plan.On == "" || !strings.Contains(out, "chosen    "+plan.On) {
		t.Fatalf("the plan is on %q:\n%s", plan.On, out)
	}
	mustRun(t, append([]string{"simulate", "--plan", "p/plan.json", "--out", "s"}, on...)...)
	for _, name := range []string{rundir.ScheduleFile, rundir.EnergyFile, rundir.PlatformFile} {
		a, errA := os.ReadFile(filepath.Join("p", name))
		b, errB := os.ReadFile(filepath.Join("s", name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s of the plan and of its replay differ (%v, %v)", name, errA, errB)
		}
	}
	wantVerified(t, "p")
	wantVerified(t, "s")
	wantRepeated(t, "p")
	// --devices is a fence: nothing outside it is chosen, and the plan says what is inside.
	mustRun(t, append([]string{"plan", "--objective", "energy", "--budget", "2000", "--devices", "cpu:2", "--out", "f"}, on...)...)
	if plan, err = cli.ReadJSON[struct{ On string }](filepath.Join("f", rundir.PlanFile)); err != nil || plan.On != "cpu:1" && plan.On != "cpu:2" {
		t.Errorf("within cpu:2 the plan is on %q (%v)", plan.On, err)
	}
	wantVerified(t, "f")
}
