package certificate

import (
	"math"
	"slices"

	"dahl/plan/problem"
)

// A model relaxes another if every plan of the other, read task by task by the names of devices and the
// clocks, is a plan of this one that costs no more. What is proved of all its plans then holds for the
// other's, and no proof of the other is needed.
//
// A worked example. A graph gives each task 3 ns on any core of a processor whose cores draw 2 W busy and
// 1 W idle. A plan on two of its four cores runs on all four as well: the same tasks on the same cores,
// and the two others idle, as they do in the joules of the plan on two. So "" relaxes "cpu:2".
//
// Times may depend on the number of units: by a roofline, through the bandwidth of each unit, or by measurements with several
// busy units. Then a set with more units has longer times, and does not relax a set with fewer. It does relax sets with other
// numbers of units at other memories, and sets without some device that shares no memory with the others.

// asMuch is how far a number may be above another and count as no more, relative to it. Rounding in sums of
// watts stays far below, and what [Model.Cost] takes off each of them is ten times as much.
const asMuch = 1e-13

func noMore(a, b float64) bool { return a <= b+float64(asMuch*math.Abs(b)) }

// Relaxes reports whether m relaxes another model. It may say no of models of which it is true.
func (m *Model) Relaxes(other *Model) bool {
	if m.Objective != other.Objective || m.Steady != other.Steady || m.mostSpan != other.mostSpan || len(m.Tasks) != len(other.Tasks) {
		return false
	}
	if m.Objective != problem.Time && !noMore(m.FloorWatts, other.FloorWatts) {
		return false
	}
	same := make([]int, len(other.Devices)) // by device of the other: m's of that name, or -1
	for d := range same {
		same[d] = m.deviceAs(&other.Devices[d])
	}
	return m.relaxesMemories(other) && m.sameData(other) && m.relaxesTasks(other, same)
}

// sameData reports whether tasks read the same of each other in two models, as they do in all models of a graph on one machine.
func (m *Model) sameData(other *Model) bool {
	return slices.EqualFunc(m.Edges, other.Edges, sameEdge) && slices.EqualFunc(m.Versions, other.Versions, sameVersion)
}

func sameEdge(a, b Edge) bool {
	return compareEdges(&a, &b) == 0 && a.Bytes == b.Bytes && slices.Equal(a.Nanos, b.Nanos)
}

func sameVersion(a, b Version) bool {
	return a.Writer == b.Writer && a.Home == b.Home && a.Bytes == b.Bytes && slices.Equal(a.Readers, b.Readers) && slices.Equal(a.Nanos, b.Nanos)
}

// deviceAs is the device with the name and memory of another model's, and no fewer units; -1 means there is none.
func (m *Model) deviceAs(other *Device) int {
	return slices.IndexFunc(m.Devices, func(d Device) bool {
		return d.Name == other.Name && d.Memory == other.Memory && d.Units >= other.Units
	})
}

// relaxesMemories reports whether bytes get into every memory with a device as fast and for as little.
func (m *Model) relaxesMemories(other *Model) bool {
	if len(m.Memories) != len(other.Memories) {
		return false
	}
	for at := range m.Memories {
		a, b := &m.Memories[at], &other.Memories[at]
		if !other.computesAt(at) {
			continue
		}
		if a.Engines > 0 && (b.Engines == 0 || a.Engines < b.Engines) ||
			m.Objective != problem.Time && !noMore(a.NanojoulesPerByte, b.NanojoulesPerByte) {
			return false
		}
	}
	return true
}

// computesAt reports whether some device is at a memory, so that something may move there.
func (m *Model) computesAt(memory int) bool {
	return slices.ContainsFunc(m.Devices, func(d Device) bool { return d.Memory == memory })
}

// relaxesTasks reports whether m has every option of the other, by devices of m that are the other's, and for
// no more.
//
// A device that any unit keeps awake is awake no longer than its tasks take together. So if m draws more watts awake and less
// for each task, savings of tasks make up for the watts during their time.
func (m *Model) relaxesTasks(other *Model, same []int) bool {
	for t := range other.Tasks {
		for k := range other.Tasks[t].Options {
			b := &other.Tasks[t].Options[k]
			if same[b.Device] < 0 {
				return false
			}
			at := slices.IndexFunc(m.Tasks[t].Options, func(o Option) bool { return o.Device == same[b.Device] && o.Clock == b.Clock })
			if at < 0 {
				return false
			}
			a := &m.Tasks[t].Options[at]
			if a.Nanos > b.Nanos {
				return false
			}
			more := m.moreAwake(other, a.Device, b.Device)
			if m.Objective != problem.Time && (a.AwakeNanos > b.AwakeNanos || !noMore(a.Nanojoules+float64(more*float64(b.AwakeNanos)), b.Nanojoules)) {
				return false
			}
		}
	}
	return true
}
