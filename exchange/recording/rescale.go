package recording

import (
	"fmt"
	"math"
	"strings"
	"time"

	"dahl/dag"
	"dahl/naming"
	"dahl/platform"
)

// Rescaled says what [Rescale] did.
type Rescaled struct {
	From, To string // names of the machines
	Changed  bool   // whether any time is another one than recorded
	Scaled   int    // tasks whose work is known
	Kept     int    // other tasks of GPUs, and of operators
	KeptNs   int64  // time of these
	Ns       int64  // of all tasks, as recorded
	Hosts    int    // tasks of hosts without work of operators
}

func (r Rescaled) String() string {
	return fmt.Sprintf("recorded on %s: the times of %s follow the rooflines of both, to %s; kept as recorded are %s of the host, and %s without known work, which take %.1f %% of all time",
		r.From, naming.Count(r.Scaled, "task"), r.To, naming.Count(r.Hosts, "task"), naming.Count(r.Kept, "task"), 100*float64(r.KeptNs)/float64(max(1, r.Ns)))
}

// Rescale gives the tasks of a recording the times that they would take on another machine. The time of an operator or a kernel follows the
// rooflines of both devices: the longer of its flop by the speed and its bytes by the bandwidth. The time of a copy follows the
// routes. Gaps before work stay, and so does time without known work. The recorded time holds the cost of starting a task, so the dispatch of the other
// machine is subtracted. The result has costs for the devices of the other machine, and is the graph itself if no time differs.
func Rescale(g *dag.Graph, from, to *platform.Platform) (*dag.Graph, Rescaled, error) {
	out := Rescaled{From: from.Name, To: to.Name}
	b := dag.NewBuilder(g.Name)
	b.Grow(len(g.Tasks), len(g.Buffers))
	for _, buffer := range g.Buffers {
		if buffer.ViewOf == dag.None {
			b.Buffer(buffer)
		} else {
			b.View(buffer.Name, buffer.ViewOf, buffer.Shape...)
		}
	}
	s := scale{from: from, to: to}
	for i := range g.Tasks {
		k := g.Tasks[i]
		if len(k.Costs) == 1 && k.Costs[0].Key == dag.AnyDevice && k.Placement != nil {
			s.task(&k, &out)
		}
		b.Task(k)
	}
	if !out.Changed {
		return g, out, nil
	}
	scaled, err := b.Build()
	return scaled, out, err
}

// scale leads from one machine to another.
type scale struct{ from, to *platform.Platform }

// task gives a task a cost for each device of the other machine on which it may run.
func (s scale) task(k *dag.Task, out *Rescaled) {
	ns := k.Costs[0].Ns
	out.Ns += ns
	source, ok := placed(s.from, k.Placement.Device)
	if !ok {
		out.Kept, out.KeptNs = out.Kept+1, out.KeptNs+ns
		return
	}
	gap, _ := k.Params.Get(gapParam)
	var costs []dag.Cost
	known, same := false, true
	for d := range s.to.Devices {
		target := &s.to.Devices[d]
		if target.Name != k.Placement.Device && target.Kind != k.Placement.Device {
			continue
		}
		ratio := s.ratio(k, source, target)
		known = known || ratio > 0
		if !(ratio > 0) {
			ratio = 1
		}
		time := int64(math.Round(gap+(float64(ns)-gap)*ratio)) - int64((target.Dispatch-source.Dispatch)/time.Nanosecond)
		costs = append(costs, dag.Cost{Key: target.Name, Ns: max(0, time)})
		same = same && max(0, time) == ns
	}
	switch {
	case known:
		out.Scaled++
	case strings.HasPrefix(k.Op, hostWork):
		out.Hosts++
	default:
		out.Kept, out.KeptNs = out.Kept+1, out.KeptNs+ns
	}
	if !same {
		k.Costs, out.Changed = costs, true
	}
}

// placed finds the device that a placement names.
func placed(p *platform.Platform, name string) (*platform.Device, bool) {
	for d := range p.Devices {
		if p.Devices[d].Name == name || p.Devices[d].Kind == name {
			return &p.Devices[d], true
		}
	}
	return nil, false
}

// ratio is how much longer the work of a task takes on another device; 0 where nobody knows.
func (s scale) ratio(k *dag.Task, from, to *platform.Device) float64 {
	if k.Op == copyIn || k.Op == copyOut {
		return routeNs(s.to, to, k.MovedBytes) / routeNs(s.from, from, k.MovedBytes)
	}
	return s.roofline(s.to, to, k) / s.roofline(s.from, from, k)
}

// routeNs is the time of a copy from the host's memory.
func routeNs(p *platform.Platform, d *platform.Device, bytes int64) float64 {
	if host := p.HostMemory(); bytes > 0 && host != d.Memory {
		return float64(p.RouteTime(host, d.Memory, bytes))
	}
	return 0
}

// roofline is the least time of a task's work on a device, in seconds; 0 where its work or the device's rates are not known.
func (s scale) roofline(p *platform.Platform, d *platform.Device, k *dag.Task) float64 {
	speed, ok := d.FlopsPerSec[k.Type.String()]
	if !ok {
		speed = d.FlopsPerSec[dag.Float32.String()]
	}
	bandwidth := p.Memories[d.Memory].BandwidthBytesPerSec
	if k.MovedBytes == 0 || bandwidth == 0 || speed == 0 {
		return 0
	}
	return max(k.Flops/speed, float64(k.MovedBytes)/bandwidth)
}
