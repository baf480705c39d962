package recording

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// job is the ranks of one training. Their clocks are aligned at the beginning of the recorded steps.
type job struct {
	ranks  []*timeline
	alone  bool  // without older work that delays a step
	firsts []int // number of the first GPU of each rank

	b     *dag.Builder
	names namer
}

// exchangeKind says how an exchange between ranks is made of copies. Each rank takes slices of the inputs of others, adds them where the exchange is a
// sum, and hands slices of the result to others.
type exchangeKind struct{ sums, gathers, whole, fromFirst bool }

// exchangeKinds are the collectives that become copies, by the start of their names without underscores.
var exchangeKinds = map[string]exchangeKind{
	"allreduce": {sums: true, gathers: true}, "reducescatter": {sums: true}, "allgather": {gathers: true, whole: true}, "broadcast": {gathers: true, whole: true, fromFirst: true}, "alltoall": {sums: true},
}

func (c *collective) exchange() (exchangeKind, bool) {
	name := strings.ReplaceAll(strings.ToLower(c.kind), "_", "")
	for start, k := range exchangeKinds {
		if strings.HasPrefix(name, start) {
			return k, true
		}
	}
	return exchangeKind{}, false
}

// newJob orders ranks, and takes the only recording for all ranks if there are to be several.
func newJob(ranks []*timeline, count int) (*job, error) {
	j := &job{ranks: ranks, names: namer{}}
	if count > 0 && len(ranks) == 1 {
		for len(j.ranks) < count {
			j.ranks = append(j.ranks, ranks[0])
		}
	}
	if count > 0 && len(j.ranks) != count {
		return nil, fmt.Errorf("%s: %d ranks are asked for, and there are recordings of %d; give one recording, or one for each rank", ranks[0].file, count, len(ranks))
	}
	if len(ranks) > 1 {
		slices.SortStableFunc(j.ranks, func(a, b *timeline) int { return a.rank - b.rank })
		for i, t := range j.ranks {
			if t.world > 0 && (t.world != len(ranks) || t.rank != i) {
				return nil, fmt.Errorf("%s: rank %d of %d, and there are recordings of %d ranks; give one for each", t.file, t.rank, t.world, len(ranks))
			}
		}
	}
	next := 0
	for _, t := range j.ranks {
		j.firsts = append(j.firsts, next)
		next += max(1, len(t.devices()))
	}
	return j, nil
}

// rankNotes says which ranks have no recording, and whether ranks exchange anything.
func (j *job) rankNotes() []string {
	t := j.ranks[0]
	exchanges := slices.ContainsFunc(t.tasks, func(k task) bool { return k.collective() != nil })
	switch {
	case len(j.ranks) == 1 && t.world > 1:
		return []string{fmt.Sprintf("rank %d of %d: exchanges with the other ranks take as long as recorded; --ranks %d makes copies between GPUs of them", t.rank, t.world, t.world)}
	case len(j.ranks) > 1 && !exchanges:
		return []string{"no exchange between ranks is recorded: nothing in the graph makes one wait for another"}
	}
	return nil
}

// rankGraph is the part of a rank that is in the graph so far.
type rankGraph struct {
	*timeline
	number  int
	order   []int
	ids     []dag.TaskID
	shared  map[*event]operatorWork
	pending int // the task that is an exchange with others; -1 where there is none
}

// graph builds the graph of a step, or of every step, of all ranks. Exchanges between several ranks are copies.
func (j *job) graph(name string, step int) (*dag.Graph, error) {
	j.b = dag.NewBuilder(name)
	ranks := make([]*rankGraph, len(j.ranks))
	for r, t := range j.ranks {
		ranks[r] = &rankGraph{timeline: t, number: r, order: t.order(), ids: make([]dag.TaskID, len(t.tasks)), shared: t.workOfOperators()}
		for i := range ranks[r].ids {
			ranks[r].ids[i] = -1
		}
		if step != everyStep && !j.alone {
			j.addEarlier(ranks[r], step)
		}
	}
	for {
		left := false
		for _, r := range ranks {
			j.advance(r, step)
			left = left || r.pending >= 0
		}
		if !left {
			return j.b.Build()
		}
		for _, r := range ranks {
			if r.pending < 0 {
				return nil, fmt.Errorf("%s: rank %d has fewer exchanges than others in this step; give recordings of the same steps", r.file, r.number)
			}
		}
		if err := j.exchange(ranks); err != nil {
			return nil, err
		}
	}
}

// advance adds the tasks of a rank up to its next exchange.
func (j *job) advance(r *rankGraph, step int) {
	r.pending = -1
	for len(r.order) > 0 {
		id := r.order[0]
		k := &r.tasks[id]
		r.order = r.order[1:]
		if step != everyStep && k.step != step {
			continue
		}
		if c := k.collective(); c != nil && len(j.ranks) > 1 {
			if _, ok := c.exchange(); ok && c.bytes >= int64(len(j.ranks)) {
				r.pending = id
				return
			}
		}
		task := j.describe(r, k)
		r.ids[id] = j.b.Task(task)
	}
}

// collective of a task; nil where it is none.
func (k *task) collective() *collective {
	switch {
	case k.stream < 0 || k.event.cat != kernel:
		return nil
	case k.event.exchange != nil:
		return k.event.exchange
	case k.operator != nil:
		return k.operator.exchange
	}
	return nil
}

// describe makes a task of a rank, behind the tasks that it follows.
func (j *job) describe(r *rankGraph, k *task) dag.Task {
	task := r.timeline.describe(k, r.shared)
	j.settle(r, k, &task)
	return task
}

// settle gives a task its name, its place and the tasks before it.
func (j *job) settle(r *rankGraph, k *task, task *dag.Task) {
	if len(j.ranks) > 1 {
		task.Labels.Layer = fmt.Sprintf("rank %d %s", r.number, task.Labels.Layer)
	}
	task.Name = j.names.next(task.Op)
	task.Placement = j.placement(r, k)
	for _, p := range k.after {
		if r.ids[p] >= 0 {
			task.After = append(task.After, r.ids[p])
		}
	}
}

// placement is where a task of a rank runs.
func (j *job) placement(r *rankGraph, k *task) *dag.Placement {
	if k.stream < 0 {
		return &dag.Placement{Device: hostDevice}
	}
	at, _ := slices.BinarySearch(r.devices(), r.streams[k.stream].device)
	return &dag.Placement{Device: fmt.Sprintf("gpu%d", j.firsts[r.number]+at)}
}

// exchange adds the next exchange of all ranks as copies between the memories of their GPUs.
func (j *job) exchange(ranks []*rankGraph) error {
	n := len(ranks)
	c := ranks[0].tasks[ranks[0].pending].collective()
	kind, _ := c.exchange()
	for _, r := range ranks {
		if other := r.tasks[r.pending].collective(); other.kind != c.kind || other.bytes != c.bytes {
			return fmt.Errorf("%s: rank %d has %s of %d bytes where rank 0 has %s of %d; give recordings of the same steps", r.file, r.number, other.kind, other.bytes, c.kind, c.bytes)
		}
	}
	op := "exchange " + c.kind
	inputs, results := make([]dag.BufferID, n), make([]dag.BufferID, n)
	slice := c.bytes / int64(n)
	for i, r := range ranks { // each has its input ready
		k := &r.tasks[r.pending]
		name := j.names.next(op)
		inputs[i] = j.b.Buffer(dag.Buffer{Name: name + ".in", Shape: []int{int(c.bytes)}, Type: dag.Uint8})
		task := dag.Task{Op: op, Costs: cost(0), Labels: dag.Labels{Phase: r.stepName(k.step)}, Accesses: []dag.Access{{Region: dag.Region{Buffer: inputs[i]}, Mode: dag.Write}}}
		j.settle(r, k, &task)
		r.ids[r.pending] = j.b.Task(task)
	}
	if kind.sums {
		for i, r := range ranks {
			results[i] = j.b.Buffer(dag.Buffer{Name: j.names.next(op) + ".slice", Shape: []int{int(slice)}, Type: dag.Uint8})
			task := dag.Task{Op: op, MovedBytes: 0}
			for _, in := range inputs {
				task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: in, Box: dag.Box{{Lo: i * int(slice), Hi: (i + 1) * int(slice)}}}, Mode: dag.Read})
			}
			task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: results[i]}, Mode: dag.Write})
			j.behind(r, task)
		}
	}
	if kind.gathers {
		from := results
		if kind.whole {
			from = inputs
		}
		if kind.fromFirst {
			from = from[:1]
		}
		for _, r := range ranks {
			task := dag.Task{Op: op}
			for _, b := range from {
				task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: b}, Mode: dag.Read})
			}
			j.behind(r, task)
		}
	}
	return nil
}

// behind adds a further part of an exchange to a rank.
func (j *job) behind(r *rankGraph, task dag.Task) {
	k := &r.tasks[r.pending]
	task.Name, task.Costs, task.Placement, task.After = j.names.next(task.Op), cost(0), j.placement(r, k), []dag.TaskID{r.ids[r.pending]}
	task.Labels.Phase = r.stepName(k.step)
	r.ids[r.pending] = j.b.Task(task)
}

// addEarlier adds a task for each piece of older work of a rank that ends within a step and delays it.
func (j *job) addEarlier(r *rankGraph, step int) {
	start := r.steps[step].start
	awaited := r.earlierWork(step)
	for _, list := range awaited {
		at, before := start, dag.TaskID(-1)
		for _, p := range list {
			k := &r.tasks[p]
			task := dag.Task{Name: j.names.next(earlier), Op: earlier, Placement: j.placement(r, k), Labels: dag.Labels{Phase: r.steps[step].name}, Costs: cost(k.end - at)}
			if before >= 0 {
				task.After = []dag.TaskID{before}
			}
			before, at = j.b.Task(task), k.end
			r.ids[p] = before
		}
	}
}

// machine describes what the ranks ran on, as one machine. GPUs reach each other over links that carry the recorded exchanges in
// their shortest time, or else as fast as the link to the host.
func (j *job) machine(name string) (*platform.Platform, error) {
	p := &platform.Platform{Name: name, HostPower: platform.Quantity{Value: hostWatts, Source: platform.Guess}}
	p.Memories = append(p.Memories, platform.Memory{Name: "ram", Host: true, BandwidthBytesPerSec: hostBytesPerSec})
	cores := 0
	for _, t := range j.ranks {
		cores += t.cores()
	}
	p.Devices = append(p.Devices, platform.Device{
		Name: hostDevice, Kind: platform.CPU, Count: max(1, cores), FlopsPerSec: map[string]float64{dag.Float32.String(): coreFlops},
		IdleWatts: coreIdleWatts, Busy: platform.BusyPower{UnitWatts: coreBusyWatts}, PowerSource: platform.Guess,
	})
	for r, t := range j.ranks {
		for i, device := range t.devices() {
			t.addGPU(p, j.firsts[r]+i, device)
		}
	}
	if len(j.ranks) > 1 {
		j.addPeerLinks(p)
	}
	if err := p.Complete(); err != nil {
		return nil, err
	}
	return p, nil
}

// addPeerLinks joins the memories of all GPUs.
func (j *job) addPeerLinks(p *platform.Platform) {
	rate := j.exchangeRate()
	gpus := len(p.Memories) - 1
	first := platform.LinkID(len(p.Links))
	for i := range gpus {
		p.Links = append(p.Links, platform.Link{Name: fmt.Sprintf("peer%d", i), BandwidthBytesPerSec: rate, Latency: 2 * time.Microsecond, Sharing: platform.Duplex})
	}
	for a := range gpus {
		for b := a + 1; b < gpus; b++ {
			p.Routes = append(p.Routes, platform.Route{From: platform.MemoryID(a + 1), To: platform.MemoryID(b + 1), Links: []platform.LinkID{first + platform.LinkID(a), first + platform.LinkID(b)}})
		}
	}
}

// exchangeRate is the bytes per second of a GPU in the fastest large exchange: each sends and receives 2 (n-1)/n of the bytes of an allreduce.
func (j *job) exchangeRate() float64 {
	best := 0.0
	for _, t := range j.ranks {
		for i := range t.tasks {
			k := &t.tasks[i]
			c := k.collective()
			if c == nil || c.ranks < 2 || c.bytes < 1<<20 || k.end == k.start || !strings.HasPrefix(strings.ToLower(c.kind), "allreduce") {
				continue
			}
			n := float64(c.ranks)
			best = max(best, 2*(n-1)/n*float64(c.bytes)/(float64(k.end-k.start)/1e9))
		}
	}
	if best > 0 {
		return best
	}
	return unknownBoard.linkBy
}
