package layout

import (
	"math"
	"slices"

	"dahl/dag"
)

// chains are an order of tasks. Every task is on one chain, whose tasks follow each other. The tasks of a chain behind
// some task are then the end of it, and one position per chain says where it begins: a vector clock of
// Fidge and Mattern, 1988, turned round.
type chains struct {
	count     int            // of chains
	chain, at []int32        // by task: its chain, and its position there
	tasks     [][]dag.TaskID // by chain
	// first, by task and chain: the position of the first task there that comes after the task, or none of it. Of the task's own chain it
	// says nothing. Tasks of a chain have one row where the earlier one orders no more of the other chains. Nil means none at all.
	first [][]int32
}

// none stands for the position behind the end of a chain.
const none = math.MaxInt32

// maxChainBytes is the largest size of the rows of chains. The storages of graphs that take more share no bytes.
const maxChainBytes = 1 << 30

// newChains finds the chains of a graph, of which the lists of a plan are the first. sorted is an order of all tasks that
// keeps dependences and lists. Nil means that the chains would take too many bytes.
func newChains(g *dag.Links, lists [][]dag.TaskID, sorted []dag.TaskID) *chains {
	n := g.NumTasks()
	c := &chains{chain: make([]int32, n), at: make([]int32, n)}
	next := c.cover(g, lists, sorted)
	c.first = make([][]int32, n)
	rows := 0
	for i := n - 1; i >= 0; i-- {
		t := sorted[i]
		shared := next[t] >= 0
		if shared {
			c.first[t] = c.first[next[t]]
		}
		for _, s := range g.Succs(t) {
			if c.before(t, dag.TaskID(s)) {
				continue // with all that comes after it
			}
			if shared || c.first[t] == nil {
				c.first[t] = c.newRow(c.first[t])
				shared = false
				rows++
			}
			c.follow(c.first[t], dag.TaskID(s))
		}
		if int64(rows)*int64(c.count)*4 > maxChainBytes {
			return nil
		}
	}
	return c
}

// newRow is a row that begins as another one, or with no orders.
func (c *chains) newRow(as []int32) []int32 {
	if as != nil {
		return slices.Clone(as)
	}
	return slices.Repeat([]int32{none}, c.count)
}

// cover puts every task on a chain, and returns the one behind it, or -1. A task on no list begins a chain of its own, of tasks
// that depend on the one before.
func (c *chains) cover(g *dag.Links, lists [][]dag.TaskID, sorted []dag.TaskID) (next []dag.TaskID) {
	next = make([]dag.TaskID, len(sorted))
	for t := range next {
		c.chain[t], next[t] = -1, -1
	}
	for _, list := range lists {
		if len(list) == 0 {
			continue
		}
		c.tasks = append(c.tasks, list)
		for k, t := range list {
			c.chain[t], c.at[t] = int32(c.count), int32(k)
			if k > 0 {
				next[list[k-1]] = t
			}
		}
		c.count++
	}
	for _, t := range sorted {
		if c.chain[t] >= 0 {
			continue
		}
		last := dag.TaskID(-1)
		var path []dag.TaskID
		for at := int32(0); t >= 0; at++ {
			path = append(path, t)
			c.chain[t], c.at[t] = int32(c.count), at
			if last >= 0 {
				next[last] = t
			}
			last, t = t, c.unchained(g.Succs(t))
		}
		c.tasks = append(c.tasks, path)
		c.count++
	}
	return next
}

// unchained is the first of some tasks that is on no chain yet, or -1.
func (c *chains) unchained(tasks []int32) dag.TaskID {
	for _, t := range tasks {
		if c.chain[t] < 0 {
			return dag.TaskID(t)
		}
	}
	return -1
}

// follow puts a task, and all that comes after it, into the row of one before it.
func (c *chains) follow(row []int32, next dag.TaskID) {
	for k, at := range c.first[next] {
		row[k] = min(row[k], at)
	}
	row[c.chain[next]] = min(row[c.chain[next]], c.at[next])
}

// before reports whether a task comes before another one.
func (c *chains) before(t, other dag.TaskID) bool { return c.at[other] >= c.after(t, c.chain[other]) }

// after is the position on a chain from which on all tasks come after t.
func (c *chains) after(t dag.TaskID, chain int32) int32 {
	switch {
	case c.chain[t] == chain:
		return c.at[t] + 1
	case c.first[t] == nil:
		return none
	}
	return c.first[t][chain]
}

// ends are the first and the last of some tasks on each chain that has some of them.
func (c *chains) ends(tasks []dag.TaskID) (firsts, lasts []dag.TaskID) {
	for _, t := range tasks {
		k := slices.IndexFunc(firsts, func(other dag.TaskID) bool { return c.chain[other] == c.chain[t] })
		switch {
		case k < 0:
			firsts, lasts = append(firsts, t), append(lasts, t)
		case c.at[t] < c.at[firsts[k]]:
			firsts[k] = t
		case c.at[t] > c.at[lasts[k]]:
			lasts[k] = t
		}
	}
	return firsts, lasts
}

// window is the positions on a chain of which those before the first have tasks before all of firsts, and those behind the second
// have tasks after all of lasts.
func (c *chains) window(chain int32, firsts, lasts []dag.TaskID) [2]int32 {
	window := [2]int32{none, -1}
	for _, t := range firsts {
		behind, _ := slices.BinarySearchFunc(c.tasks[chain], t, func(x, t dag.TaskID) int {
			if c.before(x, t) {
				return -1
			}
			return 1
		})
		window[0] = min(window[0], int32(behind))
	}
	for _, t := range lasts {
		window[1] = max(window[1], c.after(t, chain)-1)
	}
	return window
}
