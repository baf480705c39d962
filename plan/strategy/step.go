package strategy

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// Step is a step by the closed formulas of papers, in seconds. Of v stages on each of p places of a pipeline, with m micro-batches, the slowest one takes
// t for both passes of one, and a step takes
//
//	(m·v + p - 1)·t + the exchange of gradients of a stage
//
// as if all stages were equal. Updates count as well. The bubble, (p - 1)/(m·v + p - 1) of the first term, is when a place has nothing to do. The slowest stage
// takes as long as the slowest of its devices, and for its messages. Where steps overlap there is no bubble: a step takes m·v·t. Without a pipeline the stages follow each other, and their times add up.
type Step struct {
	Seconds               float64
	Places, Each, Batches int     // p, v, m
	Slowest               float64 // t, or the slowest shares of all stages without a pipeline
	Messages              float64 // of the slowest stage and one micro-batch, in Slowest; or of all stages and micro-batches, not in Slowest
	Gradients             float64 // of a step
	Pipeline, Overlaps    bool
}

// StepOf is the formula for a plan of a graph with stages; nil stands for the lowering of a graph that no network made, and a nil network for free messages. False
// means that there are no stages, or no pipeline in one of its orders though there are micro-batches.
func StepOf(p *schedule.Problem, plan *schedule.Plan, l *dag.Lowering, n *Network) (of Step, ok bool) {
	shares, lanes, batches := sharesOf(p, plan, l)
	if len(shares) == 0 {
		return of, false
	}
	_, err := policy.PipelineByName(plan.Policy)
	of = Step{Places: lanes, Each: (len(shares) + lanes - 1) / lanes, Batches: max(1, batches), Pipeline: err == nil && batches > 0, Overlaps: plan.Lags != nil}
	if !of.Pipeline && (lanes > 1 || n == nil) {
		return of, false
	}
	for s, share := range shares {
		seconds, messages, gradients := share/float64(of.Batches), 0.0, 0.0
		if n != nil {
			messages, gradients = n.Exchanges(l, s, of.Batches)
		}
		if of.Pipeline {
			if now := seconds + messages; now > of.Slowest {
				of.Slowest, of.Messages = now, messages
			}
			of.Gradients = max(of.Gradients, gradients)
			continue
		}
		of.Slowest, of.Messages, of.Gradients = of.Slowest+share, of.Messages+messages*float64(of.Batches), of.Gradients+gradients
	}
	of.Seconds = float64(of.Times())*of.Slowest + of.Gradients
	if !of.Pipeline {
		of.Seconds = of.Slowest + of.Messages + of.Gradients
	}
	return of, true
}

// Times is how often the slowest stage counts in a pipeline.
func (s *Step) Times() int { return s.Batches*s.Each + s.Gaps() }

// Gaps is how many passes of the slowest stage a place has nothing to do for.
func (s *Step) Gaps() int {
	if s.Overlaps {
		return 0
	}
	return s.Places - 1
}

// sharesOf lists for how many seconds of a step the slowest device of each stage is busy, and counts the places of the pipeline and
// the micro-batches. A place is a device with stages, or the devices with a share of these. Units of a device share its part of a stage evenly.
func sharesOf(p *schedule.Problem, plan *schedule.Plan, l *dag.Lowering) (shares []float64, lanes, batches int) {
	fit, err := schedule.NewFit(p)
	if err != nil || plan == nil {
		return nil, 0, 0
	}
	type key struct {
		stage  int32
		device platform.DeviceID
	}
	busy, units := map[key]time.Duration{}, map[key]int{}
	firsts := map[int32]string{} // the device of the first task of each stage in a micro-batch
	for t := range p.Graph.Tasks {
		of := &p.Graph.Tasks[t].Labels
		batches = max(batches, int(of.MicroBatch))
		if place := p.Graph.Tasks[t].Placement; firsts[of.Stage] == "" && of.Stage > 0 && place != nil {
			firsts[of.Stage] = place.Device
		}
	}
	for w, list := range plan.Order {
		computes := map[key]bool{}
		for _, t := range list {
			of := &p.Graph.Tasks[t].Labels
			if of.Stage == 0 {
				continue
			}
			at := key{of.Stage, p.Platform.Workers[w].Device}
			busy[at] += fit.Occupies(t, platform.WorkerID(w))
			if (of.MicroBatch > 0 || batches == 0) && !computes[at] {
				computes[at] = true
				units[at]++
			}
		}
	}
	places := map[string]bool{}
	for stage, first := range firsts {
		if l != nil {
			first = l.Stages[stage-1].Places()[0]
		}
		places[first] = true
		shares = append(shares, make([]float64, max(0, int(stage)-len(shares)))...)
	}
	for at, takes := range busy {
		shares[at.stage-1] = max(shares[at.stage-1], takes.Seconds()/float64(max(1, units[at])))
	}
	return shares, len(places), batches
}

// Exchanges lists the seconds of all messages of a stage in one micro-batch, and of its gradients in a step. Devices that share samples or rows
// exchange the sums of gradients. A stage that is shared along outputs has messages for the results of layers cut along inputs, and for the gradients of
// the inputs of all others. Along rows these are borders, in both passes, and of an attention
// all keys and values, and in the backward pass all queries and gradients of outputs. A replica has messages for its own samples. Where devices share outputs, only those with the
// same part of the weights exchange gradients, in a ring of one from each replica.
func (n *Network) Exchanges(l *dag.Lowering, stage, batches int) (messages, gradients float64) {
	s := &l.Stages[stage]
	if !s.Shared() {
		return 0, 0
	}
	replicas, each := s.Grid()
	hop := n.slowestHop(slices.Collect(slices.Chunk(s.Devices, each)))
	samples := float64(((n.Batch+batches-1)/batches + replicas - 1) / replicas)
	sides := min(2, each-1) // of the rows of a device
	weights, at := 0.0, 0
	for i := range n.Layers {
		layer := &n.Layers[i]
		if at+1 < len(l.Stages) && l.Stages[at+1].From == layer.Name {
			at++
		}
		if at != stage {
			continue
		}
		weights += layer.Weights
		switch ll := l.Of(layer.Name); s.Along {
		case dag.AlongOutputs:
			if layer.Inputs == 0 {
				continue
			}
			if ll.Forward.Inputs > 0 {
				messages += hop.exchange(s.Sum, each, samples*layer.Out)
			} else if layer.Learns {
				messages += hop.exchange(s.Sum, each, samples*layer.In)
			}
		case dag.AlongRows:
			if layer.Attends { // keys and values forward, queries and gradients of outputs backward
				messages += hop.exchange(dag.Ring, each, 2*samples*layer.Out)
			}
			if layer.BorderIn > 0 {
				messages += float64(sides) * hop.message(samples*layer.BorderIn)
				if layer.Learns {
					messages += float64(sides) * hop.message(samples*layer.BorderOut)
				}
			}
		}
	}
	if s.Along == dag.AlongSamples && s.Sum == dag.Hierarchical && s.PerNode > 0 {
		return messages, n.hierarchical(s, weights)
	}
	if s.Along != dag.AlongOutputs {
		return messages, n.slowestHop([][]string{s.Devices}).exchange(s.Sum, len(s.Devices), weights)
	}
	var columns [][]string
	for column := range each {
		columns = append(columns, nil)
		for row := range replicas {
			columns[column] = append(columns[column], s.Devices[row*each+column])
		}
	}
	return messages, n.slowestHop(columns).exchange(s.Sum, replicas, weights/float64(each))
}

// hop is a way between two memories.
type hop struct{ latency, bytesPerSec float64 }

func (h hop) message(bytes float64) float64 { return h.latency + bytes/h.bytesPerSec }

// exchange is how long it takes to sum bytes over p devices so that all have the sum. In a ring each device sends 2(p − 1) messages of the p-th part,
// one after the other, and so it does to all others directly. A tree takes 2⌈log₂p⌉ messages of all bytes, up and down again.
func (h hop) exchange(sum dag.Exchange, p int, bytes float64) float64 {
	if bytes == 0 || p < 2 {
		return 0
	}
	if sum == dag.Tree {
		return 2 * float64(bits.Len(uint(p-1))) * h.message(bytes)
	}
	return 2 * float64(p-1) * h.message(bytes/float64(p))
}

// hierarchical is how long it takes to sum bytes around the devices of each node, and then around those with the same slice in all nodes. These rings run at once, so that each has
// a part of an adaptor.
func (n *Network) hierarchical(s *dag.Stage, bytes float64) float64 {
	nodes := slices.Collect(slices.Chunk(s.Devices, s.PerNode))
	between := make([][]string, s.PerNode)
	for _, node := range nodes {
		for i, device := range node {
			between[i] = append(between[i], device)
		}
	}
	return n.slowestHop(nodes).exchange(dag.Ring, s.PerNode, bytes) + n.atOnce(between).exchange(dag.Ring, len(nodes), bytes/float64(s.PerNode))
}

// atOnce is the slowest hop of rings that send at the same time: a link has its bandwidth for all hops that use it.
func (n *Network) atOnce(rings [][]string) hop {
	slowest, uses := n.slowestHop(rings), map[platform.LinkUse]int32{}
	for _, devices := range rings {
		for i, device := range devices {
			for _, u := range n.Platform.LinkUses(n.memoryOf(device), n.memoryOf(devices[(i+1)%len(devices)])) {
				times := u.Times
				u.Times = 0
				uses[u] += times
			}
		}
	}
	for u, times := range uses {
		if l := &n.Platform.Links[u.Link]; l.Sharing != platform.Fatpipe {
			slowest.bytesPerSec = min(slowest.bytesPerSec, l.BandwidthBytesPerSec/float64(times))
		}
	}
	return slowest
}

// slowestHop is the greatest latency and the least bandwidth from each device of some rings to the next one.
func (n *Network) slowestHop(rings [][]string) hop {
	slowest := hop{0, math.Inf(1)}
	for _, devices := range rings {
		for i, device := range devices {
			next := hopBetween(n.Platform, n.memoryOf(device), n.memoryOf(devices[(i+1)%len(devices)]))
			slowest = hop{max(slowest.latency, next.latency), min(slowest.bytesPerSec, next.bytesPerSec)}
		}
	}
	return slowest
}

// hopBetween is the way from a memory to another one. Within one memory it is free.
func hopBetween(p *platform.Platform, from, to platform.MemoryID) hop {
	if from == to {
		return hop{0, math.Inf(1)}
	}
	const much = 1 << 40
	latency := p.RouteTime(from, to, 0)
	return hop{latency.Seconds(), much / (p.RouteTime(from, to, much) - latency).Seconds()}
}

// memoryOf is the memory of a device, of a unit, or of the first device of a kind.
func (n *Network) memoryOf(name string) platform.MemoryID {
	for w, unit := range n.Platform.Workers {
		if d := &n.Platform.Devices[unit.Device]; unit.Name == name || d.Name == name || d.Kind == name {
			return n.Platform.MemoryOf(platform.WorkerID(w))
		}
	}
	return n.Platform.HostMemory()
}
