package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
)

// Two schedules that another simulator, dslab-dag, computed for 100 tasks on four unlike
// nodes are replayed here: which core runs which tasks in which order is taken from its
// traces, all times are dahl's. What dslab does, as its traces show it:
//
//   - a task takes its operations divided by the speed of its node, on one core
//   - a transfer takes 100 µs plus 1 ns per byte, however many others are under way: a
//     fatpipe of 1 GB/s
//   - data moves from the node of its producer to that of its reader, or from the
//     master, where the inputs of the graph are; results go back to the master
//   - within a node nothing moves
//
// Its rules differ from dahl's in four points:
//
//  1. It moves an item once for each task that reads it, dahl once for each memory. The
//     first one to arrive lets all of them start, and transfers do not slow each other
//     down, so no time depends on this. The first transfers are those that are compared.
//  2. It moves an item when its producer has ended and its reader has been placed. A
//     replayed plan has placed all readers beforehand, so that dahl moves an item when it is
//     written. dslab's lookahead places beforehand too; its simple scheduler places a task when
//     it could run, so that uploads come later.
//  3. Its simple scheduler gives a task to a node, and not to a core. The node starts its
//     tasks in the order in which it was given them: one whose data are there waits for
//     the data of those before it, though cores are idle. A core of dahl's waits for its own
//     tasks only.
//  4. It counts in float64 seconds, dahl in whole nanoseconds, rounded up.
//
// The lookahead schedule is replayed as it is. The simple one is replayed as it is, with
// either rule and with both. With both no difference is left, so that the two rules explain
// all of them. The rules are orders and tasks of no duration in the graph; the simulator
// does not know of them.

// dslabTrace is what dslab writes.
type dslabTrace struct {
	Resources []struct {
		Name  string
		Speed float64 // Gflop/s of a core
		Cores int
	}
	Graph struct {
		Tasks []struct {
			Flops           float64 // in units of 10⁹
			Inputs, Outputs []int   // items
		}
		Items []struct{ Size float64 } `json:"data_items"` // MB
	}
	Events []struct {
		Time     float64 // s
		Type     string
		Task     int `json:"task_id"`
		Location string
		From, To string
		Transfer int `json:"data_id"`
		Item     int `json:"data_item_id"`
	}
}

// dslabMaster is where the inputs are and the results go.
const dslabMaster = "runner"

// itemAt is an item in the memory of a node.
type itemAt struct {
	item int
	node string
}

// dslabMove is the first transfer of an item to a node.
type dslabMove struct {
	itemAt
	schedule.Interval
	from  string
	after int // the task whose end let it start; noTask: it starts at 0
}

// noTask is in place of a task where there is none.
const noTask = -1

// dslabStart is a task that starts, or a transfer.
type dslabStart struct {
	task int
	move *dslabMove // nil: the task
}

// dslabRun is a trace taken apart.
type dslabRun struct {
	dslabTrace
	node     []string            // by task
	times    []schedule.Interval // by task
	producer []int               // by item; noTask: the master has it
	moves    map[itemAt]*dslabMove
	log      []dslabStart // in the order of the trace
}

func readDslab(t *testing.T, file string) *dslabRun {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/dslab/" + file))(t)
	r := &dslabRun{moves: map[itemAt]*dslabMove{}}
	if err := json.Unmarshal(text, &r.dslabTrace); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	tasks := len(r.Graph.Tasks)
	r.node, r.times = make([]string, tasks), make([]schedule.Interval, tasks)
	r.producer = slices.Repeat([]int{noTask}, len(r.Graph.Items))
	for i, task := range r.Graph.Tasks {
		for _, item := range task.Outputs {
			r.producer[item] = i
		}
	}
	r.readEvents()
	return r
}

// readEvents walks over the trace. What starts at one moment because a task has ended
// stands behind the end of that task, and before the next end.
func (r *dslabRun) readEvents() {
	ended := noTask
	first := map[int]*dslabMove{} // by transfer
	for _, e := range r.Events {
		at := time.Duration(math.Round(e.Time * 1e9))
		switch e.Type {
		case "task_scheduled":
			r.node[e.Task] = e.Location
		case "task_started":
			r.times[e.Task].Start = at
			r.log = append(r.log, dslabStart{e.Task, nil})
		case "task_completed":
			r.times[e.Task].End, ended = at, e.Task
		case "start_uploading":
			to := itemAt{e.Item, e.To}
			if r.moves[to] == nil {
				m := &dslabMove{to, schedule.Interval{Start: at}, e.From, ended}
				r.moves[to], first[e.Transfer] = m, m
				r.log = append(r.log, dslabStart{noTask, m})
			}
		case "finish_uploading":
			if m := first[e.Transfer]; m != nil {
				m.End = at
			}
		}
	}
}

// dataReady is when dslab had all that a task reads on its node.
func (r *dslabRun) dataReady(task int) (at time.Duration) {
	for _, item := range r.Graph.Tasks[task].Inputs {
		if m := r.moves[itemAt{item, r.node[task]}]; m != nil {
			at = max(at, m.End)
		} else {
			at = max(at, r.times[r.producer[item]].End)
		}
	}
	return at
}

// platform is the four nodes and the master. Each has a memory and, beside its cores, an
// agent for tasks of no duration: the master's gets the results.
func (r *dslabRun) platform(t *testing.T) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "cluster-het-4-32cores", Links: []platform.Link{{Name: "network", BandwidthBytesPerSec: 1e9,
		Latency: 100 * time.Microsecond, Sharing: platform.Fatpipe, PowerSource: platform.Guess}}}
	add := func(name string, cores int) {
		m := platform.MemoryID(len(p.Memories))
		for other := range m {
			p.Routes = append(p.Routes, platform.Route{From: other, To: m, Links: []platform.LinkID{0}})
		}
		p.Memories = append(p.Memories, platform.Memory{Name: name, BandwidthBytesPerSec: 1e9})
		p.Devices = append(p.Devices, platform.Device{Name: agentOf(name), Kind: "cpu", Count: 1, Memory: m, PowerSource: platform.Guess})
		if cores > 0 {
			p.Devices = append(p.Devices, platform.Device{Name: name, Kind: "cpu", Count: cores, Memory: m, PowerSource: platform.Guess})
		}
	}
	add(dslabMaster, 0)
	for _, n := range r.Resources {
		add(n.Name, n.Cores)
	}
	must.Do(t, p.Complete())
	return p
}

func agentOf(node string) string { return node + "-agent" }

// dslabRules are rules of dslab that a replay keeps to.
type dslabRules struct {
	decided bool // the second of the list above
	queued  bool // the third
}

// dslabReplay is a graph and a plan in the making.
type dslabReplay struct {
	*dslabRun
	rules   dslabRules
	builder *dag.Builder
	ids     []dag.TaskID            // by task of dslab
	agents  map[string][]dag.TaskID // by name of device: what it runs
	copies  map[itemAt]dag.BufferID // of items whose transfer waits for a decision
}

func (r *dslabRun) replay(rules dslabRules) *dslabReplay {
	y := &dslabReplay{dslabRun: r, rules: rules, builder: dag.NewBuilder("inspiral-100"), ids: make([]dag.TaskID, len(r.Graph.Tasks)),
		agents: map[string][]dag.TaskID{}, copies: map[itemAt]dag.BufferID{}}
	for i := range r.Graph.Items {
		home := ""
		if r.producer[i] == noTask {
			home = dslabMaster
		}
		y.buffer(strconv.Itoa(i), i, home)
	}
	for _, s := range r.log {
		switch {
		case s.move == nil:
			y.addTask(s.task)
		case s.move.node == dslabMaster:
			y.addAgent("result", s.move.itemAt, dslabMaster, nil, []dag.Access{dslabAccess(y.at(s.move.itemAt), dag.Read)})
		case rules.decided && s.move.after != r.producer[s.move.item]:
			y.addUpload(s.move)
		}
	}
	return y
}

// buffer adds one of the size of an item; its name begins with the item's number.
func (y *dslabReplay) buffer(name string, item int, home string) dag.BufferID {
	bytes := int(math.Round(y.Graph.Items[item].Size * 1e6))
	return y.builder.Buffer(dag.Buffer{Name: name, Shape: []int{bytes}, Type: dag.Uint8, Home: home})
}

// dslabAccess is to a whole buffer.
func dslabAccess(b dag.BufferID, m dag.Mode) dag.Access {
	return dag.Access{Region: dag.Region{Buffer: b}, Mode: m}
}

// at is the buffer that a task on a node reads an item from.
func (y *dslabReplay) at(k itemAt) dag.BufferID {
	if b, ok := y.copies[k]; ok {
		return b
	}
	return dag.BufferID(k.item)
}

// addTask adds a task of dslab. Where nodes have queues, it follows a task of its node's agent
// that reads the same: agents run theirs in the order in which dslab started them.
func (y *dslabReplay) addTask(i int) {
	task := dag.Task{Name: strconv.Itoa(i)}
	for _, n := range y.Resources {
		task.Costs = append(task.Costs, dag.Cost{Key: n.Name, Ns: int64(math.Round(y.Graph.Tasks[i].Flops / n.Speed * 1e9))})
	}
	var first itemAt
	for _, item := range y.Graph.Tasks[i].Inputs {
		first = itemAt{item, y.node[i]}
		task.Accesses = append(task.Accesses, dslabAccess(y.at(first), dag.Read))
	}
	if y.rules.queued {
		task.After = []dag.TaskID{y.addAgent("start "+task.Name, first, y.node[i], nil, slices.Clone(task.Accesses))}
	}
	for _, item := range y.Graph.Tasks[i].Outputs {
		task.Accesses = append(task.Accesses, dslabAccess(dag.BufferID(item), dag.Write))
	}
	y.ids[i] = y.builder.Task(task)
}

// addUpload adds a copy of an item that is written when the transfer was decided, and that
// readers on the node read.
func (y *dslabReplay) addUpload(m *dslabMove) {
	home := y.at(itemAt{m.item, m.from})
	y.copies[m.itemAt] = y.buffer(fmt.Sprint(m.item, " for ", m.node), m.item, "")
	y.addAgent("send", m.itemAt, m.from, []dag.TaskID{y.ids[m.after]},
		[]dag.Access{dslabAccess(home, dag.Read), dslabAccess(y.copies[m.itemAt], dag.Write)})
}

// addAgent adds a task of no duration.
func (y *dslabReplay) addAgent(what string, k itemAt, node string, after []dag.TaskID, accesses []dag.Access) dag.TaskID {
	device := agentOf(node)
	id := y.builder.Task(dag.Task{Name: fmt.Sprint(what, " ", k.item, " ", k.node), Costs: []dag.Cost{{Key: device}}, Accesses: accesses, After: after})
	y.agents[device] = append(y.agents[device], id)
	return id
}

// plan gives each task a core of its node. The traces do not say which. It is one that
// is free, and of these the one that became free last, which the task waited for if it
// waited for a core; of tasks that start together, the one whose data were there first did.
func (y *dslabReplay) plan(p *platform.Platform) *schedule.Plan {
	plan := &schedule.Plan{Order: make([][]dag.TaskID, len(p.Workers))}
	for w := range p.Workers {
		plan.Order[w] = y.agents[p.Workers[w].Name]
	}
	var order []int
	for _, s := range y.log {
		if s.move == nil {
			order = append(order, s.task)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(y.times[a].Start, y.times[b].Start), cmp.Compare(y.dataReady(a), y.dataReady(b)))
	})
	free := make([]time.Duration, len(p.Workers))
	for _, i := range order {
		core := noTask
		for w := range p.Workers {
			of := p.Devices[p.Workers[w].Device].Name
			if of == y.node[i] && free[w] <= y.times[i].Start && (core == noTask || free[w] > free[core]) {
				core = w
			}
		}
		plan.Order[core] = append(plan.Order[core], y.ids[i])
		free[core] = y.times[i].End
	}
	return plan
}

// replayOn runs a plan, and has the schedule checked.
func replayOn(t *testing.T, g *dag.Graph, p *platform.Platform, plan *schedule.Plan) *schedule.Schedule {
	t.Helper()
	replayed := problem(t, g, p, 1)
	s := must.Get(run(replayed, how{plan: plan}))(t)
	must.Do(t, audit.Check(s, replayed))
	return s
}

// dslabTolerance is relative to dslab's time.
const dslabTolerance = 1e-6

// dslabDifference is how far the start or the end of something is from dslab's, relative to it.
func dslabDifference(got, want schedule.Interval) float64 {
	relative := func(got, want time.Duration) float64 { return float64((got - want).Abs()) / float64(max(1, want)) }
	return max(relative(got.Start, want.Start), relative(got.End, want.End))
}

// The tasks of the simple schedule that dahl starts earlier, by more than dslabTolerance, for
// the lack of a rule. Task 28 is in both lists.
var (
	// 84 to 96 read two inputs of 15.6 MB that were elsewhere before. dslab uploads them when it
	// places the task, which is when the bank is there that the task reads too (60 to 72);
	// dahl at 0. The task starts up to 15.9 ms earlier. Of 23, 28, 34 and 41, the first of their
	// kind on each node, it is one input of 2.4 MB, and 2.5 ms. 98 and 99 wait for the
	// results of 84 to 92 and 93 to 96.
	dslabUploads = []int{23, 28, 34, 41, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 98, 99}
	// At 0 each node is given a task for each core, and these wait for data of those that it
	// was given before them, up to 51 µs. 28, 29, 30, 36 and 37 follow 5, 6, 7, 13 and 14 on
	// their cores.
	dslabQueues = []int{1, 3, 5, 6, 7, 10, 11, 13, 14, 15, 17, 19, 20, 21, 22, 28, 29, 30, 36, 37}
)

func TestDslab(t *testing.T) {
	const lookahead, simple = "lookahead_result.json", "simple_result.json"
	for _, c := range []struct {
		name, file string
		rules      dslabRules
		earlier    [][]int // tasks that dahl starts earlier; all others agree
	}{
		{"lookahead", lookahead, dslabRules{}, nil},
		{"simple", simple, dslabRules{}, [][]int{dslabUploads, dslabQueues}},
		{"simple, uploads when decided", simple, dslabRules{decided: true}, [][]int{dslabQueues}},
		{"simple, nodes with queues", simple, dslabRules{queued: true}, [][]int{dslabUploads}},
		{"simple, both", simple, dslabRules{decided: true, queued: true}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := readDslab(t, c.file)
			p, y := r.platform(t), r.replay(c.rules)
			g := must.Get(y.builder.Build())(t)
			s := replayOn(t, g, p, y.plan(p))
			r.compareTasks(t, g, s, slices.Concat(c.earlier...))
			r.compareMoves(t, g, p, s, c.earlier == nil)
		})
	}
}

// compareTasks compares the times of all tasks, and fails also when a known difference is
// no longer there.
func (r *dslabRun) compareTasks(t *testing.T, g *dag.Graph, s *schedule.Schedule, earlier []int) {
	t.Helper()
	compared, known, largest := 0, 0, 0.0
	for _, span := range s.Spans {
		i, err := strconv.Atoi(g.Tasks[span.Task].Name)
		if err != nil {
			continue // an agent's
		}
		compared++
		got, want := schedule.Interval{Start: span.Start, End: span.End}, r.times[i]
		difference := dslabDifference(got, want)
		if !slices.Contains(earlier, i) {
			largest = max(largest, difference)
			if difference > dslabTolerance {
				t.Errorf("task %d on %s: %v to %v, dslab has %v to %v: %.2g", i, r.node[i], got.Start, got.End, want.Start, want.End, difference)
			}
			continue
		}
		known++
		if difference <= dslabTolerance || got.Start > want.Start {
			t.Errorf("task %d on %s starts at %v, dslab's at %v; the list says that it starts earlier here", i, r.node[i], got.Start, want.Start)
		}
	}
	if compared != len(r.times) {
		t.Errorf("%d tasks ran, dslab has %d", compared, len(r.times))
	}
	t.Logf("%d tasks start earlier by a rule, the other %d agree to %.2g", known, compared-known, largest)
}

// compareMoves compares the transfers, those of the results among them. Their times are compared
// where those of all tasks agree.
func (r *dslabRun) compareMoves(t *testing.T, g *dag.Graph, p *platform.Platform, s *schedule.Schedule, times bool) {
	t.Helper()
	largest := 0.0
	for _, x := range s.Transfers {
		number, _, _ := strings.Cut(g.Buffers[x.Buffer].Name, " ")
		item := must.Get(strconv.Atoi(number))(t)
		from, to := p.Memories[x.From].Name, p.Memories[x.To].Name
		m := r.moves[itemAt{item, to}]
		if m == nil || m.from != from {
			t.Fatalf("item %d moves from %s to %s, which it does not in dslab", item, from, to)
		}
		difference := dslabDifference(schedule.Interval{Start: x.Start, End: x.End}, m.Interval)
		largest = max(largest, difference)
		if times && difference > dslabTolerance {
			t.Errorf("item %d from %s to %s: %v to %v, dslab has %v to %v: %.2g", item, from, to, x.Start, x.End, m.Start, m.End, difference)
		}
	}
	if len(s.Transfers) != len(r.moves) {
		t.Errorf("%d transfers, dslab has %d first ones", len(s.Transfers), len(r.moves))
	}
	if times {
		t.Logf("%d transfers agree to %.2g", len(s.Transfers), largest)
	}
}
