package certificate

import (
	"errors"
	"slices"
)

// Join is a model that relaxes each of some models of one graph: a device has its largest number of units, and a task has all
// options, each with its least time and fewest joules. So one proof bounds the plans of sets of devices with similar costs,
// such as 24 and 36 cores.
//
// Watts that a device draws while any unit is awake are the most of all models. A model may have fewer. The watts of a single
// unit, for instance, are all its own. Then its tasks draw as much less for their time.
func Join(models ...*Model) (*Model, error) {
	joined := *models[0]
	if len(models) == 1 {
		return &joined, nil
	}
	joined.Devices, joined.Memories, joined.Tasks = nil, slices.Clone(joined.Memories), make([]Task, len(joined.Tasks))
	for _, m := range models {
		if len(m.Tasks) != len(joined.Tasks) || len(m.Memories) != len(joined.Memories) || !m.sameData(&joined) {
			return nil, errors.New("models of unlike graphs, or of machines with unlike memories, cannot be joined")
		}
		joined.FloorWatts, joined.CrossingNanos = min(joined.FloorWatts, m.FloorWatts), min(joined.CrossingNanos, m.CrossingNanos)
		joined.joinMemories(m)
		joined.joinDevices(m)
	}
	for _, m := range models {
		joined.joinTasks(m)
	}
	joined.number()
	return &joined, nil
}

// joinMemories takes what limits copies the least. The memories of a model without a device there say nothing.
func (m *Model) joinMemories(other *Model) {
	for at := range other.Memories {
		to, of := &m.Memories[at], &other.Memories[at]
		switch {
		case !other.computesAt(at):
		case !m.computesAt(at):
			*to = *of
		default:
			to.NanojoulesPerByte = min(to.NanojoulesPerByte, of.NanojoulesPerByte)
			if to.Engines > 0 { // 0 is no limit
				to.Engines = max(to.Engines, of.Engines) * min(1, of.Engines)
			}
		}
	}
}

// joinDevices adds the devices of a model.
func (m *Model) joinDevices(other *Model) {
	for _, d := range other.Devices {
		i := slices.IndexFunc(m.Devices, func(is Device) bool { return is.Name == d.Name })
		if i < 0 {
			m.Devices = append(m.Devices, d)
			continue
		}
		m.Devices[i].Units = max(m.Devices[i].Units, d.Units)
		m.Devices[i].AwakeWatts = max(m.Devices[i].AwakeWatts, d.AwakeWatts)
	}
}

// joinTasks adds the options of a model's tasks. All devices are known.
func (m *Model) joinTasks(other *Model) {
	device := make([]int, len(other.Devices))
	for d := range device {
		device[d] = slices.IndexFunc(m.Devices, func(is Device) bool { return is.Name == other.Devices[d].Name })
	}
	for t := range other.Tasks {
		for _, o := range other.Tasks[t].Options {
			o.Nanojoules -= float64(m.moreAwake(other, device[o.Device], o.Device) * float64(o.AwakeNanos))
			o.Device = device[o.Device]
			to := &m.Tasks[t]
			i := slices.IndexFunc(to.Options, func(is Option) bool { return is.Device == o.Device && is.Clock == o.Clock })
			if i < 0 {
				to.Options = append(to.Options, o)
				continue
			}
			to.Options[i].atMost(o)
		}
	}
}

// moreAwake returns by how much a device of m draws more, while awake, than a device of another model.
func (m *Model) moreAwake(other *Model, d, of int) float64 {
	return max(0, below(m.Devices[d].AwakeWatts)-below(other.Devices[of].AwakeWatts))
}
