package plan

import (
	"slices"

	"dahl/energy"
	"dahl/energy/meter"
)

// RankMeasured has the measurements of the process of one node of a cluster during a run.
type RankMeasured struct {
	Node    string  `json:"node"`
	Machine string  `json:"machine"` // on which the process ran
	Seconds float64 `json:"seconds"` // in the runs of graphs, by its own clock
	// ClockErrorS is how far its clock may be off the clock of the first process.
	ClockErrorS float64            `json:"clock_error_s"`
	PeakBytes   int64              `json:"peak_resident_bytes"` // of the process
	Readings    []meter.Reading    `json:"readings,omitempty"`
	Meters      []meter.MeterState `json:"meters,omitempty"`
	// SharesMeters: another process of the same machine has read the meter of the processors.
	SharesMeters bool `json:"shares_meters,omitempty"`
}

// KeepOwn leaves the meter of the processors out where another process of the machine reads it.
func (n *RankMeasured) KeepOwn() {
	if n.SharesMeters {
		n.Readings = slices.DeleteFunc(n.Readings, func(r meter.Reading) bool { return r.Of == energy.ProcessorsMeter })
		n.Meters = slices.DeleteFunc(n.Meters, func(m meter.MeterState) bool { return m.Of == energy.ProcessorsMeter })
	}
}

// ReadingsOf are the readings of all nodes. The processors of a cluster have one reading, the sum over its machines. They have none if a machine has not
// counted them.
func ReadingsOf(nodes []RankMeasured) (all []meter.Reading) {
	var processors meter.Reading
	counted := true
	for i := range nodes {
		own := slices.IndexFunc(nodes[i].Readings, func(r meter.Reading) bool { return r.Of == energy.ProcessorsMeter })
		for k, r := range nodes[i].Readings {
			if k != own {
				all = append(all, r)
				continue
			}
			processors.Of, processors.Meter = r.Of, r.Meter
			processors.Joules, processors.ErrorJoules, processors.Seconds = processors.Joules+r.Joules, processors.ErrorJoules+r.ErrorJoules, max(processors.Seconds, r.Seconds)
		}
		counted = counted && (own >= 0 || nodes[i].SharesMeters)
	}
	if counted && processors.Of != "" {
		all = append([]meter.Reading{processors}, all...)
	}
	return all
}
