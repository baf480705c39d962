package energy

import (
	"cmp"
	"slices"
	"strings"

	"dahl/energy/meter"
	"dahl/platform"
	"dahl/schedule"
)

// Basis says how a number of joules was found.
type Basis string

// The bases. Unavailable means that some part of the number has no known power.
const (
	Modelled    Basis = "modelled"
	Measured    Basis = "measured"
	Unavailable Basis = "unavailable"
)

// Report is the energy of one schedule: of all steps of a run, or of some.
type Report struct {
	// Steps is the number of steps of the schedule, and all joules belong to these. In a training they begin with FirstStep,
	// from 1, in an epoch, from 1; both are 0 in a simulated run.
	Steps     int `json:"steps"`
	Epoch     int `json:"epoch,omitempty"`
	FirstStep int `json:"first_step,omitempty"`

	TotalJoules     float64 `json:"total_joules"`
	Basis           Basis   `json:"basis"`
	MakespanSeconds float64 `json:"makespan_s"`
	MeanWatts       float64 `json:"mean_watts"`

	Causes   Causes  `json:"causes"`
	ByDevice []Entry `json:"by_device"` // in the order of the platform
	ByLink   []Entry `json:"by_link"`
	ByNode   []Entry `json:"by_node,omitempty"` // of a cluster: its host, its devices, its links
	ByPhase  []Entry `json:"by_phase"`          // in the order of the graph; tasks and transfers, without waiting
	ByLayer  []Entry `json:"by_layer"`

	Sources []PowerSource `json:"sources"`            // where each power comes from
	Missing []string      `json:"missing"`            // devices, links and host whose power is not known
	Caps    []Cap         `json:"caps,omitempty"`     // of the machine, then of devices
	LeftOff []string      `json:"left_off,omitempty"` // devices that were not selected and are off; the host's joules have theirs
	// LeftAsleep names devices with units that were not selected and sleep; the host's joules have theirs.
	LeftAsleep []string `json:"left_asleep,omitempty"`

	// SleepModelled names devices and links whose sleep in a measured run nobody has seen: it is the
	// platform's description of what they do in the gaps.
	SleepModelled []string `json:"sleep_modelled,omitempty"`

	// Readings are joules that meters counted during the run, and Metered has the model's over the same span. The schedule may be
	// a part of what they cover: their seconds say how long it was.
	Readings []meter.Reading `json:"readings"`
	Metered  []MeterError    `json:"metered,omitempty"`
	// Meters says of every counter what became of it.
	Meters []meter.MeterState `json:"meters,omitempty"`
}

// Causes splits the total.
type Causes struct {
	Idle     float64 `json:"idle_joules"`     // waiting units, idle power of links
	Busy     float64 `json:"busy_joules"`     // running units
	Transfer float64 `json:"transfer_joules"` // links above idle
	Host     float64 `json:"host_joules"`     // the baseline
	// Sleep has the joules asleep or off, Switching the joules of changes above idle power.
	Sleep     float64 `json:"sleep_joules,omitempty"`
	Switching float64 `json:"switching_joules,omitempty"`
}

// Entry is the energy of one device, link, node, phase or layer.
type Entry struct {
	Name           string  `json:"name"`
	Joules         float64 `json:"joules"`
	IdleJoules     float64 `json:"idle_joules,omitempty"`
	BusyJoules     float64 `json:"busy_joules,omitempty"`
	TransferJoules float64 `json:"transfer_joules,omitempty"`
	HostJoules     float64 `json:"host_joules,omitempty"` // of a node
	// SleepJoules are drawn asleep or off, SwitchingJoules by changes of its clock and of sleep, above idle power.
	SleepJoules     float64 `json:"sleep_joules,omitempty"`
	SwitchingJoules float64 `json:"switching_joules,omitempty"`
	Off             bool    `json:"off,omitempty"` // a device that the run does not use
	Basis           Basis   `json:"basis"`
}

// PowerSource says where the watts of a device, link or host come from. With Calls set it says
// where the joules of the device's calls come from.
type PowerSource struct {
	Name   string `json:"name"`
	Calls  bool   `json:"calls,omitempty"`
	Source string `json:"source"` // measured, datasheet, guess; of calls also graph, fit
}

// FromSchedule integrates the platform's powers over a schedule. It fails when the schedule does
// not fit the problem: a task or worker that does not exist, a time outside the run, or a
// transfer without a route.
func FromSchedule(s *schedule.Schedule, prob *schedule.Problem) (*Report, error) {
	a, err := newAccount(s, prob, true)
	if err != nil {
		return nil, err
	}
	r := &Report{Steps: s.Steps, Basis: Modelled, MakespanSeconds: s.Makespan.Seconds(), Missing: []string{}, Readings: []meter.Reading{}}
	if s.World == schedule.Measured {
		r.SleepModelled = prob.SleepModelled()
	}
	r.addSources(a)
	r.addConsumers(a)
	r.addNodes(a)
	r.addLabels(a)
	r.Caps = a.caps()
	r.LeftOff, r.LeftAsleep = prob.Platform.LeftOff, prob.Platform.LeftAsleep
	if s.Makespan > 0 {
		r.MeanWatts = r.TotalJoules / r.MakespanSeconds
	}
	return r, nil
}

// Joules is the total of the report of a schedule. It fails where [FromSchedule] does.
func Joules(s *schedule.Schedule, prob *schedule.Problem) (float64, error) {
	a, err := newAccount(s, prob, false)
	if err != nil {
		return 0, err
	}
	var r Report
	r.addConsumers(a)
	return r.TotalJoules, nil
}

// addSources lists the sources of all powers and the consumers without any. If a device lacks a
// power, the run has no total.
func (r *Report) addSources(a *account) {
	pl := a.p.Platform
	add := func(name string, s platform.Source) bool {
		if s == "" {
			r.Missing = append(r.Missing, name)
			return false
		}
		r.Sources = append(r.Sources, PowerSource{Name: name, Source: string(s)})
		return true
	}
	add("host", pl.HostWatts().Source)
	for i := range pl.Devices {
		if !add(pl.Devices[i].Name, pl.Devices[i].PowerSource) {
			r.Basis = Unavailable
		}
	}
	for i := range pl.Links {
		add(pl.Links[i].Name, pl.Links[i].PowerSource)
	}
	seen := map[PowerSource]bool{}
	for i := range a.s.Spans {
		if a.spanCallJ[i] == 0 {
			continue
		}
		d := a.device(i)
		cost, _ := a.p.Costs.Of(a.s.Spans[i].Task, d)
		s := PowerSource{Name: pl.Devices[d].Name, Calls: true, Source: string(cost.Source)}
		if !seen[s] {
			seen[s] = true
			r.Sources = append(r.Sources, s)
		}
	}
}

func (a *account) device(span int) platform.DeviceID {
	return a.p.Platform.Workers[a.s.Spans[span].Worker].Device
}

// newEntry is the energy of a consumer whose power has a source, or none.
func newEntry(name string, power platform.Source) Entry {
	if power == "" {
		return Entry{Name: name, Basis: Unavailable}
	}
	return Entry{Name: name, Basis: Modelled}
}

// addConsumers sums by device and link, and so by cause and in all.
func (r *Report) addConsumers(a *account) {
	r.ByDevice, r.ByLink = a.devices, a.links
	for i, joules := range a.spanJ {
		r.ByDevice[a.device(i)].BusyJoules += joules
	}
	for _, list := range [][]Entry{r.ByDevice, r.ByLink} {
		for i := range list {
			e := &list[i]
			e.Joules = e.IdleJoules + e.BusyJoules + e.TransferJoules + e.SleepJoules + e.SwitchingJoules
			r.Causes.Idle += e.IdleJoules
			r.Causes.Busy += e.BusyJoules
			r.Causes.Transfer += e.TransferJoules
			r.Causes.Sleep += e.SleepJoules
			r.Causes.Switching += e.SwitchingJoules
		}
	}
	r.Causes.Host = a.hostJ
	r.TotalJoules = r.Causes.Idle + r.Causes.Busy + r.Causes.Transfer + r.Causes.Host + r.Causes.Sleep + r.Causes.Switching
}

// groups sums entries by name in the order in which the names come up.
type groups struct {
	at   map[string]int
	list []Entry
}

func (g *groups) entry(name string) *Entry {
	name = cmp.Or(name, "(none)")
	i, ok := g.at[name]
	if !ok {
		i = len(g.list)
		g.at[name] = i
		g.list = append(g.list, Entry{Name: name, Basis: Modelled})
	}
	return &g.list[i]
}

// addLabels sums the joules of tasks and of the transfers for them, by phase and layer.
func (r *Report) addLabels(a *account) {
	tasks := a.p.Graph.Tasks
	phases, layers := groups{at: map[string]int{}}, groups{at: map[string]int{}}
	for i := range tasks {
		phases.entry(tasks[i].Labels.Phase)
		layers.entry(tasks[i].Labels.Layer)
	}
	for i, joules := range a.spanJ {
		labels := tasks[a.s.Spans[i].Task].Labels
		known := a.spanCallJ[i] != 0 || a.p.Platform.Devices[a.device(i)].PowerSource != ""
		for _, e := range []*Entry{phases.entry(labels.Phase), layers.entry(labels.Layer)} {
			e.BusyJoules += joules
			if !known {
				e.Basis = Unavailable
			}
		}
	}
	for i, joules := range a.transferJ {
		labels := tasks[a.s.Transfers[i].For].Labels
		phases.entry(labels.Phase).TransferJoules += joules
		layers.entry(labels.Layer).TransferJoules += joules
	}
	r.ByPhase, r.ByLayer = phases.list, layers.list
	for _, list := range [][]Entry{r.ByPhase, r.ByLayer} {
		for i := range list {
			list[i].Joules = list[i].BusyJoules + list[i].TransferJoules
		}
	}
}

// Grounds says in words how the joules of the schedule were found, such as "modelled, watts
// guessed". Where the sources of the watts differ, it names all of them; Sources assigns them. It also names a host without
// watts, since a host draws some.
func (r *Report) Grounds() string {
	if r.Basis == Unavailable {
		return "joules unavailable: no watts for " + strings.Join(r.Missing, ", ")
	}
	var words []string
	for _, s := range r.Sources {
		if word := sourceWords[s.Source]; !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	text := string(r.Basis) + ", watts " + strings.Join(words, " and ")
	if slices.Contains(r.Missing, "host") {
		text += ", without the host"
	}
	if len(r.SleepModelled) > 0 {
		text += ", sleep of " + strings.Join(r.SleepModelled, ", ") + " not seen but modelled"
	}
	return text
}

// sourceWords completes "watts", by PowerSource.Source.
var sourceWords = map[string]string{
	string(platform.Guess): "guessed", string(platform.Datasheet): "from data sheets", string(platform.Measured): "measured",
	string(schedule.FromGraph): "given by the graph", string(schedule.FromFit): "fitted",
}
