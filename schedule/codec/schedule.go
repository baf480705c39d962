package codec

import (
	"fmt"
	"io"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/place"
)

// scheduleFile is the form of a schedule on disk.
type scheduleFile struct {
	Format      string         `json:"format"`
	World       schedule.World `json:"world"`
	Graph       string         `json:"graph"`
	Policy      string         `json:"policy"`
	Steps       int            `json:"steps"`
	MakespanNs  time.Duration  `json:"makespan_ns"`
	FirstStepNs time.Duration  `json:"first_step_ns"`
	PeriodNs    time.Duration  `json:"period_ns"`
	PeakBytes   []peakFile     `json:"peak_bytes"`
	Spans       []spanFile     `json:"spans"`
	Transfers   []transferFile `json:"transfers"`
	Evictions   []evictionFile `json:"evictions"`
	Changes     []changeFile   `json:"changes"` // absent: none
	Memory      []memoryFile   `json:"memory"`
}

type peakFile struct {
	Memory string `json:"memory"`
	Bytes  int64  `json:"bytes"`
}

type spanFile struct {
	Task    string        `json:"task"`
	Step    int32         `json:"step"`
	Worker  string        `json:"worker"`
	ReadyNs time.Duration `json:"ready_ns"`
	StartNs time.Duration `json:"start_ns"`
	EndNs   time.Duration `json:"end_ns"`
}

type transferFile struct {
	Buffer  string        `json:"buffer"`
	Pieces  []int32       `json:"pieces"` // of the buffer, in the order of the graph's atoms
	Bytes   int64         `json:"bytes"`
	From    string        `json:"from"`
	To      string        `json:"to"`
	For     string        `json:"for"`
	Step    int32         `json:"step"`
	Reason  place.Reason  `json:"reason,omitempty"`
	StartNs time.Duration `json:"start_ns"`
	EndNs   time.Duration `json:"end_ns"`
	Share   []int32       `json:"share,omitempty"` // which of how many of the only piece
}

type evictionFile struct {
	Buffer string        `json:"buffer"`
	Pieces []int32       `json:"pieces"`
	Bytes  int64         `json:"bytes"`
	Memory string        `json:"memory"`
	AtNs   time.Duration `json:"at_ns"`
}

// changeFile is a change of a device, a worker or a link.
type changeFile struct {
	Of      string        `json:"of"`
	Kind    string        `json:"kind"`
	State   string        `json:"state"`
	StartNs time.Duration `json:"start_ns"`
	EndNs   time.Duration `json:"end_ns"`
}

type memoryFile struct {
	Memory string        `json:"memory"`
	AtNs   time.Duration `json:"at_ns"`
	Bytes  int64         `json:"bytes"`
}

// WriteSchedule writes a schedule as JSON, one span on each line.
func WriteSchedule(w io.Writer, s *schedule.Schedule, g *dag.Graph, p *platform.Platform) error {
	l := newLineWriter(w)
	l.field("format", ScheduleFormat)
	l.field("world", s.World)
	l.field("graph", s.GraphHash)
	l.field("policy", s.Policy)
	l.field("steps", s.Steps)
	l.field("makespan_ns", s.Makespan)
	l.field("first_step_ns", s.FirstStep)
	l.field("period_ns", s.Period)
	l.list("peak_bytes", "[", "]", len(s.PeakBytes), func(i int) {
		l.value(peakFile{p.Memories[i].Name, s.PeakBytes[i]})
	})
	l.list("spans", "[", "]", len(s.Spans), func(i int) {
		x := &s.Spans[i]
		l.value(spanFile{g.Tasks[x.Task].Name, x.Step, p.Workers[x.Worker].Name, x.Ready, x.Start, x.End})
	})
	l.list("transfers", "[", "]", len(s.Transfers), func(i int) {
		x := &s.Transfers[i]
		var share []int32
		if x.Share.Of > 0 {
			share = []int32{x.Share.Part, x.Share.Of}
		}
		l.value(transferFile{g.Buffers[x.Buffer].Name, piecesOf(g, x.Buffer, x.Atoms), x.Bytes, p.Memories[x.From].Name, p.Memories[x.To].Name,
			g.Tasks[x.For].Name, x.Step, x.Reason, x.Start, x.End, share})
	})
	l.list("evictions", "[", "]", len(s.Evictions), func(i int) {
		x := &s.Evictions[i]
		l.value(evictionFile{g.Buffers[x.Buffer].Name, piecesOf(g, x.Buffer, x.Atoms), x.Bytes, p.Memories[x.Memory].Name, x.At})
	})
	if len(s.Changes) > 0 {
		l.list("changes", "[", "]", len(s.Changes), func(i int) {
			x := &s.Changes[i]
			l.value(changeFile{x.Of(p), x.Kind.String(), x.StateName(p), x.Start, x.End})
		})
	}
	l.list("memory", "[", "]", len(s.Memory), func(i int) {
		x := &s.Memory[i]
		l.value(memoryFile{p.Memories[x.Memory].Name, x.At, x.Bytes})
	})
	if err := l.close(); err != nil {
		return fmt.Errorf("write the schedule of graph %q: %w", g.Name, err)
	}
	return nil
}

// piecesOf numbers atoms within their storage.
func piecesOf(g *dag.Graph, storage dag.BufferID, atoms []int32) []int32 {
	first, _ := g.StorageAtoms(storage)
	pieces := make([]int32, len(atoms))
	for k, a := range atoms {
		pieces[k] = a - int32(first)
	}
	return pieces
}

// ReadSchedule reads a schedule of a graph on a platform. name is the file's, for
// errors. audit.Check says whether it is sound.
func ReadSchedule(r io.Reader, name string, g *dag.Graph, p *platform.Platform) (*schedule.Schedule, error) {
	var f scheduleFile
	if err := decode(r, name, &f); err != nil {
		return nil, err
	}
	if err := checkHeader(name, f.Format, ScheduleFormat, f.Graph, g); err != nil {
		return nil, err
	}
	if f.World != schedule.Simulated && f.World != schedule.Measured {
		return nil, fmt.Errorf("%s: world %q is not %q or %q", name, f.World, schedule.Simulated, schedule.Measured)
	}
	if f.Steps < 1 || f.Steps > max(1, len(f.Spans)) {
		return nil, fmt.Errorf("%s: %d steps with %d spans; there is at least one of each step", name, f.Steps, len(f.Spans))
	}
	s := &schedule.Schedule{World: f.World, GraphHash: f.Graph, Policy: f.Policy, Steps: f.Steps,
		Makespan: f.MakespanNs, FirstStep: f.FirstStepNs, Period: f.PeriodNs, PeakBytes: make([]int64, len(p.Memories))}
	n := newNames(name, g, p)
	for _, x := range f.PeakBytes {
		if m := n.memory(x.Memory); n.err == nil {
			s.PeakBytes[m] = x.Bytes
		}
	}
	for _, x := range f.Memory {
		s.Memory = append(s.Memory, schedule.Occupancy{Memory: n.memory(x.Memory), At: x.AtNs, Bytes: x.Bytes})
	}
	for i := range f.Spans {
		s.Spans = append(s.Spans, n.span(&f.Spans[i], f.Steps))
	}
	for i := range f.Transfers {
		s.Transfers = append(s.Transfers, n.transfer(&f.Transfers[i], g, f.Steps))
	}
	for i := range f.Evictions {
		s.Evictions = append(s.Evictions, n.eviction(&f.Evictions[i], g))
	}
	for i := range f.Changes {
		s.Changes = append(s.Changes, n.change(&f.Changes[i], p))
	}
	if n.err != nil {
		return nil, n.err
	}
	return s, nil
}

// kinds are the changes that a file may name.
var kinds = []schedule.ChangeKind{schedule.SwitchClock, schedule.FallAsleep, schedule.WakeUp}

// change reads a change. A device of one unit and its unit have one name, and mean the same.
func (n *names) change(x *changeFile, p *platform.Platform) schedule.Change {
	c := schedule.Change{Device: -1, Unit: -1, Link: -1, Start: x.StartNs, End: x.EndNs}
	kind := slices.IndexFunc(kinds, func(k schedule.ChangeKind) bool { return k.String() == x.Kind })
	if kind < 0 || x.StartNs < 0 || x.EndNs < x.StartNs {
		n.refuse("change %q of %q from %d to %d ns", x.Kind, x.Of, x.StartNs, x.EndNs)
		return c
	}
	c.Kind = kinds[kind]
	if d, ok := p.DeviceByName(x.Of); ok {
		c.Device = d
	} else if w, ok := p.WorkerByName(x.Of); ok {
		c.Device, c.Unit = p.Workers[w].Device, int32(p.Workers[w].Index)
	} else if l := slices.IndexFunc(p.Links, func(l platform.Link) bool { return l.Name == x.Of }); l >= 0 && c.Kind != schedule.SwitchClock {
		c.Link = platform.LinkID(l)
	} else {
		n.refuse("a change of %q: no device, worker or link of the platform has this name", x.Of)
		return c
	}
	to := -1
	if c.Kind == schedule.SwitchClock {
		to = slices.IndexFunc(p.Devices[c.Device].Clocks, func(k platform.Clock) bool { return k.Name == x.State })
	} else {
		to = slices.IndexFunc(c.SleepStates(p), func(s platform.SleepState) bool { return s.Name == x.State })
	}
	if to < 0 {
		n.refuse("change %q of %q: it has no state %q", x.Kind, x.Of, x.State)
	}
	c.To = int32(to)
	return c
}

func (n *names) span(x *spanFile, steps int) schedule.Span {
	s := schedule.Span{Task: n.task(x.Task), Step: x.Step, Worker: n.worker(x.Worker), Ready: x.ReadyNs, Start: x.StartNs, End: x.EndNs}
	if x.Step < 0 || int(x.Step) >= steps || x.StartNs < 0 || x.EndNs < x.StartNs {
		n.refuse("task %q in step %d of %d runs from %d to %d ns", x.Task, x.Step, steps, x.StartNs, x.EndNs)
	}
	return s
}

func (n *names) transfer(x *transferFile, g *dag.Graph, steps int) schedule.Transfer {
	t := schedule.Transfer{Buffer: n.buffer(x.Buffer), Bytes: x.Bytes, From: n.memory(x.From), To: n.memory(x.To), For: n.task(x.For),
		Step: x.Step, Reason: x.Reason, Start: x.StartNs, End: x.EndNs}
	if x.Step < 0 || int(x.Step) >= steps || x.StartNs < 0 || x.EndNs < x.StartNs || x.Bytes < 0 {
		n.refuse("transfer of %d bytes of %q in step %d of %d from %d to %d ns", x.Bytes, x.Buffer, x.Step, steps, x.StartNs, x.EndNs)
	}
	if len(x.Share) == 2 {
		t.Share = place.Share{Part: x.Share[0], Of: x.Share[1]}
	} else if len(x.Share) > 0 {
		n.refuse("transfer of %d bytes of %q of share %d; write which of how many, as in [0, 8]", x.Bytes, x.Buffer, x.Share)
	}
	t.Atoms = n.atoms(x.Buffer, t.Buffer, x.Pieces, g)
	return t
}

func (n *names) eviction(x *evictionFile, g *dag.Graph) schedule.Eviction {
	e := schedule.Eviction{Buffer: n.buffer(x.Buffer), Bytes: x.Bytes, Memory: n.memory(x.Memory), At: x.AtNs}
	if x.AtNs < 0 || x.Bytes < 0 {
		n.refuse("eviction of %d bytes of %q at %d ns", x.Bytes, x.Buffer, x.AtNs)
	}
	e.Atoms = n.atoms(x.Buffer, e.Buffer, x.Pieces, g)
	return e
}

// atoms are the pieces of a buffer.
func (n *names) atoms(name string, b dag.BufferID, pieces []int32, g *dag.Graph) []int32 {
	if n.err != nil {
		return nil
	}
	first, end := g.StorageAtoms(b)
	atoms := make([]int32, len(pieces))
	for i, piece := range pieces {
		if piece < 0 || piece >= int32(end-first) {
			n.refuse("buffer %q has %d pieces; this one is number %d", name, end-first, piece)
		}
		atoms[i] = int32(first) + piece
	}
	return atoms
}
