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
	"dahl/cmd/dahl/record"
	"dahl/cmd/grid"
	"dahl/energy"
	"dahl/energy/meter"
	"dahl/execute/host"
	"dahl/must"
	"dahl/platform"
	"dahl/rundir/experiment"
	"dahl/train"
)

// powercapTree names a directory that has the energy counters of the machine, for a process that is dahl.
const powercapTree = "DAHL_TEST_POWERCAP"

// fakePowercap makes the files of a directory the energy counters of the processors; "": those of this machine.
func fakePowercap(dir string) {
	if dir != "" {
		startMeters = func(p *platform.Platform) *train.Meters { return train.StartMetersAt(dir, p) }
		idleWindow = 50 * time.Millisecond
	}
}

// restoreMeters puts back what [fakePowercap] replaced.
func restoreMeters(start func(*platform.Platform) *train.Meters, window time.Duration) {
	startMeters, idleWindow = start, window
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
	defer restoreMeters(startMeters, idleWindow)
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

// TestMeteredRow: where meters cover all devices, the joules are theirs. 70 J in 2 s over 2 epochs are 35 J per epoch; with
// 10 W idle 50 J are above. With a GPU that has no meter the joules are those of the platform's powers, 40.
func TestMeteredRow(t *testing.T) {
	p := &platform.Platform{Devices: []platform.Device{{Name: "cpu", Kind: platform.CPU, Count: 3}}}
	s := &record.Summary{EnergyJ: record.EnergySummary{Total: 40, Basis: energy.Modelled, Grounds: "modelled", PerSample: 0.5,
		Readings: []meter.Reading{{Of: energy.ProcessorsMeter, Meter: "RAPL", Joules: 70, Seconds: 2, ErrorJoules: 0.25}}}, Trained: &record.TrainedSummary{Epochs: 2}}
	by := &grid.Manifest{Idle: []grid.IdlePower{{Of: energy.ProcessorsMeter, Meter: "RAPL", Watts: 10}}}
	check := func(want map[experiment.Column]float64, source string) {
		t.Helper()
		row := experiment.NewRow(&experiment.Cell{}, experiment.OK, "")
		fillJoules(&row, s, p, by)
		for column, v := range want {
			if got := row.Values[column]; fmt.Sprint(got) != fmt.Sprint(v) {
				t.Errorf("%s is %g, want %g", column, got, v)
			}
		}
		if row.JoulesSource != source {
			t.Errorf("source %q, want %q", row.JoulesSource, source)
		}
	}
	nan := experiment.NewRow(nil, "", "").Values[0]
	check(map[experiment.Column]float64{experiment.Joules: 70, experiment.JoulesPerEpoch: 35, experiment.JoulesAboveIdle: 50, experiment.JoulesError: 0.25, experiment.JoulesPerSample: 0.5},
		"measured: processors by RAPL")
	by.Idle = nil
	check(map[experiment.Column]float64{experiment.Joules: 70, experiment.JoulesAboveIdle: nan}, "measured: processors by RAPL")
	p.Devices = append(p.Devices, platform.Device{Name: "gpu", Kind: platform.CUDA, Count: 1})
	check(map[experiment.Column]float64{experiment.Joules: 40, experiment.JoulesPerEpoch: 20, experiment.JoulesError: nan}, "modelled")
	s.EnergyJ.Basis = energy.Unavailable
	check(map[experiment.Column]float64{experiment.Joules: nan, experiment.JoulesPerSample: nan}, "modelled")
}

// TestUseRow: a training that kept 1.5 of its 3 cores busy used 50 %; a simulated step is busy as its schedule says: on
// two processors of 3 and 5 units, 60 % and 20 % busy, (3·0.6 + 5·0.2)/8 = 35 %.
func TestUseRow(t *testing.T) {
	p := &platform.Platform{Devices: []platform.Device{{Name: "a", Kind: platform.CPU, Count: 3}, {Name: "b", Kind: platform.CPU, Count: 5}, {Name: "g", Kind: platform.Emulated, Count: 1}}}
	s := &record.Summary{Busy: map[string]float64{"a": 0.6, "b": 0.2, "g": 0.7}, LivePeakBytes: map[string]int64{"ram": 30, "vram": 11}, ReservedBytes: map[string]int64{"ram": 70}}
	row := experiment.NewRow(nil, experiment.OK, "")
	fillUse(&row, s, p)
	for column, want := range map[experiment.Column]float64{experiment.CPUShare: 35, experiment.GPUShare: 70, experiment.PeakMemory: 81} {
		if got := row.Values[column]; fmt.Sprintf("%.6g", got) != fmt.Sprint(want) {
			t.Errorf("%s is %g, want %g", column, got, want)
		}
	}
	p.Devices = p.Devices[:1]
	s.Trained, s.Load = &record.TrainedSummary{PeakBytes: 1234}, record.NewLoadSummary(host.Load{Own: 3 * time.Second, Window: 2 * time.Second}, 3)
	s.Load.Cores = 7
	row = experiment.NewRow(nil, experiment.OK, "")
	fillUse(&row, s, p)
	if row.Values[experiment.CPUShare] != 50 || row.Values[experiment.PeakMemory] != 1234 || row.Values[experiment.GPUShare] == row.Values[experiment.GPUShare] {
		t.Errorf("%+v", row.Values)
	}
}
