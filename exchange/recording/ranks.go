package recording

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"dahl/dag"
	"dahl/exchange/ranks"
	"dahl/platform"
)

// job is the ranks of one training. Their clocks are aligned at the beginning of the recorded steps.
type job struct {
	ranks []*rank
	alone bool // without older work that delays a step
}

// rank is a recording as one of the ranks. One recording may stand for several ranks.
type rank struct {
	*timeline
	number, standsFor int // standsFor is the number of ranks that have the same recording; 1 is its own alone
	firstGPU          int
	step              int
	shared            map[*event]operatorWork
}

// newJob orders ranks, and takes the only recording for all ranks if there are to be several.
func newJob(recorded []*timeline, count int) (*job, error) {
	j := &job{}
	stands := 1
	if count > 0 && len(recorded) == 1 {
		stands = count
	}
	gpus := 0
	for _, t := range recorded {
		gpus += stands * max(1, len(t.devices()))
	}
	if routes := gpus * (gpus + 1) / 2; stands*len(recorded) > 1 && routes > platform.MaxParts {
		return nil, fmt.Errorf("%s: %d GPUs of all ranks have %d routes to the host and to each other, and a machine has at most %d; take fewer ranks", recorded[0].file, gpus, routes, platform.MaxParts)
	}
	for _, t := range recorded {
		shared := t.workOfOperators()
		for range stands {
			j.ranks = append(j.ranks, &rank{timeline: t, standsFor: stands, shared: shared})
		}
	}
	if count > 0 && len(j.ranks) != count {
		return nil, fmt.Errorf("%s: %d ranks are asked for, and there are recordings of %d; give one recording, or one for each rank", recorded[0].file, count, len(recorded))
	}
	if len(recorded) > 1 {
		slices.SortStableFunc(j.ranks, func(a, b *rank) int { return a.rank - b.rank })
		for i, t := range j.ranks {
			if t.world > 0 && (t.world != len(recorded) || t.rank != i) {
				return nil, fmt.Errorf("%s: rank %d of %d, and there are recordings of %d ranks; give one for each", t.file, t.rank, t.world, len(recorded))
			}
		}
	}
	next := 0
	for i, r := range j.ranks {
		r.number, r.firstGPU = i, next
		next += max(1, len(r.devices()))
	}
	return j, nil
}

// rankNotes says which ranks have no recording, and whether ranks exchange anything.
func (j *job) rankNotes() []string {
	t := j.ranks[0].timeline
	exchanges := slices.ContainsFunc(t.tasks, func(k task) bool { return k.exchange() != nil })
	switch {
	case len(j.ranks) == 1 && t.world > 1:
		return []string{fmt.Sprintf("rank %d of %d: exchanges with the other ranks take as long as recorded; --ranks %d makes copies between GPUs of them", t.rank, t.world, t.world)}
	case len(j.ranks) > 1 && !exchanges:
		return []string{"no exchange between ranks is recorded: nothing in the graph makes one wait for another"}
	}
	return nil
}

// graph builds the graph of a step, or of every step, of all ranks. Exchanges between several ranks are copies.
func (j *job) graph(name, step string) (*dag.Graph, error) {
	var all []ranks.Rank
	for _, r := range j.ranks {
		at, err := r.stepNamed(step)
		if err != nil {
			return nil, err
		}
		r.step = at
		all = append(all, r)
	}
	b := ranks.New(name, all)
	for _, r := range j.ranks {
		if r.step != everyStep && !j.alone {
			r.addEarlier(b)
		}
	}
	if n := b.Kept(); len(j.ranks) > 1 && n > 0 {
		j.ranks[0].left["exchanges with ranks that have no recording, which take as long as recorded"] = n
	}
	return b.Graph()
}

// File implements [ranks.Rank].
func (r *rank) File() string { return r.file }

// Order implements [ranks.Rank].
func (r *rank) Order() []int {
	order := r.timeline.order()
	if r.step == everyStep {
		return order
	}
	return slices.DeleteFunc(order, func(id int) bool { return r.tasks[id].step != r.step })
}

// After implements [ranks.Rank].
func (r *rank) After(id int) []int { return r.tasks[id].after }

// Exchange implements [ranks.Rank].
func (r *rank) Exchange(id int) *ranks.Exchange {
	x := r.tasks[id].exchange()
	if r.standsFor > 1 {
		return x.Shifted(r.number, r.standsFor, r.world)
	}
	return x
}

// Describe implements [ranks.Rank].
func (r *rank) Describe(id int) dag.Task {
	task := r.describe(&r.tasks[id], r.shared)
	task.Placement = r.placement(&r.tasks[id])
	return task
}

// exchange of a task with other ranks; nil where there is none.
func (k *task) exchange() *ranks.Exchange {
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

// placement is where a task of a rank runs.
func (r *rank) placement(k *task) *dag.Placement {
	if k.stream < 0 {
		return &dag.Placement{Device: hostDevice}
	}
	at, _ := slices.BinarySearch(r.devices(), r.streams[k.stream].device)
	return &dag.Placement{Device: fmt.Sprintf("gpu%d", r.firstGPU+at)}
}

// addEarlier adds a task for each piece of older work that ends within a step and delays it.
func (r *rank) addEarlier(b *ranks.Job) {
	start := r.steps[r.step].start
	for _, list := range r.earlierWork(r.step) {
		at, before := start, dag.TaskID(-1)
		for _, p := range list {
			k := &r.tasks[p]
			task := dag.Task{Op: earlier, Placement: r.placement(k), Labels: dag.Labels{Phase: r.steps[r.step].name}, Costs: cost(k.end - at)}
			if before >= 0 {
				task.After = []dag.TaskID{before}
			}
			before, at = b.Add(r.number, p, task), k.end
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
	for _, r := range j.ranks {
		for i, device := range r.devices() {
			r.addGPU(p, r.firstGPU+i, device)
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
			x := k.exchange()
			if x == nil || x.Ranks < 2 || x.Bytes < 1<<20 || k.end == k.start || !strings.HasPrefix(strings.ToLower(x.Kind), "allreduce") {
				continue
			}
			n := float64(x.Ranks)
			best = max(best, 2*(n-1)/n*float64(x.Bytes)/(float64(k.end-k.start)/1e9))
		}
	}
	if best > 0 {
		return best
	}
	return unknownBoard.linkBy
}
