package strategy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
)

// network is the graph of a step in parts.
type network struct {
	*schedule.Problem
	fit   *schedule.Fit
	parts []part  // of the first mini-batch, each behind those that it follows
	of    []int32 // by task: its part, or the part of the same layers in the first mini-batch
	data  *problem.Data
	batch int // mini-batches in a step
}

// part is tasks that share a worker.
type part struct {
	name   string
	tasks  []dag.TaskID // of one mini-batch
	before []int        // parts whose forward tasks it follows
}

// isForward reports whether a task belongs to a forward pass, or to a graph without passes.
func isForward(t *dag.Task) bool { return t.Labels.Phase == "" || t.Labels.Phase == "forward" }

func newNetwork(p *schedule.Problem) (*network, error) {
	fit, err := schedule.NewFit(p)
	if err != nil {
		return nil, err
	}
	data, err := problem.NewData(p.Platform, p.Graph, false)
	if err != nil {
		return nil, err
	}
	n := &network{Problem: p, fit: fit, data: data, of: slices.Repeat([]int32{-1}, len(p.Graph.Tasks)), batch: 1}
	keys := n.keys()
	ids, edges := map[string]int32{}, map[[2]int32]bool{}
	var names []string
	for t, key := range keys {
		n.batch = max(n.batch, int(p.Graph.Tasks[t].Labels.MicroBatch)+1)
		if _, ok := ids[key]; !ok {
			ids[key] = int32(len(ids))
			names = append(names, cmp.Or(p.Graph.Tasks[t].Labels.Layer, key))
		}
		n.of[t] = ids[key]
	}
	n.findEdges(len(names), edges)
	return n, n.contract(names, edges)
}

// keys are equal for tasks that share a worker in their mini-batch, and for the same in other mini-batches.
func (n *network) keys() []string {
	keys := make([]string, len(n.of))
	first := map[string]string{} // by layer
	for t := range keys {
		task := &n.Graph.Tasks[t]
		keys[t] = task.Name
		if task.Placement != nil && task.Placement.Colocate != "" {
			keys[t] = task.Placement.Colocate
		}
		if l := task.Labels.Layer; l != "" {
			if first[l] == "" {
				first[l] = keys[t]
			}
			keys[t] = first[l]
		}
	}
	return keys
}

// findEdges notes the parts that follow others: by forward tasks, and where one has none by its backward tasks, the other way round.
func (n *network) findEdges(parts int, edges map[[2]int32]bool) {
	hasForward := make([]bool, parts)
	for t := range n.of {
		if isForward(&n.Graph.Tasks[t]) {
			hasForward[n.of[t]] = true
		}
	}
	for t := range n.of {
		for _, before := range n.Graph.Preds(dag.TaskID(t)) {
			from, to := n.of[before], n.of[t]
			first, then := isForward(&n.Graph.Tasks[before]), isForward(&n.Graph.Tasks[t])
			switch {
			case from == to:
			case first && then:
				edges[[2]int32{from, to}] = true
			case !first && !then && !(hasForward[from] && hasForward[to]):
				edges[[2]int32{to, from}] = true
			}
		}
	}
}

// contract makes parts of what follows itself in a circle, and lists them in an order.
func (n *network) contract(names []string, edges map[[2]int32]bool) error {
	next := make([][]int32, len(names))
	for e := range edges {
		next[e[0]] = append(next[e[0]], e[1])
	}
	for _, list := range next {
		slices.Sort(list)
	}
	component := components(next) // numbered behind those that follow
	count := int(slices.Max(append([]int32{-1}, component...))) + 1
	if count == 0 {
		return errors.New("the graph has no tasks")
	}
	n.parts = make([]part, count)
	for i, name := range names {
		of := &n.parts[count-1-int(component[i])]
		of.name = cmp.Or(of.name, name)
	}
	for t := range n.of {
		n.of[t] = int32(count-1) - component[n.of[t]]
		if n.Graph.Tasks[t].Labels.MicroBatch == 0 {
			of := &n.parts[n.of[t]]
			of.tasks = append(of.tasks, dag.TaskID(t))
		}
	}
	for e := range edges {
		from, to := count-1-int(component[e[0]]), count-1-int(component[e[1]])
		if from != to && !slices.Contains(n.parts[to].before, from) {
			n.parts[to].before = append(n.parts[to].before, from)
		}
	}
	return nil
}

// components are the strongly connected components of a graph (Tarjan, Depth-first search and linear graph algorithms, SIAM Journal on Computing
// 1972). A component has a greater number than those that follow it.
func components(next [][]int32) []int32 {
	n := len(next)
	index, low, of := make([]int32, n), make([]int32, n), slices.Repeat([]int32{-1}, n)
	var stack []int32
	count, found := int32(0), int32(0)
	var visit func(v int32)
	visit = func(v int32) {
		count++
		index[v], low[v] = count, count
		stack = append(stack, v)
		for _, w := range next[v] {
			if index[w] == 0 {
				visit(w)
				low[v] = min(low[v], low[w])
			} else if of[w] < 0 {
				low[v] = min(low[v], index[w])
			}
		}
		if low[v] != index[v] {
			return
		}
		for {
			w := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			of[w] = found
			if w == v {
				break
			}
		}
		found++
	}
	for v := range int32(n) {
		if index[v] == 0 {
			visit(v)
		}
	}
	return of
}

// seconds is how long the tasks of a part take on a worker; false where one cannot run there.
func (n *network) seconds(of int, w platform.WorkerID) (seconds float64, ok bool) {
	for _, t := range n.parts[of].tasks {
		cost, ok := n.Costs.Of(t, n.Platform.Workers[w].Device)
		if !ok || !n.fit.CanRun(t, w) {
			return 0, false
		}
		seconds += cost.Duration.Seconds()
	}
	return seconds, true
}

// assign gives the tasks of stages their workers: each mini-batch goes to the next replica of the stage.
func (n *network) assign(stageOf []int, replicas [][]platform.WorkerID) []platform.WorkerID {
	workers := make([]platform.WorkerID, len(n.of))
	for t, of := range n.of {
		all := replicas[stageOf[of]]
		workers[t] = all[int(n.Graph.Tasks[t].Labels.MicroBatch)%len(all)]
	}
	return workers
}

// stage describes a stage.
func (n *network) stage(stageOf []int, at int, on []platform.WorkerID, seconds float64) Stage {
	s := Stage{Seconds: seconds}
	last := ""
	for i, of := range stageOf {
		if of == at {
			s.Name, last = cmp.Or(s.Name, n.parts[i].name), n.parts[i].name
			s.Layers++
		}
	}
	if last != s.Name {
		s.Name = fmt.Sprintf("%s to %s", s.Name, last)
	}
	for _, w := range on {
		s.On = append(s.On, n.Platform.Workers[w].Name)
	}
	return s
}
