package layout

import (
	"math"

	"dahl/dag"
)

// chains are an order of tasks. Every task is on one chain, whose tasks follow each other. The tasks of a chain behind
// some task are then the end of it, and one position per chain says where it begins: a vector clock of
// Fidge and Mattern, 1988, turned round.
type chains struct {
	count     int     // of chains
	chain, at []int32 // by task: its chain, and its position there
	// first, by task and chain: the position of the first task there that comes after the task, or none of it.
	first []int32
}

// none stands for the position behind the end of a chain.
const none = math.MaxInt32

// maxChainBytes is the largest size of chains. The storages of graphs that take more share no bytes.
const maxChainBytes = 1 << 30

// newChains finds the chains of a graph, of which the lists of a plan are the first. sorted is an order of all tasks that
// keeps dependences and lists. Nil means that the chains would take too many bytes.
func newChains(g *dag.Links, lists [][]dag.TaskID, sorted []dag.TaskID) *chains {
	n := g.NumTasks()
	c := &chains{chain: make([]int32, n), at: make([]int32, n)}
	next := c.cover(g, lists, sorted)
	if int64(n)*int64(c.count)*4 > maxChainBytes {
		return nil
	}
	c.first = make([]int32, n*c.count)
	for i := range c.first {
		c.first[i] = none
	}
	for i := n - 1; i >= 0; i-- {
		t := sorted[i]
		if next[t] >= 0 {
			c.follow(t, next[t])
		}
		for _, s := range g.Succs(t) {
			c.follow(t, dag.TaskID(s))
		}
	}
	return c
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
		for at := int32(0); t >= 0; at++ {
			c.chain[t], c.at[t] = int32(c.count), at
			if last >= 0 {
				next[last] = t
			}
			last, t = t, c.unchained(g.Succs(t))
		}
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

// follow puts a task, and all that comes after it, after t.
func (c *chains) follow(t, next dag.TaskID) {
	if c.before(t, next) {
		return // with all that comes after it
	}
	row := c.after(t)
	for k, at := range c.after(next) {
		row[k] = min(row[k], at)
	}
	row[c.chain[next]] = min(row[c.chain[next]], c.at[next])
}

// after are the positions, by chain, from which on all tasks come after t.
func (c *chains) after(t dag.TaskID) []int32 { return c.first[int(t)*c.count : (int(t)+1)*c.count] }

// before reports whether a task comes before another one.
func (c *chains) before(t, other dag.TaskID) bool {
	return c.at[other] >= c.first[int(t)*c.count+int(c.chain[other])]
}
