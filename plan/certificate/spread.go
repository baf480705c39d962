package certificate

import (
	"cmp"
	"math"
	"slices"
)

// How long tasks take at least if they may run at several memories, between which data take time. A spread is tasks that each
// keep a unit of one of its memories for some time, with an order between some of them.
//
// For each two tasks of which one comes before the other, and each memory of either, [spread.fill] finds how
// far their starts are apart at least. It is the greatest of
//
//   - an edge: the time of the first and, if data of the first move to the second, the least time of that transfer
//   - a way: for any task between the two, the least over its memories of how far it is from both
//   - area: any tasks between the two. A unit of a memory has no more time for them than the two are apart, less the
//     least head of these tasks there and less their least tail. Head and tail of a task are how far it is from
//     both, without its own time. With weights w of memories, Σ w·units·max(0, apart − head − tail) is no less
//     than the sum over the tasks of the least w·time. Areas count tasks with heads of at least some time
//
// In a steady step the two are a task and the same in the next step, which is at the same memory.
//
// An example. Two memories of one unit each, 10 ns apart. Task a, of no time, is followed by four tasks of 4 ns, and b follows
// these. Each reads the output of its predecessor. With a and b at one memory, the other has 20 ns less
// than they are apart, so that these are 16: to use it does not pay. If b is at the other, each memory has
// 10 ns less, and 2·(18 − 10) are 16. So a and b are 16 ns apart, where two units at one memory would take 8.
type spread struct {
	units    []float64    // by memory
	weights  [2][]float64 // by memory
	nodes    []spreadNode // in an order that edges follow
	distance [][][]int64  // by the later node and the earlier: by memory of the earlier, then of the later; nil means no order
	byHead   [][]int      // by node and its memory: those that come after it, the greatest least head first
}

// spreadNode is a task.
type spreadNode struct {
	nanos  []int64 // by memory; nowhere: it cannot run there
	before []spreadEdge
}

// spreadEdge says that a node follows another.
type spreadEdge struct {
	node  int32
	nanos []int64 // by memory: for what it reads to get there from another; nil means it reads nothing
}

func (e *spreadEdge) move(from, to int) int64 {
	if e.nanos == nil || from == to {
		return 0
	}
	return e.nanos[to]
}

// nowhere is the time of a task at a memory where it cannot run. Sums of a few thousand are still numbers.
const nowhere = math.MaxInt64 / (1 << 16)

// mostSpread is how often a spread may look at a way over one task from a memory by another to a third.
const mostSpread = 200_000_000

// fill finds how far nodes are apart. It fails where there are too many.
func (s *spread) fill() bool {
	if n, memories := len(s.nodes), len(s.units); n*n*n/6*memories*memories*memories > mostSpread {
		return false
	}
	s.distance, s.byHead = make([][][]int64, len(s.nodes)), make([][]int, len(s.nodes)*len(s.units))
	for later := range s.nodes {
		s.distance[later] = make([][]int64, later)
		edges := make([]*spreadEdge, later)
		for k := range s.nodes[later].before {
			e := &s.nodes[later].before[k]
			edges[e.node] = e
		}
		var between []int
		for first := later - 1; first >= 0; first-- {
			between = between[:0]
			for x := first + 1; x < later; x++ {
				if s.distance[x][first] != nil && s.distance[later][x] != nil {
					between = append(between, x)
				}
			}
			if len(between) > 0 || edges[first] != nil {
				s.distance[later][first] = s.distances(first, later, edges[first], between)
			}
		}
		for first, apart := range s.distance[later] {
			for from := range s.units {
				if apart != nil {
					list := &s.byHead[first*len(s.units)+from]
					at, _ := slices.BinarySearchFunc(*list, s.least(first, from, later), func(x int, least int64) int {
						return cmp.Compare(least, s.least(first, from, x))
					})
					*list = slices.Insert(*list, at, later)
				}
			}
		}
	}
	return true
}

// least is how far a node is at least apart from one at a memory, wherever it is itself.
func (s *spread) least(first, from, later int) int64 {
	return slices.Min(s.distance[later][first][from*len(s.units):][:len(s.units)])
}

// distances are how far two nodes are apart, by memory of the first and then of the later.
func (s *spread) distances(first, later int, edge *spreadEdge, between []int) []int64 {
	m := len(s.units)
	apart := slices.Repeat([]int64{nowhere}, m*m)
	for from := range m {
		for to := range m {
			if s.nodes[first].nanos[from] >= nowhere || s.nodes[later].nanos[to] >= nowhere {
				continue
			}
			most := int64(0)
			if edge != nil {
				most = s.nodes[first].nanos[from] + edge.move(from, to)
			}
			for _, x := range between {
				here, there, least := s.distance[x][first][from*m:], s.distance[later][x][to:], int64(nowhere)
				for at := range m {
					least = min(least, here[at]+there[at*m])
				}
				most = max(most, least)
			}
			apart[from*m+to] = min(nowhere, max(most, s.area(first, later, from, to)))
		}
	}
	return apart
}

// area is how far two nodes are apart for the work between them.
func (s *spread) area(first, later, from, to int) (most int64) {
	m := len(s.units)
	head, tail := slices.Repeat([]int64{nowhere}, m), slices.Repeat([]int64{nowhere}, m)
	var work [len(s.weights)]float64
	list := s.byHead[first*m+from]
	for k, x := range list {
		if s.distance[later][x] != nil {
			s.add(x, first, later, from, to, head, tail, &work)
		}
		if k+1 == len(list) || s.least(first, from, list[k+1]) < s.least(first, from, x) {
			for w, weights := range s.weights {
				most = max(most, s.length(head, tail, weights, work[w]))
			}
		}
	}
	return most
}

// add adds a node to the nodes of an area.
func (s *spread) add(x, first, later, from, to int, head, tail []int64, work *[2]float64) {
	m := len(s.units)
	for at, nanos := range s.nodes[x].nanos {
		if nanos < nowhere {
			head[at] = min(head[at], s.distance[x][first][from*m+at])
			tail[at] = min(tail[at], s.distance[later][x][at*m+to]-nanos)
		}
	}
	for w, weights := range s.weights {
		least := math.Inf(1)
		for at, nanos := range s.nodes[x].nanos {
			if nanos < nowhere {
				least = min(least, float64(weights[at]*float64(nanos)))
			}
		}
		work[w] += least
	}
}

// length is the least in which units have the time for some work, from the heads and to the tails.
func (s *spread) length(head, tail []int64, weights []float64, work float64) int64 {
	order := make([]int, 0, len(s.units))
	for memory := range s.units {
		if head[memory] < nowhere && tail[memory] < nowhere {
			order = append(order, memory)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return int(head[a] + tail[a] - head[b] - tail[b]) })
	rate, length := 0.0, 0.0 // no memory: there are no tasks
	for k, memory := range order {
		per := float64(weights[memory] * s.units[memory])
		rate += per
		work += float64(per * float64(head[memory]+tail[memory]))
		if length = work / rate; k+1 == len(order) || length <= float64(head[order[k+1]]+tail[order[k+1]]) {
			break
		}
	}
	return int64(length * (1 - 1e-9))
}

// spreadLeast is how long the tasks of a step take at least, of a steady step one and what runs between it and
// itself in the next.
func (m *Model) spreadLeast(around int32) int64 {
	if least, ok := m.spreads[around]; ok {
		return least
	}
	s, least := m.spreadOf(around), int64(0)
	if s.fill() {
		apart := s.distance[len(s.nodes)-1][0]
		least = slices.Min(apart)
		if around >= 0 {
			least = nowhere
			for at := range s.units {
				least = min(least, apart[at*len(s.units)+at])
			}
		}
	}
	m.spreads[around] = least
	return least
}

// spreadOf makes the spread, from a task to itself in the next step, or from a node before all to one after all.
func (m *Model) spreadOf(around int32) *spread {
	s, n := &spread{}, len(m.Tasks)
	memory := slices.Repeat([]int{-1}, len(m.Memories)) // as it is numbered in the spread
	for _, d := range m.Devices {
		if memory[d.Memory] < 0 {
			memory[d.Memory] = len(s.units)
			s.units = append(s.units, 0)
		}
		s.units[memory[d.Memory]] += float64(d.Units)
	}
	in := func(t int32, step int) bool {
		return around < 0 && step == 0 || around >= 0 && (t == around || m.Precedes(around, t, step) && m.Precedes(t, around, 1-step))
	}
	if around < 0 {
		s.nodes = append(s.nodes, spreadNode{nanos: make([]int64, len(s.units))})
	}
	number := slices.Repeat([]int32{-1}, 2*n) // by step and task
	for i := range number {
		t, step := int32(i%n), i/n
		if !in(t, step) {
			continue
		}
		number[i] = int32(len(s.nodes))
		s.nodes = append(s.nodes, m.spreadNode(t, memory, len(s.units)))
		for back := range step + 1 {
			for _, u := range m.before[back][t] {
				if from := number[(step-back)*n+int(u)]; from >= 0 {
					s.nodes[number[i]].before = append(s.nodes[number[i]].before, m.spreadEdge(u, t, back, from, memory, len(s.units)))
				}
			}
		}
	}
	s.weigh()
	if around < 0 {
		end := spreadNode{nanos: make([]int64, len(s.units))}
		for u := 1; u < len(s.nodes); u++ {
			s.nodes[u].before = append(s.nodes[u].before, spreadEdge{node: 0})
			end.before = append(end.before, spreadEdge{node: int32(u)})
		}
		s.nodes = append(s.nodes, end)
	}
	return s
}

// spreadNode is a task by the numbers that memories have in a spread.
func (m *Model) spreadNode(t int32, memory []int, memories int) spreadNode {
	n := spreadNode{nanos: slices.Repeat([]int64{nowhere}, memories)}
	for _, o := range m.Tasks[t].Options {
		at := memory[m.Devices[o.Device].Memory]
		n.nanos[at] = min(n.nanos[at], o.Nanos)
	}
	return n
}

// spreadEdge is an edge from a node by such numbers.
func (m *Model) spreadEdge(from, to int32, back int, node int32, memory []int, memories int) spreadEdge {
	e := m.edge(from, to, int32(back))
	if e.Bytes == 0 {
		return spreadEdge{node: node}
	}
	nanos := make([]int64, memories)
	for at, number := range memory {
		if number >= 0 {
			nanos[number] = min(e.Nanos[at], nowhere)
		}
	}
	return spreadEdge{node, nanos}
}

// weigh gives all memories the same weight, and then each one by how long it would take for the tasks that can run
// at all of them.
func (s *spread) weigh() {
	total := make([]float64, len(s.units))
	for i := range s.nodes {
		if slices.Max(s.nodes[i].nanos) < nowhere {
			for memory, nanos := range s.nodes[i].nanos {
				total[memory] += float64(nanos)
			}
		}
	}
	s.weights = [2][]float64{slices.Repeat([]float64{1}, len(s.units)), slices.Repeat([]float64{1}, len(s.units))}
	for memory, nanos := range total {
		if nanos > 0 {
			s.weights[1][memory] = total[0] / nanos
		}
	}
}
