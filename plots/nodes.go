package plots

import (
	"cmp"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"dahl/naming"
	"dahl/platform"
)

// A chart of a cluster has its rows node by node: the workers of the node and then what moves to it, below the node's name. Where more workers
// run tasks than a chart has rows for, a row is all of a node that runs tasks, or some nodes in a row.

// foldNodes finds how many nodes share a row. laneCount has the workers that run tasks.
func (c *chart) foldNodes(laneCount map[platform.WorkerID]int) {
	p := c.run.Problem.Platform
	if len(p.Nodes) == 0 || len(laneCount) <= maxWorkerRows {
		return
	}
	used := map[platform.NodeID]bool{}
	for w := range laneCount {
		used[c.nodeOf(w)] = true
	}
	c.nodesInRow = (len(used) + maxWorkerRows - 1) / maxWorkerRows
}

func (c *chart) nodeOf(w platform.WorkerID) platform.NodeID {
	p := c.run.Problem.Platform
	return p.NodeOf(p.Devices[p.Workers[w].Device].Memory)
}

// noNode is the node of rows that are no node's: they are last.
func (c *chart) noNode() platform.NodeID { return platform.NodeID(len(c.run.Problem.Platform.Nodes)) }

// addNodeRows makes a row for each node, or for some in a row, with lanes for the workers that run tasks. Others are not shown.
func (c *chart) addNodeRows(laneCount map[platform.WorkerID]int) {
	rowOf := map[platform.NodeID]int{}
	for w := range c.rowOfWorker {
		count, first := laneCount[platform.WorkerID(w)], c.firstNodeInRow(c.nodeOf(platform.WorkerID(w)))
		if c.rowOfWorker[w] = -1; count == 0 {
			continue
		}
		at, known := rowOf[first]
		if !known {
			at = len(c.rows)
			rowOf[first], c.rows = at, append(c.rows, row{label: c.nodeRowName(first), node: first})
		}
		r := &c.rows[at]
		c.rowOfWorker[w], c.firstLane[w] = at, len(r.lanes)
		r.lanes = append(r.lanes, make([][]piece, count)...)
	}
}

// firstNodeInRow is the first of the nodes that share a row with one.
func (c *chart) firstNodeInRow(n platform.NodeID) platform.NodeID {
	return n - n%platform.NodeID(c.nodesInRow)
}

// firstInRow is the host memory of the first node that shares a row with the node of a memory.
func (c *chart) firstInRow(m platform.MemoryID) platform.MemoryID {
	p := c.run.Problem.Platform
	return p.Hosts()[c.firstNodeInRow(p.NodeOf(m))]
}

// nodeRowName names the nodes that share a row, such as n0…n3.
func (c *chart) nodeRowName(n platform.NodeID) string {
	p, first := c.run.Problem.Platform, int(c.firstNodeInRow(n))
	var names []string
	for i := first; i < min(len(p.Nodes), first+c.nodesInRow); i++ {
		names = append(names, p.Nodes[i].Name)
	}
	return strings.Join(naming.Folded(names, 1, "…"), ",")
}

// inNode is a name below the name of a node: without it.
func (c *chart) inNode(name string, n platform.NodeID) string {
	if nodes := c.run.Problem.Platform.Nodes; len(nodes) > 0 {
		return strings.TrimPrefix(name, nodes[n].Name+".")
	}
	return name
}

// groupNodes orders the rows by node, and gives each node a heading where workers have rows.
func (c *chart) groupNodes() {
	p := c.run.Problem.Platform
	if len(p.Nodes) == 0 {
		return
	}
	order := make([]int, len(c.rows)) // the old number of each row
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.rows[a].node, c.rows[b].node) })
	rows, number := make([]row, len(c.rows)), make([]int, len(c.rows))
	for k, i := range order {
		rows[k], number[i] = c.rows[i], k
		if opens := k == 0 || rows[k-1].node != rows[k].node; opens && c.nodesInRow == 0 {
			rows[k].head = c.headOf(rows[k].node)
		}
	}
	c.rows = rows
	for w, at := range c.rowOfWorker {
		if at >= 0 {
			c.rowOfWorker[w] = number[at]
		}
	}
	for r, at := range c.rowOfRoute {
		c.rowOfRoute[r] = number[at]
	}
	for l, at := range c.rowOfLink {
		c.rowOfLink[l] = number[at]
	}
}

// headOf is the heading of the rows of a node, or of what is no node's.
func (c *chart) headOf(n platform.NodeID) string {
	p := c.run.Problem.Platform
	if n == c.noNode() {
		return "links"
	}
	if texts := c.run.NodeTexts; int(n) < len(texts) {
		return p.Nodes[n].Name + ": " + texts[n]
	}
	return p.Nodes[n].Name
}

// headsHeight is the height of all headings.
func (c *chart) headsHeight() (tall vg.Length) {
	for i := range c.rows {
		if c.rows[i].head != "" {
			tall += headHeight
		}
	}
	return tall
}
