package grid

import (
	"fmt"
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/energy"
	"dahl/energy/meter"
	"dahl/plan"
	"dahl/platform"
	"dahl/rundir/experiment"
	"dahl/schedule/place"
)

// TestMeteredRow: where meters cover all devices, the joules are theirs. 70 J in 2 s over 2 epochs are 35 J per epoch; with
// 10 W idle 50 J are above. With a GPU that has no meter the joules are those of the platform's powers, 40.
func TestMeteredRow(t *testing.T) {
	p := &platform.Platform{Devices: []platform.Device{{Name: "cpu", Kind: platform.CPU, Count: 3}}}
	s := &record.Summary{EnergyJ: record.EnergySummary{Total: 40, Basis: energy.Modelled, Grounds: "modelled", PerSample: 0.5,
		Readings: []meter.Reading{{Of: energy.ProcessorsMeter, Meter: "RAPL", Joules: 70, Seconds: 2, ErrorJoules: 0.25}}}, Trained: &record.TrainedSummary{Epochs: 2}}
	by := &Manifest{Idle: []IdlePower{{Of: energy.ProcessorsMeter, Meter: "RAPL", Watts: 10}}}
	check := func(want map[experiment.Column]float64, source string) {
		t.Helper()
		row := experiment.NewRow(&experiment.Cell{}, experiment.OK, "")
		FillJoules(&row, s, p, by)
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
// two processors of 3 and 5 units, 60 % and 20 % busy, (3·0.6 + 5·0.2)/8 = 35 %. Of 97 B in 5 steps 7 B came before the first and 10 B went
// home behind the last: (97 - 7 - 10)/5 = 16 B. The GPU has 11 B; a machine without one has 70 B on the fullest device.
func TestUseRow(t *testing.T) {
	p := &platform.Platform{Devices: []platform.Device{{Name: "a", Kind: platform.CPU, Count: 3}, {Name: "b", Kind: platform.CPU, Count: 5}, {Name: "g", Kind: platform.Emulated, Count: 1, Memory: 1}}, Memories: []platform.Memory{{Name: "ram"}, {Name: "vram"}}}
	s := &record.Summary{Busy: map[string]float64{"a": 0.6, "b": 0.2, "g": 0.7}, LivePeakBytes: map[string]int64{"ram": 30, "vram": 11}, ReservedBytes: map[string]int64{"ram": 70},
		Steps: 5, BytesMoved: 97, TransfersByReason: map[place.Reason]plan.TransferTotal{place.ReasonEnter: {Bytes: 7}, place.ReasonLeave: {Bytes: 10}}}
	row := experiment.NewRow(nil, experiment.OK, "")
	fillUse(&row, s, p)
	for column, want := range map[experiment.Column]float64{experiment.CPUShare: 35, experiment.GPUShare: 70, experiment.PeakMemory: 81, experiment.FullestDevice: 11, experiment.BytesMoved: 16} {
		if got := row.Values[column]; fmt.Sprintf("%.6g", got) != fmt.Sprint(want) {
			t.Errorf("%s is %g, want %g", column, got, want)
		}
	}
	s.Work = &record.StepWork{Tasks: 7, Bytes: 40, Waves: 3, Tail: 0.25}
	FillTimes(&row, s)
	for column, want := range map[experiment.Column]float64{experiment.Tasks: 7, experiment.TouchedBytes: 40, experiment.Waves: 3, experiment.Tail: 25} {
		if row.Values[column] != want {
			t.Errorf("%s is %g, want %g", column, row.Values[column], want)
		}
	}
	s.LivePeakBytes = map[string]int64{"ram": 30, "vram": 0}
	row = experiment.NewRow(nil, experiment.OK, "")
	if fillUse(&row, s, p); row.Values[experiment.FullestDevice] != 70 {
		t.Errorf("the fullest device has %g B, want 70", row.Values[experiment.FullestDevice])
	}
	p.Devices = p.Devices[:1]
	s.Trained, s.Load = &record.TrainedSummary{PeakBytes: 1234}, &record.LoadSummary{OwnCores: 1.5, Cores: 7}
	row = experiment.NewRow(nil, experiment.OK, "")
	fillUse(&row, s, p)
	if row.Values[experiment.CPUShare] != 50 || row.Values[experiment.PeakMemory] != 1234 || row.Values[experiment.GPUShare] == row.Values[experiment.GPUShare] {
		t.Errorf("%+v", row.Values)
	}
}
