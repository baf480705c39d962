package ranks

import (
	"container/heap"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"dahl/dag"
)

// Rank has the tasks of one rank. Tasks are numbers from 0 on.
type Rank interface {
	File() string // for messages
	// Order lists the tasks to join, each behind those that it follows.
	Order() []int
	// After lists the tasks that a task follows.
	After(task int) []int
	// Exchange is nil for a task that no other rank takes part in.
	Exchange(task int) *Exchange
	// Describe gives a task with all but its name and the tasks that it follows.
	Describe(task int) dag.Task
}

// Job is a training of several ranks on its way to a graph.
type Job struct {
	b       *dag.Builder
	ranks   []*rank
	numbers map[string]int   // of tasks so far, by operation
	groups  map[string][]int // ranks, by the key of their exchanges
	begun   map[string]int   // exchanges that some ranks have come to, by key: their places in the order in which these began
	begins  int              // so far
	came    []string         // keys of exchanges that a rank has come to since the last ones took place
}

// rank is how far a rank has come.
type rank struct {
	Rank
	number    int
	ids       []dag.TaskID // by task; -1 is not in the graph
	place     []int        // in the order; -1 is not there
	missing   []int        // tasks to wait for
	followers [][]int
	ready     *places
	waiting   map[string][]int // exchanges that it has come to, by key
}

// New begins a job. The graph gets the name.
func New(name string, all []Rank) *Job {
	j := &Job{b: dag.NewBuilder(name), numbers: map[string]int{}, groups: map[string][]int{}, begun: map[string]int{}}
	for n, of := range all {
		r := newRank(of, n)
		j.ranks = append(j.ranks, r)
		for _, task := range r.ready.order {
			if x := r.Exchange(task); x != nil {
				key := x.key(n)
				if group := j.groups[key]; len(group) == 0 || group[len(group)-1] != n {
					j.groups[key] = append(group, n)
				}
			}
		}
	}
	return j
}

func newRank(of Rank, number int) *rank {
	order := of.Order()
	tasks := 0
	for _, task := range order {
		tasks = max(tasks, task+1)
		for _, before := range of.After(task) {
			tasks = max(tasks, before+1)
		}
	}
	r := &rank{Rank: of, number: number, ids: make([]dag.TaskID, tasks), place: make([]int, tasks), missing: make([]int, tasks), followers: make([][]int, tasks),
		ready: &places{order: order}, waiting: map[string][]int{}}
	for task := range tasks {
		r.ids[task], r.place[task] = -1, -1
	}
	for at, task := range order {
		r.place[task] = at
		for _, before := range of.After(task) {
			if r.place[before] >= 0 {
				r.missing[task]++
				r.followers[before] = append(r.followers[before], task)
			}
		}
		if r.missing[task] == 0 {
			heap.Push(r.ready, at)
		}
	}
	return r
}

// places is a heap of places in the order of a rank.
type places struct {
	order []int
	at    []int
}

func (p *places) Len() int           { return len(p.at) }
func (p *places) Less(i, k int) bool { return p.at[i] < p.at[k] }
func (p *places) Swap(i, k int)      { p.at[i], p.at[k] = p.at[k], p.at[i] }
func (p *places) Push(x any)         { p.at = append(p.at, x.(int)) }
func (p *places) Pop() any {
	last := p.at[len(p.at)-1]
	p.at = p.at[:len(p.at)-1]
	return last
}

// next names a task of an operation.
func (j *Job) next(op string) string {
	j.numbers[op]++
	return op + "#" + strconv.Itoa(j.numbers[op])
}

// Add adds a task of a rank. It follows all tasks before it, and an earlier part of itself.
func (j *Job) Add(number, task int, t dag.Task) dag.TaskID {
	r := j.ranks[number]
	if len(j.ranks) > 1 {
		t.Labels.Layer = fmt.Sprintf("rank %d %s", number, t.Labels.Layer)
	}
	t.Name = j.next(t.Op)
	if r.ids[task] >= 0 {
		t.After = append(t.After, r.ids[task])
	} else {
		for _, before := range r.After(task) {
			if r.ids[before] >= 0 {
				t.After = append(t.After, r.ids[before])
			}
		}
	}
	r.ids[task] = j.b.Task(t)
	return r.ids[task]
}

// Graph joins the ranks.
func (j *Job) Graph() (*dag.Graph, error) {
	inOrder := func(a, b string) int { return j.begun[a] - j.begun[b] }
	for {
		for _, r := range j.ranks {
			j.advance(r)
		}
		if len(j.came) == 0 {
			break
		}
		came := slices.Compact(slices.SortedFunc(slices.Values(j.came), inOrder))
		j.came = nil
		for _, key := range came {
			if err := j.meet(key); err != nil {
				return nil, err
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(j.begun), inOrder) {
		for _, n := range j.groups[key] {
			if r := j.ranks[n]; len(r.waiting[key]) == 0 {
				return nil, fmt.Errorf("%s: rank %d has fewer exchanges than others in %s; give recordings of the same steps", r.File(), n, key)
			}
		}
	}
	return j.b.Build()
}

// advance adds all tasks of a rank that wait for no exchange.
func (j *Job) advance(r *rank) {
	for r.ready.Len() > 0 {
		task := r.ready.order[heap.Pop(r.ready).(int)]
		if x := r.Exchange(task); x != nil && j.joins(x, r.number) {
			key := x.key(r.number)
			r.waiting[key] = append(r.waiting[key], task)
			if _, ok := j.begun[key]; !ok {
				j.begun[key] = j.begins
				j.begins++
			}
			j.came = append(j.came, key)
			continue
		}
		j.Add(r.number, task, r.Describe(task))
		j.done(r, task)
	}
}

// joins reports whether an exchange is known, and all of its ranks are there. Others stay as recorded.
func (j *Job) joins(x *Exchange, rank int) bool {
	members := len(j.groups[x.key(rank)])
	if _, known := x.kind(); !known || members < 2 {
		return false
	}
	return x.Between() || max(x.Ranks, len(x.Members)) <= members
}

// Kept counts exchanges that stay as recorded, though others have recordings of several ranks.
func (j *Job) Kept() (n int) {
	for _, r := range j.ranks {
		for _, task := range r.ready.order {
			if x := r.Exchange(task); x != nil && !j.joins(x, r.number) {
				n++
			}
		}
	}
	return n
}

// done lets the tasks behind a task of a rank go on.
func (j *Job) done(r *rank, task int) {
	for _, f := range r.followers[task] {
		if r.missing[f]--; r.missing[f] == 0 {
			heap.Push(r.ready, r.place[f])
		}
	}
}

// meet adds the exchanges of a group that all of its ranks have come to.
func (j *Job) meet(key string) error {
	for {
		var parts []*part
		left := false
		for _, n := range j.groups[key] {
			r := j.ranks[n]
			if len(r.waiting[key]) > 0 {
				left = true
				task := r.waiting[key][0]
				parts = append(parts, &part{rank: r, task: task, Exchange: r.Exchange(task)})
			}
		}
		if !left {
			delete(j.begun, key)
		}
		if len(parts) < len(j.groups[key]) || !left {
			return nil
		}
		if k, _ := parts[0].kind(); k.name == receive {
			slices.Reverse(parts)
		}
		for _, p := range parts {
			p.waiting[key] = p.waiting[key][1:]
		}
		if err := j.exchange(parts); err != nil {
			return err
		}
	}
}
