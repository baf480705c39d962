package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/words"
	"dahl/energy/meter"
	"dahl/execute/hardware"
	"dahl/must"
	"dahl/platform"
	"dahl/train/setclock"
)

// clockTree tells a process that is dahl the directory of the fake machine whose clocks it sets.
const clockTree = "DAHL_TEST_CLOCKS"

// fakeClocks makes the files of a directory the machine whose clocks are set; "": this machine.
func fakeClocks(dir string) {
	if dir != "" {
		clocksHere = func() (*setclock.System, error) {
			return &setclock.System{CPUs: filepath.Join(dir, "cpu"), State: filepath.Join(dir, "state"), Boot: "b"}, nil
		}
	}
}

// clockedCore is a machine of one core with clocks of 2.4 and 1.2 GHz.
const clockedCore = `[[memory]]
name = "ram"
bandwidth = "10 GB/s"
[[device]]
name = "cpu"
kind = "cpu"
memory = "ram"
speed = { float32 = "10 GF/s" }
power = { idle = "2 W", busy = "5 W" }
clock_name = "base"
clock_frequency = "2.4 GHz"
[[device.clock]]
name = "slow"
scale = 0.5
frequency = "1.2 GHz"
[[device.clock]]
name = "vague"
scale = 0.5
`

// newClockTree makes a fake machine whose core runs from 0.8 to 3 GHz, and returns its directory.
func newClockTree(t *testing.T) string {
	t.Helper()
	dir, was := t.TempDir(), clocksHere
	t.Cleanup(func() { clocksHere = was })
	for _, cpu := range treeCPUs(t) {
		for file, khz := range map[string]string{"cpuinfo_min_freq": "800000", "cpuinfo_max_freq": "3000000", "scaling_min_freq": "800000", "scaling_max_freq": "3000000"} {
			writeTestFile(t, cpuFile(dir, cpu, file), khz+"\n")
		}
	}
	fakeClocks(dir)
	return dir
}

// treeCPUs are the CPUs of the core of clockedCore.
func treeCPUs(t *testing.T) []int {
	t.Helper()
	p := must.Get(platform.Parse([]byte(clockedCore), "core.toml"))(t)
	return hardware.CPUsOf(p, 0)
}

func cpuFile(dir string, cpu int, file string) string {
	return filepath.Join(dir, "cpu", fmt.Sprintf("cpu%d", cpu), "cpufreq", file)
}

// wantClock compares the limits of all CPUs of a fake machine.
func wantClock(t *testing.T, dir, when, least, most string) {
	t.Helper()
	for _, cpu := range treeCPUs(t) {
		for file, want := range map[string]string{"scaling_min_freq": least, "scaling_max_freq": most} {
			if got, err := os.ReadFile(cpuFile(dir, cpu, file)); err != nil || strings.TrimSpace(string(got)) != want {
				t.Errorf("%s: %s of cpu%d is %q, want %s (%v)", when, file, cpu, got, want, err)
			}
		}
	}
}

const clockedTraining = "execute --platform core.toml --model tiny.toml --data digits --limit 64 --batch 16 "

// A run sets the clock that it wants, its own or a further one, says so, and leaves the machine as
// it was. A run that ignores the clock says that, and so do its comparison and its repetition.
func TestSetClocks(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "core.toml", clockedCore)
	writeTestFile(t, "tiny.toml", tinyNetwork)
	dir := newClockTree(t)
	for _, c := range []struct {
		flags        string
		set, ignored []string
		says         string
	}{
		{"--clock cpu=slow --set-clocks --out slow", []string{"cpu=slow at 1.2 GHz"}, nil, "1 worker, clock cpu=slow (set: cpu=slow at 1.2 GHz)"},
		{"--set-clocks --out base", []string{"cpu=base at 2.4 GHz"}, nil, "1 worker (set: cpu=base at 2.4 GHz)"},
		{"--clock cpu=slow --ignore-clocks --out ignored", nil, []string{"cpu=slow"}, "1 worker, clock cpu=slow (not set: cpu=slow)"},
		{"--ignore-clocks --out plain", nil, nil, "1 worker\n"},
	} {
		out := mustRun(t, strings.Fields(clockedTraining+c.flags)...)
		if !strings.Contains(out, c.says) {
			t.Errorf("%s: no %q in\n%s", c.flags, c.says, out)
		}
		wantClock(t, dir, c.flags, "800000", "3000000")
		run := c.flags[strings.LastIndex(c.flags, " ")+1:]
		m, err := record.ReadManifest(run)
		s, errS := cli.ReadJSON[record.Summary](filepath.Join(run, record.SummaryFile))
		must.Do(t, errors.Join(err, errS))
		for _, got := range []*record.MachineClocks{m.MachineClocks, s.MachineClocks} {
			if got == nil {
				got = new(record.MachineClocks)
			}
			if !slices.Equal(got.Set, c.set) || !slices.Equal(got.Ignored, c.ignored) {
				t.Errorf("%s: recorded is %+v", c.flags, got)
			}
		}
		wantVerified(t, run)
	}
	must.Contain(t, mustRun(t, "compare", "ignored"), "clocks: predicted at cpu=slow, measured at whatever clock the machine had in place of cpu=slow\n")
	must.Contain(t, mustRun(t, "compare", "slow"), "clocks: predicted at cpu=slow, measured at cpu=slow\n")
	// No clock of a machine can be set in an empty directory, which a repetition does not try.
	fakeClocks(t.TempDir())
	for _, run := range []string{"slow", "ignored"} {
		wantRepeated(t, run, "--out", "again")
		if m, err := record.ReadManifest("again"); err != nil || m.MachineClocks == nil || m.MachineClocks.Ignored == nil {
			t.Errorf("the repetition of %s records %+v (%v)", run, m.MachineClocks, err)
		}
	}
}

// What cannot be set is refused with the way out.
func TestSetClocksRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "core.toml", clockedCore)
	writeTestFile(t, "forced.toml", strings.Replace(clockedCore, "clock_name", "clock_in_force = \"slow\"\nclock_name", 1))
	writeTestFile(t, "bare.toml", strings.Replace(clockedCore, "clock_frequency = \"2.4 GHz\"\n", "", 1))
	writeTestFile(t, "tiny.toml", tinyNetwork)
	dir := newClockTree(t)
	const wayOut = "; --ignore-clocks runs at whatever clock it has"
	for _, c := range [][2]string{
		{"--clock cpu=slow", "dahl: cpu=slow: the clock of a processor or a GPU is set only with --set-clocks, which needs root or the right to set it" + wayOut},
		{"--platform forced.toml", "dahl: cpu=slow: the clock"},
		{"--clock cpu=vague --set-clocks", `--set-clocks: clock "vague" of device "cpu" says no frequency to be set to; write frequency = "1.2 GHz" there; --ignore-clocks runs`},
		{"--platform bare.toml --set-clocks", "--set-clocks: the platform file says no frequency for the clocks in force"},
		{"--set-clocks --ignore-clocks", "--set-clocks and --ignore-clocks exclude each other"},
	} {
		wantRefused(t, clockedTraining+c[0], c[1])
	}
	wantClock(t, dir, "after refusals", "800000", "3000000")
	fakeClocks(t.TempDir())
	wantRefused(t, clockedTraining+"--set-clocks", "as on a virtual machine or without a cpufreq driver; --ignore-clocks runs at whatever clocks the machine has\n")
}

// A run that a signal ends gives its clocks back. What one leaves that is killed the next gives
// back, before its own begins, and says so.
func TestClocksAfterSignals(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Chdir(t.TempDir())
		writeTestFile(t, "core.toml", clockedCore)
		dir := newClockTree(t)
		cmd := dahlProcess(t, strings.Fields(longTraining+" --platform core.toml --clock cpu=slow --set-clocks")...)
		cmd.Env = append(cmd.Env, clockTree+"="+dir)
		stdout, err := cmd.StdoutPipe()
		must.Do(t, errors.Join(err, cmd.Start()))
		untilEpoch(t, stdout)
		wantClock(t, dir, "during the run", "1200000", "1200000")
		must.Do(t, cmd.Process.Signal(signal))
		cmd.Wait() // its error is the signal
		if signal == syscall.SIGKILL {
			wantClock(t, dir, "after the kill", "1200000", "1200000")
			writeTestFile(t, "tiny.toml", tinyNetwork)
			wantEnd(t, cli.ExitOK, clockedTraining, "a run that was killed had set clocks; they are again what they were before it")
		}
		wantClock(t, dir, signal.String(), "800000", "3000000")
	}
}

// A calibration at set clocks. The meter shows, for the frequency f in GHz to which the core is set
// while it is asked, f W idle and f² W with a busy core: 2.4 and 5.76 W, at the slow clock 1.2 and
// 1.44 W. The third clock says no frequency and keeps the power of the device.
func TestCalibrateClocks(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "core.toml", clockedCore)
	dir := newClockTree(t)
	p := must.Get(platform.Load("core.toml"))(t)
	f := &calibrateFlags{out: "c.toml", models: []string{"mlp"}, batches: []int{16}, perModel: time.Millisecond, clocks: true, units: map[string]int{"cpu": 1}, stderr: io.Discard,
		file: &growingFile{path: "c.toml", period: time.Hour}}
	f.sum.Platform = p
	f.energy = func(_ context.Context, _ string, calls func() (int, error)) (meter.CallEnergy, bool, error) {
		ghz := 0.0
		for _, cpu := range treeCPUs(t) {
			for _, file := range []string{"scaling_min_freq", "scaling_max_freq"} {
				text, err := os.ReadFile(cpuFile(dir, cpu, file))
				khz, errN := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
				if err := errors.Join(err, errN); err != nil || ghz != 0 && khz != 1e6*ghz {
					t.Errorf("%s of cpu%d holds %q (%v)", file, cpu, text, err)
				}
				ghz = khz / 1e6
			}
		}
		_, err := calls()
		return meter.CallEnergy{IdleWatts: ghz, Watts: ghz * ghz, Meter: "RAPL (1 package)"}, true, err
	}
	must.Do(t, errors.Join(f.measureAtClocks(t.Context(), &flags.Options{Epochs: 1, DType: "float32", Variant: "go"}), f.file.close()))
	wantClock(t, dir, "after the calibration", "800000", "3000000")
	p = must.Get(platform.Load("c.toml"))(t)
	d := &p.Devices[0]
	for k, want := range [][2]float64{{2.4, 5.76}, {1.2, 1.44}, {2, 5}} {
		if c := d.Clocks[k]; math.Abs(c.Idle-want[0]) > 1e-9 || math.Abs(c.Busy.UnitWatts-want[1]) > 1e-9 {
			t.Errorf("clock %s: %+v, want %g W idle and %g W busy", c.Name, c, want[0], want[1])
		}
	}
	var out strings.Builder
	words.PrintPowers(&out, &f.sum, f.units, nil)
	const want = `cpu: idle 2.4 W, a product on one core 5.76 W, on all 5.76 W, by RAPL (1 package); 3 repeats within 0.0 %
cpu at clock slow: idle 1.2 W, a product on one core 1.44 W, on all 1.44 W, by RAPL (1 package); 3 repeats within 0.0 %
`
	var shown strings.Builder // without what others did on the cores
	for line := range strings.Lines(out.String()) {
		shown.WriteString(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "; other processes ran meanwhile") + "\n")
	}
	if shown.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// Without a frequency there is nothing to set, and a machine whose clocks cannot be set is said.
func TestCalibrateClocksRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "core.toml", clockedCore)
	writeTestFile(t, "bare.toml", strings.NewReplacer("clock_frequency = \"2.4 GHz\"\n", "", "frequency = \"1.2 GHz\"\n", "").Replace(clockedCore))
	newClockTree(t)
	fakeClocks(t.TempDir())
	for file, want := range map[string]string{
		"bare.toml": "dahl: --set-clocks: the platform file says no frequency for the clocks in force",
		"core.toml": `dahl: --set-clocks: device "cpu" cannot be set to its clock "base": the system sets no clock of cpu`,
	} {
		wantRefused(t, "calibrate --set-clocks --out c.toml --model mlp --platform "+file, want)
	}
}

// A plan that names clocks of a core's tasks asks for them like --clock: one for all of the run can
// be set, two cannot. The plan is of the training steps alone.
func TestPlannedClocksOfACore(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "core.toml", clockedCore)
	writeTestFile(t, "tiny.toml", tinyNetwork)
	newClockTree(t)
	mustRun(t, strings.Fields(clockedTraining+"--out plain")...)
	read := must.Get(cli.ReadJSON[map[string]any](filepath.Join("plain", "plan.json")))(t)
	plan := *read
	tasks := plan["devices"].(map[string]any)["cpu"].([]any)
	planned := func(name string, slow []any) {
		clocks := map[string]string{}
		for _, task := range slow {
			clocks[task.(string)] = "slow"
		}
		plan["clocks"] = clocks
		text := must.Get(json.Marshal(plan))(t)
		writeTestFile(t, name, string(text))
	}
	planned("all.json", tasks)
	planned("some.json", tasks[len(tasks)/2:])
	for _, c := range []struct {
		flags, refused string
		set, ignored   []string
	}{
		{"--clock cpu=slow --plan all.json --set-clocks --out set", "", []string{"cpu=slow at 1.2 GHz"}, nil},
		{"--plan all.json --out refused", "cpu=slow: the clock of a processor or a GPU is set only with --set-clocks", nil, nil},
		{"--plan some.json --set-clocks --out refused", `device "cpu" is to change between its clocks "base" and "slow" within the run, and is set to one for all of it; --ignore-clocks runs`, nil, nil},
		{"--plan some.json --ignore-clocks --out ignored", "", nil, []string{"cpu=slow"}},
	} {
		if c.refused != "" {
			wantRefused(t, clockedTraining+c.flags, c.refused)
			continue
		}
		mustRun(t, strings.Fields(clockedTraining+c.flags)...)
		run := c.flags[strings.LastIndex(c.flags, " ")+1:]
		m := manifestOf(t, run)
		if !slices.Equal(m.MachineClocks.Set, c.set) || !slices.Equal(m.MachineClocks.Ignored, c.ignored) {
			t.Errorf("%s: recorded is %+v", c.flags, m.MachineClocks)
		}
		wantVerified(t, run)
	}
}
