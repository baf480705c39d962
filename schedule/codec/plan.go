package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/place"
)

// planFile is the form of a plan on disk. A plan written by hand needs no more
// than format and devices.
type planFile struct {
	Format   string            `json:"format"`
	Policy   string            `json:"policy"`
	Graph    string            `json:"graph"`
	Lowering *dag.Lowering     `json:"lowering"`
	On       string            `json:"on"`
	Variants schedule.Variants `json:"variants"`
	Devices  workerLists       `json:"devices"`
	Lags     map[string]int32  `json:"lags"` // by task

	place.Written
	Clocks map[string]string `json:"clocks"` // by task
	Sleeps map[string]string `json:"sleeps"`
}

// workerLists is an object with a list of task names for each worker.
type workerLists []workerList

type workerList struct {
	worker string
	tasks  []string
}

// UnmarshalJSON refuses a worker that is listed twice. A map would hide it.
func (ls *workerLists) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	open, err := dec.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('{') {
		return fmt.Errorf(`devices: write an object of lists, as in {"cpu.0": ["task", ...]}`)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		l := workerList{worker: key.(string)}
		if err := dec.Decode(&l.tasks); err != nil {
			return fmt.Errorf("devices: %q: %w", l.worker, err)
		}
		if slices.ContainsFunc(*ls, func(other workerList) bool { return other.worker == l.worker }) {
			return fmt.Errorf("devices: %q is listed twice", l.worker)
		}
		*ls = append(*ls, l)
	}
	return nil
}

// WritePlan writes a plan as JSON: for each worker the names of its tasks in order.
func WritePlan(w io.Writer, plan *schedule.Plan, g *dag.Graph, p *platform.Platform) error {
	l := newLineWriter(w)
	l.field("format", PlanFormat)
	if plan.Policy != "" {
		l.field("policy", plan.Policy)
	}
	if plan.GraphHash != "" {
		l.field("graph", plan.GraphHash)
	}
	if plan.Lowering != nil {
		l.field("lowering", plan.Lowering)
	}
	if plan.On != "" {
		l.field("on", plan.On)
	}
	if len(plan.Variants) > 0 {
		l.field("variants", plan.Variants)
	}
	writeOrder(l, plan, g, p)
	if lags := lagNames(plan, g); len(lags) > 0 {
		l.field("lags", lags)
	}
	writeList(l, "copies", plan.Versions)
	writeList(l, "transfers", plan.Transfers)
	writeList(l, "enter", plan.Enter)
	writeList(l, "leave", plan.Leave)
	writeList(l, "places", plan.Places)
	writeList(l, "arenas", plan.Arenas)
	if plan.Spill != nil {
		l.field("room", plan.Spill)
	}
	if plan.PartBytes > 0 {
		l.field("part_bytes", plan.PartBytes)
	}
	clocks, sleeps := plan.StateNames(g, p)
	if len(clocks) > 0 {
		l.field("clocks", clocks)
	}
	if len(sleeps) > 0 {
		l.field("sleeps", sleeps)
	}
	if err := l.close(); err != nil {
		return fmt.Errorf("write the plan of graph %q: %w", g.Name, err)
	}
	return nil
}

// writeOrder writes the tasks of each worker that has some.
func writeOrder(l *lineWriter, plan *schedule.Plan, g *dag.Graph, p *platform.Platform) {
	var busy []int
	for i, list := range plan.Order {
		if len(list) > 0 {
			busy = append(busy, i)
		}
	}
	l.list("devices", "{", "}", len(busy), func(i int) {
		list := plan.Order[busy[i]]
		names := make([]string, len(list))
		for k, t := range list {
			names[k] = g.Tasks[t].Name
		}
		l.value(p.Workers[busy[i]].Name)
		l.write(": ")
		l.value(names)
	})
}

// lagNames are the lags by the names of the tasks that have one.
func lagNames(plan *schedule.Plan, g *dag.Graph) map[string]int32 {
	named := map[string]int32{}
	for t, lag := range plan.Lags {
		if lag != 0 {
			named[g.Tasks[t].Name] = lag
		}
	}
	return named
}

// writeList writes a list with one entry on each line; none where it is nil.
func writeList[T any](l *lineWriter, name string, list []T) {
	if list != nil {
		l.list(name, "[", "]", len(list), func(i int) { l.value(list[i]) })
	}
}

// ReadPlan reads a plan for a graph and a platform. name is the file's, for errors. The plan it
// returns names existing tasks and workers; [Plan.Check] says whether it can run.
func ReadPlan(r io.Reader, name string, g *dag.Graph, p *platform.Platform) (*schedule.Plan, error) {
	var f planFile
	if err := decode(r, name, &f); err != nil {
		return nil, err
	}
	if err := checkHeader(name, f.Format, PlanFormat, f.Graph, g); err != nil {
		return nil, err
	}
	n := newNames(name, g, p)
	plan := &schedule.Plan{Policy: f.Policy, GraphHash: f.Graph, Lowering: f.Lowering, On: f.On, Variants: f.Variants, Order: make([][]dag.TaskID, len(p.Workers)), Written: f.Written}
	if err := f.Variants.Check(g, p); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, list := range f.Devices {
		w := n.worker(list.worker)
		var tasks []dag.TaskID
		for _, task := range list.tasks {
			tasks = append(tasks, n.task(task))
		}
		if n.err != nil {
			return nil, n.err
		}
		plan.Order[w] = tasks
	}
	if len(f.Lags) > 0 {
		plan.Lags = make([]int32, len(g.Tasks))
		for _, task := range slices.Sorted(maps.Keys(f.Lags)) {
			if t := n.task(task); n.err == nil {
				plan.Lags[t] = f.Lags[task]
			}
		}
		if n.err != nil {
			return nil, n.err
		}
	}
	if err := plan.SetStates(f.Clocks, f.Sleeps, g, p); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return plan, nil
}
