package energy

import "dahl/platform"

// addNodes sums the entries of devices and links by node. Links of the network belong to none, and neither do watts of the platform's host
// that are no node's.
func (r *Report) addNodes(a *account) {
	pl := a.p.Platform
	if len(pl.Nodes) == 0 {
		return
	}
	for i := range pl.Nodes {
		host := float64(pl.Nodes[i].HostPower.Value * a.s.Makespan.Seconds())
		r.ByNode = append(r.ByNode, Entry{Name: pl.Nodes[i].Name, Joules: host, HostJoules: host, Basis: Modelled})
	}
	for d := range r.ByDevice {
		r.ByNode[pl.NodeOf(pl.Devices[d].Memory)].addPart(&r.ByDevice[d])
	}
	for l, n := range pl.NodesOfLinks() {
		if n != platform.NoNode && r.ByLink[l].Basis != Unavailable {
			r.ByNode[n].addPart(&r.ByLink[l])
		}
	}
}

// addPart adds the joules of a part.
func (e *Entry) addPart(part *Entry) {
	e.Joules += part.Joules
	e.IdleJoules += part.IdleJoules
	e.BusyJoules += part.BusyJoules
	e.TransferJoules += part.TransferJoules
	e.SleepJoules += part.SleepJoules
	e.SwitchingJoules += part.SwitchingJoules
	if part.Basis == Unavailable {
		e.Basis = Unavailable
	}
}
