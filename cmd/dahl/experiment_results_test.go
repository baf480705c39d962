package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/cmd/grid"
	"dahl/must"
	"dahl/platform"
	"dahl/train"
)

// powercapTree names a directory that has the energy counters of the machine, for a process that is dahl.
const powercapTree = "DAHL_TEST_POWERCAP"

// fakePowercap makes the files of a directory the energy counters of the processors; "": those of this machine.
func fakePowercap(dir string) {
	if dir != "" {
		flags.StartMeters = func(p *platform.Platform) *train.Meters { return train.StartMetersAt(dir, p) }
		flags.IdleWindow = 50 * time.Millisecond
	}
}

// restoreMeters puts back what [fakePowercap] replaced.
func restoreMeters(start func(*platform.Platform) *train.Meters, window time.Duration) {
	flags.StartMeters, flags.IdleWindow = start, window
}

// countJoules makes a tree of one package whose counter goes up by 20 W until the test ends.
func countJoules(t *testing.T, dir string) {
	t.Helper()
	showJoules(t, dir, func(us int64) int64 { return 20 * us })
}

// showJoules makes a tree of one package whose counter shows what it is told of the microseconds until the test ends.
func showJoules(t *testing.T, dir string, shows func(us int64) int64) {
	t.Helper()
	zone := filepath.Join(dir, "intel-rapl:0")
	begin := time.Now()
	count := func() error {
		temporary := filepath.Join(zone, "next")
		if err := os.WriteFile(temporary, fmt.Appendln(nil, shows(time.Since(begin).Microseconds())), 0o666); err != nil {
			return err
		}
		return os.Rename(temporary, filepath.Join(zone, "energy_uj"))
	}
	writeTestFile(t, filepath.Join(zone, "name"), "package-0\n")
	writeTestFile(t, filepath.Join(zone, "max_energy_range_uj"), "1000000000000\n")
	must.Do(t, count())
	stop, ended := make(chan struct{}), make(chan error)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				ended <- nil
				return
			case <-tick.C:
				if err := count(); err != nil {
					ended <- err
					return
				}
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestExperimentMetered: with a tree of counters the joules of a cell are those that it counted during the training, and
// those above idle are less what it counted per second before.
func TestExperimentMetered(t *testing.T) {
	inGrid(t, "name = \"metered\"\n[run]\ncommand = \"execute\"\nmodel = \"tiny.toml\"\ndata = \"digits\"\nlimit = 60\nepochs = 3\n[grid]\nworkers = [1]\n")
	tree := filepath.Join(t.TempDir(), "powercap")
	countJoules(t, tree)
	t.Setenv(powercapTree, tree)
	defer restoreMeters(flags.StartMeters, flags.IdleWindow)
	fakePowercap(tree)
	mustRun(t, "experiment", "run", "grid.toml", "--out", "out")
	s, err := cli.ReadJSON[record.Summary]("out/cells/workers=1/" + record.SummaryFile)
	if err != nil || len(s.EnergyJ.Readings) != 1 {
		t.Fatalf("%v, %+v", err, s.EnergyJ)
	}
	m, err := grid.ReadManifest("out")
	if err != nil || len(m.Idle) != 1 || !(m.Idle[0].Watts > 0) {
		t.Fatalf("%v, %+v", err, m.Idle)
	}
	counted, row := s.EnergyJ.Readings[0], csvRows(t, "out")["workers=1"]
	for column, want := range map[string]float64{"joules": counted.Joules, "joules_per_epoch": counted.Joules / 3, "joules_error": counted.ErrorJoules,
		"joules_above_idle": counted.Joules - m.Idle[0].Watts*counted.Seconds} {
		if got, err := strconv.ParseFloat(row[column], 64); err != nil || got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s is %q, want %g", column, row[column], want)
		}
	}
	if !(counted.Joules > 0) || !strings.HasPrefix(row["joules_source"], "measured: processors by ") {
		t.Errorf("%+v, source %q", counted, row["joules_source"])
	}
}
