package execute

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/naming"
	"dahl/platform"
	"dahl/schedule/place"
	"dahl/schedule/ready"
)

// wire is the transfers of one copy engine from one node to another. They are a lane of their own, of which the rank
// of the source does the waits and sends, and the rank of the destination receives. The order of the engine's transfers from other
// nodes is not kept, since only what they read and write matters.
type wire struct{ engine, from, to int }

// nodePart says which part of a platform a runner does: one node's.
type nodePart struct {
	rank  int
	host  platform.MemoryID // of the node
	ranks []int             // by memory: whose it is
	wires []wire            // lanes after the platform's
}

// newNodePart is the whole of a platform in one process, or the part of a rank.
func newNodePart(p *platform.Platform, ranks *Ranks) (nodePart, error) {
	part := nodePart{host: p.HostMemory(), ranks: make([]int, len(p.Memories))}
	nodes := WorkingNodes(p)
	if size := 1; len(nodes) > 1 || ranks != nil {
		if ranks != nil {
			part.rank, size = ranks.Rank, ranks.Size
		}
		if err := CheckRanks(p, size); err != nil {
			return part, err
		}
	}
	for m := range p.Memories {
		part.ranks[m] = slices.Index(nodes, p.NodeOf(platform.MemoryID(m)))
		if part.ranks[m] == part.rank {
			part.host = p.HostOf(platform.MemoryID(m))
		}
	}
	return part, nil
}

// WorkingNodes are the nodes of a platform that have workers: one where it is one machine. Rank i of a run is the i-th of them.
func WorkingNodes(p *platform.Platform) (nodes []platform.NodeID) {
	for w := range p.Workers {
		nodes = append(nodes, p.NodeOf(p.MemoryOf(platform.WorkerID(w))))
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// CheckRanks refuses a number of ranks other than the number of nodes.
func CheckRanks(p *platform.Platform, ranks int) error {
	if n := len(WorkingNodes(p)); n != ranks {
		return fmt.Errorf("platform %q has %s with devices in use, and there is a rank for each: start as many, as by mpirun -n %d dahl execute …, and not %d", p.Name, naming.Count(n, "node"), n, ranks)
	}
	return nil
}

// mine reports whether a memory belongs to this process.
func (n *nodePart) mine(m platform.MemoryID) bool { return n.ranks[m] == n.rank }

// crosses reports whether a move goes from node to node.
func (n *nodePart) crosses(m *place.Move) bool { return n.ranks[m.From] != n.ranks[m.To] }

// owner is the rank that knows first how many tasks of a lane have ended.
func (r *Runner) owner(lane int) int {
	if own := len(r.lanes) - len(r.part.wires); lane >= own {
		return r.part.wires[lane-own].to
	}
	return r.part.ranks[r.lanes[lane].Memory]
}

// waiter is the rank that waits before the tasks of a lane.
func (r *Runner) waiter(lane int) int {
	if own := len(r.lanes) - len(r.part.wires); lane >= own {
		return r.part.wires[lane-own].from
	}
	return r.part.ranks[r.lanes[lane].Memory]
}

// addWires makes lanes of the transfers between nodes, and gives each graph its lists with them.
func (r *Runner) addWires() error {
	lists := make([]map[wire][]dag.TaskID, len(r.graphs))
	for i, c := range r.graphs {
		if c.placed == nil {
			continue
		}
		var err error
		if lists[i], err = r.wired(c); err != nil {
			return err
		}
		for w := range lists[i] {
			if !slices.Contains(r.part.wires, w) {
				r.part.wires = append(r.part.wires, w)
			}
		}
	}
	slices.SortFunc(r.part.wires, func(a, b wire) int {
		return cmp.Or(cmp.Compare(a.engine, b.engine), cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to))
	})
	for _, w := range r.part.wires {
		r.lanes = append(r.lanes, place.Lane{Name: fmt.Sprintf("from rank %d to %d", w.from, w.to), Worker: -1, Memory: -1})
	}
	for i, c := range r.graphs {
		for _, w := range r.part.wires {
			if c.placed != nil {
				c.order = append(c.order, lists[i][w])
			}
		}
	}
	for lane := range r.lanes {
		r.mine = append(r.mine, r.waiter(lane) == r.part.rank || r.owner(lane) == r.part.rank)
		r.remote = append(r.remote, lane >= len(r.lanes)-len(r.part.wires) || r.owner(lane) != r.part.rank)
	}
	r.post.wants = make([]atomic.Int64, len(r.lanes)+1)
	return nil
}

// anyEngine is the engine of transfers that no limited one makes.
const anyEngine = -1

// wired takes the transfers between nodes from the lists of a graph. Where no engine orders them, they go in an order in which
// all tasks can run.
func (r *Runner) wired(c *compiledGraph) (map[wire][]dag.TaskID, error) {
	lists := map[wire][]dag.TaskID{}
	take := func(engine int, t dag.TaskID) bool {
		m := c.placed.Move(t)
		if m == nil || !r.part.crosses(m) {
			return false
		}
		w := wire{engine, r.part.ranks[m.From], r.part.ranks[m.To]}
		lists[w] = append(lists[w], t)
		return true
	}
	if c.order = c.placed.Order; r.opt.Ranks == nil {
		return lists, nil
	}
	c.order = make([][]dag.TaskID, len(r.lanes))
	onLane := make([]bool, len(c.graph.Tasks))
	for lane, list := range c.placed.Order {
		for _, t := range list {
			if onLane[t] = true; !take(lane, t) {
				c.order[lane] = append(c.order[lane], t)
			}
		}
	}
	if len(c.placed.Unlaned()) == 0 {
		return lists, nil
	}
	sorted, stuck := ready.Sort(c.placed.Links, c.placed.Reuse, c.placed.Order)
	if c.placed.MaxLag() > 0 {
		var err error
		if sorted, err = c.placed.StartOrder(); err != nil {
			return nil, err
		}
	} else if stuck >= 0 {
		return nil, fmt.Errorf("the plan cannot run: task %q waits for itself", c.graph.Tasks[stuck].Name)
	}
	for _, t := range sorted {
		if !onLane[t] {
			take(anyEngine, t)
		}
	}
	return lists, nil
}

// bindWires binds the transfers between this node and others.
func (r *Runner) bindWires(c *compiledGraph) {
	own := len(r.lanes) - len(r.part.wires)
	for lane := own; lane < len(r.lanes); lane++ {
		if !r.mine[lane] {
			continue
		}
		for _, t := range c.order[lane] {
			to := &c.issues[t]
			issue := func(step int32) deviceTask {
				return deviceTask{launch: -1, copies: r.copiesOf(c, c.placed.Move(t), t, step)}
			}
			*to = issue(0)
			for step := int32(1); step < turns(c.graph, t); step++ {
				to.later = append(to.later, issue(step))
			}
		}
	}
}

// watched is a lane of this rank for whose counts others wait.
type watched struct {
	lane  int
	peers []watcher
}

// watcher is a rank that waits for counts of a lane.
type watcher struct {
	rank int
	// last is the largest number until then for which the rank waits, by the number of ended tasks of a period, and
	// next the smallest one beyond. 0 means none of this period.
	last, next []int64
}

// findWatched finds for which counts of this rank's lanes the others wait.
func (r *Runner) findWatched(c *replay) (all []watched) {
	needs := map[[2]int][]bool{} // by lane and rank: the numbers of tasks of a period
	for lane, list := range c.lists {
		rank := r.waiter(lane)
		if rank == r.part.rank {
			continue
		}
		for i := range list {
			for _, w := range c.waits[list[i].firstWait:list[i].endWait] {
				if r.owner(int(w.worker)) != r.part.rank || r.waiter(int(w.worker)) == rank {
					continue // it is not for this rank to say, or the other one sends on that lane
				}
				key := [2]int{int(w.worker), rank}
				if needs[key] == nil {
					needs[key] = make([]bool, w.length+1)
				}
				needs[key][((w.need-1)%w.length+w.length)%w.length+1] = true
			}
		}
	}
	for lane := range c.lists {
		at := watched{lane: lane}
		for rank := range r.opt.Ranks.Size {
			if need := needs[[2]int{lane, rank}]; need != nil {
				at.peers = append(at.peers, newWatcher(rank, need))
			}
		}
		if at.peers != nil {
			all = append(all, at)
		}
	}
	return all
}

// newWatcher is a rank that waits for some numbers of ended tasks of a period.
func newWatcher(rank int, need []bool) watcher {
	n := len(need)
	w := watcher{rank, make([]int64, n), make([]int64, n)}
	for i := 1; i < n; i++ {
		if w.last[i] = w.last[i-1]; need[i] {
			w.last[i] = int64(i)
		}
		if back := n - 1 - i; need[back+1] {
			w.next[back] = int64(back + 1)
		} else {
			w.next[back] = w.next[back+1]
		}
	}
	return w
}

// after is the smallest count, beyond the one given, for which the rank waits.
func (w *watcher) after(count int64) int64 {
	length := int64(len(w.last) - 1)
	period, within := count/length, count%length
	if at := w.next[within]; at > 0 {
		return period*length + at
	}
	return (period+1)*length + w.next[0]
}

// latest is the largest count, up to the one given, for which the rank waits. Counts of earlier periods are among them.
func (w *watcher) latest(count int64) int64 {
	length := int64(len(w.last) - 1)
	period, within := count/length, count%length
	if at := w.last[within]; at > 0 {
		return period*length + at
	}
	if period == 0 {
		return 0
	}
	return (period-1)*length + w.last[length]
}

// half is this rank's part of a transfer: the rows that it sends, or receives.
type half struct {
	bytes int64
	whole []byte // of a transfer without a gap
	rows  []plane
}

// plane is rows at equal distances.
type plane struct {
	first            unsafe.Pointer
	rows, row, pitch int64
}

// halfOf is the part of the source or of the destination.
func halfOf(copies []driver.Copy, source bool) half {
	var h half
	for i := range copies {
		c := &copies[i]
		at := c.To
		if source {
			at = c.From
		}
		h.bytes += c.Rows * c.RowBytes
		h.rows = append(h.rows, plane{at.Host, c.Rows, c.RowBytes, at.Pitch})
	}
	if len(h.rows) == 1 && (h.rows[0].rows == 1 || h.rows[0].pitch == h.rows[0].row) {
		h.whole = unsafe.Slice((*byte)(h.rows[0].first), h.bytes)
	}
	return h
}

// each visits the rows in their order.
func (h *half) each(visit func(row []byte)) {
	for _, p := range h.rows {
		for i := range p.rows {
			visit(unsafe.Slice((*byte)(unsafe.Add(p.first, i*p.pitch)), p.row))
		}
	}
}

// gather copies the rows to one place, and scatter copies them back.
func (h *half) gather(to []byte) {
	h.each(func(row []byte) { to = to[copy(to, row):] })
}

func (h *half) scatter(from []byte) {
	h.each(func(row []byte) { from = from[copy(row, from):] })
}
