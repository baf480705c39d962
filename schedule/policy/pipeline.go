package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/naming"
	"dahl/schedule"
)

// Pipelines is the table of the orders in which the devices of a pipeline take micro-batches. Their graphs have labels
// that name stages and micro-batches. Of other graphs they plan as HEFT does.
func Pipelines() []schedule.Policy {
	return []schedule.Policy{GPipe, OneForwardOneBackward, Interleaved}
}

// PipelineByName finds a line of the table.
func PipelineByName(name string) (schedule.Policy, error) {
	return naming.Find("order", name, Pipelines(), func(p schedule.Policy) string { return p.Doc().Name })
}

// IsPipeline reports whether a policy is a line of the table.
func IsPipeline(p schedule.Policy) bool { return slices.Contains(Pipelines(), p) }

// HasStages reports whether some task of a graph has a stage.
func HasStages(g *dag.Graph) bool {
	return slices.ContainsFunc(g.Tasks, func(t dag.Task) bool { return t.Labels.Stage > 0 })
}

// For lists the policies that may plan a graph differently.
func For(g *dag.Graph) []schedule.Policy {
	if HasStages(g) {
		return append(All(), Pipelines()...)
	}
	return All()
}

// GPipe has all forward passes before all backward passes.
var GPipe = pipelined(schedule.Doc{
	Name:     "gpipe",
	Sentence: "stages of a pipeline: all micro-batches forward, then all backward",
	Paper:    "Y. Huang et al., GPipe: efficient training of giant neural networks using pipeline parallelism, NeurIPS 2019",
}, false, func(l *lane, _, batches int) (int, error) { return batches * len(l.stages), nil })

// OneForwardOneBackward takes a micro-batch backward as soon as it can, so that stage s of p holds at most p - s of them.
var OneForwardOneBackward = pipelined(schedule.Doc{
	Name:     "1f1b",
	Sentence: "stages of a pipeline, one on each device: one micro-batch forward, one backward in turn",
	Paper:    "D. Narayanan et al., Memory-efficient pipeline-parallel DNN training, ICML 2021 (PipeDream-Flush)",
}, true, func(l *lane, lanes, _ int) (int, error) {
	if len(l.stages) > 1 {
		return 0, fmt.Errorf("%q has %d stages, and 1f1b orders devices of one stage; write order interleaved or gpipe", l.device, len(l.stages))
	}
	return lanes - 1 - l.rank, nil
})

// Interleaved is 1F1B with several stages on each device.
var Interleaved = pipelined(schedule.Doc{
	Name:     "interleaved",
	Sentence: "stages of a pipeline, several on each device in turn: one micro-batch forward, one backward, which leaves fewer gaps than 1f1b",
	Paper:    "D. Narayanan et al., Efficient large-scale language model training on GPU clusters using Megatron-LM, SC 2021",
}, false, func(l *lane, lanes, batches int) (int, error) {
	each := len(l.stages)
	for i, s := range l.stages {
		if s != l.rank+i*lanes || each == 1 {
			return 0, fmt.Errorf("%q has stages %v; interleaved wants the devices in turn, as in a, b, a, b", l.device, naming.List(l.stages, func(s int) string { return fmt.Sprint(s + 1) }))
		}
	}
	if batches%lanes > 0 || batches == lanes {
		return each * batches, nil
	}
	return 2*(lanes-1-l.rank) + (each-1)*lanes, nil
})

// pipelined is a policy that orders micro-batches by how many passes each device takes forward before the first one backward. Steps may overlap.
func pipelined(doc schedule.Doc, overlaps bool, ahead func(l *lane, lanes, batches int) (int, error)) schedule.Policy {
	return New(doc, func(p *schedule.Problem) (*schedule.Plan, error) {
		pipe := &pipeline{g: p.Graph, node: make([]int32, len(p.Graph.Tasks)), blocks: map[block]int32{}}
		stages, batches := pipe.findBlocks()
		levels, err := pipe.levelsOf(stages, batches, ahead)
		if err != nil {
			return nil, err
		}
		plan, err := byRank(p, nil, levels)
		if err != nil || levels == nil || !overlaps {
			return plan, err
		}
		return cmp.Or(pipe.overlapped(plan, stages, batches), plan), nil
	})
}

// A pipeline is a graph whose tasks say their stage and their micro-batch. All tasks of a stage on a micro-batch, forward or backward, are a
// block. Forward are the phases "load" and "forward", and sums before any other phase of the micro-batch. The rest is backward, and
// so are recomputed tasks, the loss and copies of weights.
//
// A lane is a device with its stages. Lane r of p takes blocks in the order of groups of p micro-batches. In a group it goes
// from stage to stage, forward from the first to the last, backward from the last to the first, and takes the
// micro-batches of the group in turn. So much for each direction. Between the two it first goes forward a number
// of blocks, then one forward and one backward in turn, then backward. The orders differ in this number only:
//
//	gpipe        all
//	1f1b         p - 1 - r
//	interleaved  2(p - 1 - r) + (v - 1)p for v stages on a device; all where p does not divide the micro-batches, or is their number
//
// Where the next step waits for no weights of this one, 1f1b goes on without a gap: see overlapped.
//
// With forward time f and backward time b of a stage, equal on all devices, and free transfers, m micro-batches take (m + p - 1)(f + b)
// with gpipe and 1f1b, and (m + (p - 1)/v)·v(f + b) interleaved, where f and b are times of one of the v stages.
//
// The level of a block is the greatest number of blocks on a path to it through dependences and lanes. Other tasks, such as updates, have
// the level of what they follow.
type pipeline struct {
	g      *dag.Graph
	lanes  []*lane
	node   []int32 // by task: its block, or a number of its own
	blocks map[block]int32
	nodes  int
}

// lane is a device of a pipeline.
type lane struct {
	device string
	rank   int
	stages []int // ascending, from 0 on
}

// block is a stage's work on a micro-batch in one direction.
type block struct {
	stage, batch int32
	backward     bool
}

// levelsOf is the level of each task. Nil means that the graph has no stages or no micro-batches.
func (p *pipeline) levelsOf(stages, batches []int32, ahead func(*lane, int, int) (int, error)) ([]int32, error) {
	if len(p.blocks) == 0 {
		return nil, nil
	}
	p.findLanes(stages)
	var chains [][]int32
	for _, l := range p.lanes {
		first, err := ahead(l, len(p.lanes), len(batches))
		if err != nil {
			return nil, err
		}
		chains = append(chains, p.chain(l, stages, batches, first))
	}
	return p.levels(chains)
}

// findBlocks gives each task its node, and lists the stages and micro-batches. The last micro-batch may complete a sum between two
// tasks of its block, which then has the sum as well.
func (p *pipeline) findBlocks() (stages, batches []int32) {
	backward, batch, precede := make([]bool, len(p.g.Tasks)), make([]int32, len(p.g.Tasks)), p.precedeBlocks()
	for t := range p.g.Tasks {
		of := &p.g.Tasks[t].Labels
		switch of.Phase {
		case "load", "forward":
		case "loss", "backward", "recompute", "stash":
			backward[t] = true
		default:
			backward[t] = slices.ContainsFunc(p.g.Preds(dag.TaskID(t)), func(s int32) bool { return backward[s] })
		}
		if !p.inBlock(of) {
			last := int32(-1) // with the last micro-batch
			for _, s := range p.g.Preds(dag.TaskID(t)) {
				if precede[t] && batch[s] > 0 && (last < 0 || batch[s] >= batch[last]) {
					last = s
				}
			}
			if last >= 0 {
				p.node[t], batch[t] = p.node[last], batch[last]
			} else {
				p.node[t] = p.newNode()
			}
			continue
		}
		batch[t] = of.MicroBatch
		b := block{of.Stage, of.MicroBatch, backward[t]}
		id, known := p.blocks[b]
		if !known {
			id = p.newNode()
			p.blocks[b] = id
			stages, batches = append(stages, b.stage), append(batches, b.batch)
		}
		p.node[t] = id
	}
	slices.Sort(stages)
	slices.Sort(batches)
	return slices.Compact(stages), slices.Compact(batches)
}

func (p *pipeline) newNode() int32 {
	p.nodes++
	return int32(p.nodes - 1)
}

// inBlock reports whether labels name a block.
func (p *pipeline) inBlock(of *dag.Labels) bool { return of.Stage > 0 && of.MicroBatch > 0 }

// precedeBlocks marks the tasks that some task of a block follows.
func (p *pipeline) precedeBlocks() []bool {
	precede := make([]bool, len(p.g.Tasks))
	for t := range slices.Backward(p.g.Tasks) {
		precede[t] = slices.ContainsFunc(p.g.Succs(dag.TaskID(t)), func(s int32) bool { return precede[s] || p.inBlock(&p.g.Tasks[s].Labels) })
	}
	return precede
}

// findLanes finds the device of each stage by the placement of its first task with a micro-batch.
func (p *pipeline) findLanes(stages []int32) {
	devices := make([]string, len(stages))
	for _, t := range slices.Backward(p.g.Tasks) {
		if s, found := slices.BinarySearch(stages, t.Labels.Stage); found && t.Labels.MicroBatch > 0 {
			devices[s] = ""
			if t.Placement != nil {
				devices[s] = t.Placement.Device
			}
		}
	}
	for s, device := range devices {
		i := slices.IndexFunc(p.lanes, func(l *lane) bool { return l.device == device && device != "" })
		if i < 0 {
			i = len(p.lanes)
			p.lanes = append(p.lanes, &lane{device: device, rank: i})
		}
		p.lanes[i].stages = append(p.lanes[i].stages, s)
	}
}

// chain lists the blocks of a lane in their order. A stage that only loads samples has none backward, and these leave gaps.
func (p *pipeline) chain(l *lane, stages, batches []int32, ahead int) (order []int32) {
	var directions [2][]int32
	of := slices.Clone(l.stages)
	for d := range directions {
		for group := range slices.Chunk(batches, len(p.lanes)) {
			for _, s := range of {
				for _, m := range group {
					id, there := p.blocks[block{stages[s], m, d == 1}]
					if !there {
						id = -1
					}
					directions[d] = append(directions[d], id)
				}
			}
		}
		slices.Reverse(of)
	}
	forward, backward := directions[0], directions[1]
	ahead = min(ahead, len(forward))
	order = slices.Clone(forward[:ahead])
	for forward = forward[ahead:]; len(forward) > 0 || len(backward) > 0; {
		if len(forward) > 0 {
			order, forward = append(order, forward[0]), forward[1:]
		}
		if len(backward) > 0 {
			order, backward = append(order, backward[0]), backward[1:]
		}
	}
	return slices.DeleteFunc(order, func(id int32) bool { return id < 0 })
}

// levels is the level of each task.
func (p *pipeline) levels(chains [][]int32) ([]int32, error) {
	var edges [][2]int32
	for t := range p.g.Tasks {
		for _, s := range p.g.Succs(dag.TaskID(t)) {
			if e := [2]int32{p.node[t], p.node[s]}; e[0] != e[1] {
				edges = append(edges, e)
			}
		}
	}
	counts := make([]int32, p.nodes) // what a node adds to the level
	for _, chain := range chains {
		for i, b := range chain {
			if counts[b] = 1; i > 0 {
				edges = append(edges, [2]int32{chain[i-1], b})
			}
		}
	}
	slices.SortFunc(edges, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	edges = slices.Compact(edges)
	level, left := make([]int32, p.nodes), make([]int32, p.nodes)
	for _, e := range edges {
		left[e[1]]++
	}
	var next []int32
	for n := range level {
		if left[n] == 0 {
			next = append(next, int32(n))
		}
	}
	done := 0
	for ; len(next) > 0; done++ {
		n := next[0]
		next = next[1:]
		level[n] += counts[n]
		first, _ := slices.BinarySearchFunc(edges, n, func(e [2]int32, n int32) int { return cmp.Compare(e[0], n) })
		for _, e := range edges[first:] {
			if e[0] != n {
				break
			}
			level[e[1]] = max(level[e[1]], level[n])
			if left[e[1]]--; left[e[1]] == 0 {
				next = append(next, e[1])
			}
		}
	}
	if done < p.nodes {
		return nil, errors.New("a device waits for what it does later: the stages do not follow each other, or have their weights stashed, which wants 1f1b")
	}
	all := make([]int32, len(p.node))
	for t, n := range p.node {
		all[t] = level[n]
	}
	return all, nil
}
