package plan_test

import (
	"reflect"
	"testing"

	"dahl/energy"
	"dahl/energy/meter"
	"dahl/plan"
)

// TestReadingsOf: processors of two machines are counted together, once for each machine, and not at all if a machine lacks its meter.
func TestReadingsOf(t *testing.T) {
	cores := func(joules float64) meter.Reading {
		return meter.Reading{Of: energy.ProcessorsMeter, Meter: "RAPL", Joules: joules, Seconds: 2, ErrorJoules: 1}
	}
	gpu := meter.Reading{Of: "n1.gpu0", Joules: 19, Seconds: 2}
	nodes := []plan.RankMeasured{
		{Node: "n0", Readings: []meter.Reading{cores(7)}},
		{Node: "n1", Readings: []meter.Reading{cores(7), gpu}, SharesMeters: true},
		{Node: "n2", Readings: []meter.Reading{cores(11)}},
	}
	for i := range nodes {
		nodes[i].KeepOwn()
	}
	sum := cores(18)
	sum.ErrorJoules = 2
	if got, want := plan.ReadingsOf(nodes), []meter.Reading{sum, gpu}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	nodes[2].Readings = nil
	if got, want := plan.ReadingsOf(nodes), []meter.Reading{gpu}; !reflect.DeepEqual(got, want) {
		t.Errorf("without a meter on a machine: %+v, want %+v", got, want)
	}
}
