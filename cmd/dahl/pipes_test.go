//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/rundir"
)

// TestPipesInRuns puts a pipe, and a link to a device that never ends, in the place of each file of a run and of an
// interrupted training: every command that reads it ends by itself, with one line or a failed check.
func TestPipesInRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	cutAfter(t, "12", append(strings.Fields(damagedTraining), "--out", "cut")...)
	mustRun(t, append(strings.Fields(damagedTraining), "--out", "whole")...)
	endless := map[string]func(path string) error{
		"a pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a device": func(path string) error { return os.Symlink("/dev/zero", path) },
	}
	reads := map[string][]string{ // the commands that read a file; all of a run is read by verify
		rundir.ManifestName:  {"verify", "report", "compare", "plot", "trace", "kernels", "rerun"},
		rundir.PlatformFile:  {"verify", "report", "compare", "plot", "trace", "kernels", "rerun"},
		rundir.GraphFile:     {"verify", "report", "compare", "plot", "trace", "kernels", "rerun"},
		rundir.PlanFile:      {"verify", "report", "compare", "plot", "trace", "kernels"},
		rundir.ScheduleFile:  {"verify", "report", "compare", "plot", "trace", "kernels"},
		rundir.PredictedFile: {"verify", "report", "compare"},
		rundir.EnergyFile:    {"verify", "compare"},
		record.SummaryFile:   {"verify", "report", "compare", "plot", "trace"},
		record.WeightsFile:   {"verify"},
		record.StepsFile:     {"verify", "rerun", "execute --epochs 6 --resume"},
		record.EpochsFile:    {"verify", "execute --epochs 6 --resume"},
		"gantt.svg":          {"verify"},
		"checkpoints/20":     {"verify", "execute --epochs 6 --resume"},
	}
	for _, f := range manifestOf(t, "whole").Files {
		if _, ok := reads[f.Name]; !ok {
			reads[f.Name] = []string{"verify"}
		}
	}
	goesOn := map[string]int{rundir.ManifestName: 0, record.StepsFile: 0, record.EpochsFile: 0, "checkpoints/6": 12, "checkpoints/9": 12, "checkpoints/12": 9} // 0: it does not
	for what, put := range endless {
		for name, commands := range reads {
			replaced(t, filepath.Join("whole", name), put, func() {
				for _, command := range commands {
					line := command + " whole"
					r := dahl(t, t.Context(), strings.Fields(line)...)
					if said := r.stdout + r.stderr; r.code == cli.ExitOK || strings.Count(r.failure(), "\n") != 1 || !strings.Contains(said, "regular file") {
						t.Errorf("%s in the place of %s: dahl %s: exit code %d, %s", what, name, line, r.code, said)
					}
				}
			})
		}
		for name := range goesOn {
			replaced(t, filepath.Join("cut", ".staging", name), put, func() {
				after := 0
				if in := loaded(t); in != nil {
					after = in.progress.Steps
				}
				if after != goesOn[name] {
					t.Errorf("%s in the place of %s: it goes on after step %d, want %d", what, name, after, goesOn[name])
				}
			})
		}
		path := "new.toml"
		must.Do(t, put(path))
		for _, force := range []string{"", " --force"} {
			wantRefused(t, "calibrate --model tiny.toml --time 1ms --out "+path+force, "is no regular file and may never end")
		}
		must.Do(t, os.Remove(path))
	}
	wantVerified(t, "whole")
}

// replaced does something while another thing is in the place of a file.
func replaced(t *testing.T, path string, put func(string) error, do func()) {
	t.Helper()
	must.Do(t, errors.Join(os.Rename(path, "aside"), put(path)))
	do()
	must.Do(t, errors.Join(os.Remove(path), os.Rename("aside", path)))
}
