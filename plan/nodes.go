package plan

import (
	"dahl/energy"
	"dahl/platform"
	"dahl/schedule"
)

// Nodes is the work of each node of a cluster in a schedule, and the energy of the network between the nodes. Sums are per step.
type Nodes struct {
	Nodes   []NodeUse    `json:"nodes"`   // in the order of the platform
	Network []NetworkUse `json:"network"` // switches, and links that are no node's
}

// NodeUse is a node in a step.
type NodeUse struct {
	Name     string       `json:"name"`
	Workers  int          `json:"workers"` // that run tasks
	Of       int          `json:"of_workers"`
	Tasks    float64      `json:"tasks"`
	Busy     float64      `json:"busy"`      // share of a step, in the mean of these workers
	InBytes  float64      `json:"in_bytes"`  // from other nodes
	OutBytes float64      `json:"out_bytes"` // to other nodes
	Joules   float64      `json:"joules"`    // of its host, its devices and its links
	Basis    energy.Basis `json:"basis"`
}

// NetworkUse is a switch or a link of the network in a step.
type NetworkUse struct {
	Name   string       `json:"name"`
	Bytes  float64      `json:"bytes"` // through it
	Joules float64      `json:"joules"`
	Basis  energy.Basis `json:"basis"`
}

// NodesOf sums a schedule with a report of its energy by node. It is nil where the platform is one machine.
func NodesOf(p *schedule.Problem, s *schedule.Schedule, r *energy.Report) *Nodes {
	pl := p.Platform
	if len(pl.Nodes) == 0 {
		return nil
	}
	n := &Nodes{Nodes: make([]NodeUse, len(pl.Nodes))}
	steps := float64(max(1, s.Steps))
	for i := range n.Nodes {
		n.Nodes[i] = NodeUse{Name: pl.Nodes[i].Name, Joules: r.ByNode[i].Joules / steps, Basis: r.ByNode[i].Basis}
	}
	of := func(m platform.MemoryID) *NodeUse { return &n.Nodes[pl.NodeOf(m)] }
	for w, busy := range BusyPerStep(s, len(pl.Workers)) {
		node := of(pl.Devices[pl.Workers[w].Device].Memory)
		node.Of++
		if busy > 0 {
			node.Workers++
			node.Busy += busy
		}
	}
	for i := range s.Spans {
		of(pl.Devices[pl.Workers[s.Spans[i].Worker].Device].Memory).Tasks++
	}
	through := make([]float64, len(pl.Links))
	for i := range s.Transfers {
		t := &s.Transfers[i]
		bytes := float64(t.Bytes) / steps
		if from, to := of(t.From), of(t.To); from != to {
			from.OutBytes, to.InBytes = from.OutBytes+bytes, to.InBytes+bytes
		}
		for _, use := range pl.LinkUses(t.From, t.To) {
			through[use.Link] += bytes * float64(use.Times)
		}
	}
	step := meanStep(s)
	for i := range n.Nodes {
		u := &n.Nodes[i]
		if u.Tasks /= steps; u.Workers > 0 && step > 0 {
			u.Busy /= step * float64(u.Workers)
		}
	}
	for l, node := range pl.NodesOfLinks() {
		if node == platform.NoNode {
			e := &r.ByLink[l]
			n.Network = append(n.Network, NetworkUse{e.Name, through[l], e.Joules / steps, e.Basis})
		}
	}
	return n
}
