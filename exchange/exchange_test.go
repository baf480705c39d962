package exchange

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
)

// stgPlain is in the form of the Standard Task Graph Set: two tasks between two dummies, which the
// first line does not count.
const stgPlain = `          2
          0          0          0
          1         20          1          0
          2          3          1          0
          3          0          2          1          2
# Standard Task Graph Set Project
# Tasks : 2 (+dummy tasks : 2)
`

// stgCosts is in the form with communication costs, on two processors; the last task stands first.
const stgCosts = `# by hand
	3	2
	7	1.5	2	# two predecessors
			4	2
			5	0
	4	3	0
	5	5	1
			4	0.25
`

// dotSizes is in the form of SimGrid: root and end have no work, and an edge below 0 carries nothing.
const dotSizes = `/* by hand */
strict DiGraph "a workflow" {
  rankdir=LR; node [shape=box]; graph [size="7,5"]
  c1 [size="1e9", alpha=0.2] // 1 GFLOP
  "c 2" [label=<<b>c</b>>, size="5e9"];
  root -> c1 [size="2e8" weight=7];
  root -> "c 2" [size="0.4"]
  c1 -> end [size="1.5"]
  "c 2" -> end [size="-1"]
}
`

// dotWeights is an exercise in scheduling, with a default and a chain.
const dotWeights = `digraph {
	node [Weight=2]
	a; b [weight=3.5]
	# c and d take the default
	edge [weight=1]
	a -> b -> c
	a -> d [Weight=0];
}
`

// placementNodes is a training of one layer, with the last node first.
const placementNodes = `{"maxSizePerFPGA": 1000, "maxFPGAs": 2, "maxCPUs": 1,
 "nodes": [
  {"id": 9, "name": "fc grad", "supportedOnFpga": 1, "cpuLatency": 4, "fpgaLatency": 0.5, "isBackwardNode": 1, "colorClass": 3, "size": 100.0},
  {"id": 4, "supportedOnFpga": false, "cpuLatency": 2, "fpgaLatency": 0, "size": 0},
  {"id": 5, "name": "fc", "supportedOnFpga": true, "cpuLatency": 2.5, "fpgaLatency": 0.25, "isBackwardNode": false, "colorClass": 3, "size": 60}
 ],
 "edges": [
  {"sourceId": 5, "destId": 9, "cost": 0.001, "size": 77},
  {"sourceId": 4, "destId": 5, "cost": 0.002},
  {"sourceId": 4, "destId": 9, "cost": 0.002}
 ]}`

// profileText is a network whose last layer adds the outputs of the two before it, and has no weights. Their nodes stand in no order.
const profileText = `node4 -- Add -- forward_compute_time=0.500, backward_compute_time=0.250, activation_size=[10.000; 30.000], parameter_size=0.000 -- stage_id=1
node2 -- Linear(4, 5) -- forward_compute_time=1.000, backward_compute_time=2.000, activation_size=20.000, parameter_size=7.000
node1 -- Input -- forward_compute_time=9.000, backward_compute_time=0.000, activation_size=16.000, parameter_size=0.000
node3 -- Size(0) -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=0.000, parameter_size=0.000
	node1 -- node2
	node2 -- node4
	node2 -- node3
	node3 -- node4
`

// cases are files with what they describe. A line is a task in program order: its times by device or
// its work, what it reads and after the arrow what it writes, in bytes, and what else it follows.
var cases = []struct {
	file, text string
	Options
	took string
	want string
}{
	{"plain.stg", stgPlain, Options{}, "a unit of time is 1ms", // 20 units are 20 ms; nothing moves
		`T0 *=0s
T1 *=20ms after T0
T2 *=3ms after T0
T3 *=0s after T1 T2
`},
	{"costs.stg", stgCosts, Options{Unit: time.Second}, "a unit of time is 1s", // a unit is 1 s, and 1e9 bytes at 1 GB/s; T7 stands behind what it needs
		`T4 *=3s -> T4->T7:2000000000 T4->T5:250000000
T5 *=5s T4->T5:250000000
T7 *=1.5s T4->T7:2000000000 after T5
`},
	{"sizes.dot", dotSizes, Options{}, "size of nodes as flop", // 0.4 bytes are none, 1.5 are rounded to 2
		`root 0 flop -> root->c1:200000000
c1 1e+09 flop root->c1:200000000 -> c1->end:2
c 2 5e+09 flop after root
end 0 flop c1->end:2 after c 2
`},
	{"weights.gv", dotWeights, Options{Unit: 10 * time.Nanosecond}, "a unit of time is 10ns", // 3.5 units are 35 ns
		`a *=20ns -> a->b:10
b *=35ns a->b:10 -> b->c:10
c *=20ns b->c:10
d *=20ns after a
`},
	{"placement.json", placementNodes, Options{}, "latencies as times in ms", // 0.002 ms are 2000 ns and bytes, once for both readers
		`4 cpu=2ms forward -> 4:2000
5 fc *=250µs cpu=2.5ms forward with 3 4:2000 -> 5 fc:1000 5 fc.memory:60
9 fc grad *=500µs cpu=4ms backward with 3 5 fc:1000 4:2000 -> 9 fc grad.memory:100
`},
	// The size of a node without bytes is a dependence without data, both ways. The input's time is left out.
	{"profile.txt", profileText, Options{}, "compute times in ms",
		`node2 forward *=1ms forward with node2 node2 weights:7 node1:16 -> node2:20
node3 forward *=0s forward with node3 node2:20
node4 forward *=500µs forward with node4 node2:20 -> node4:40 after node3 forward
node4 backward *=250µs backward with node4 node4:40 node2:20 -> node4->node2 gradient:20
node3 backward *=0s backward with node3 node2:20 -> node3->node2 gradient:20 after node4 backward node3 forward
node2 backward *=2ms backward with node2 node4->node2 gradient:20 node3->node2 gradient:20 node2:20 node2 weights:7 node1:16 -> node2 weight gradient:7
node2 update *=0s update with node2 node2 weight gradient:7 -> node2 weights:7
`},
	// With two mini-batches each replica updates a part of the weights, 3 of 7 bytes and 4 of 7.
	{"profile.txt", "node2 -- x -- forward_compute_time=1, backward_compute_time=2, activation_size=20, parameter_size=7", Options{Minibatches: 2, Stash: true}, "compute times in ms",
		`node2 forward #0 *=1ms forward with node2 #0 -> node2 #0:20 node2 stash #0:7
node2 forward #1 *=1ms forward with node2 #1 -> node2 #1:20 node2 stash #1:7
node2 backward #0 *=2ms backward with node2 #0 node2 #0:20 node2 stash #0:7 -> node2 weight gradient #0:7
node2 backward #1 *=2ms backward with node2 #1 node2 #1:20 node2 stash #1:7 -> node2 weight gradient #1:7
node2 update #0 *=0s update with node2 #0 node2 weight gradient #0:7[0:3] node2 weight gradient #1:7[0:3] -> node2 weights:7[0:3]
node2 update #1 *=0s update with node2 #1 node2 weight gradient #0:7[3:7] node2 weight gradient #1:7[3:7] -> node2 weights:7[3:7]
node2 gather #0 *=0s gather with node2 #0 node2 weights:7
node2 gather #1 *=0s gather with node2 #1 node2 weights:7
`},
	// t1 stands behind t3 in the file. What nobody writes is read by both.
	{"instance.json", instance, Options{}, "runtimes in s",
		`t1 *=2s given:5 -> out1:11 out2:22
t2 *=3s out2:22
t3 *=500ms out1:11 given:5 out2:22 after t2
t4 *=0s after t1
`},
	{"old.json", instanceOld, Options{}, "runtimes in s",
		`a *=1.5s -> f:7
b *=2.5s f:7 -> f #2:7
`},
	{"w.dax", daxText, Options{}, "runtimes in s",
		`ID1 *=250ms in:30 -> mid:40
ID2 *=0s mid:40
ID3 *=1s after ID1 ID2
`},
	// The launch contradicts the data and is left out.
	{"c.et", chakraText, Options{}, "durations as times",
		`8 gemm 1000 flop
6 kernel cuda=20µs after 8 gemm
5 mul cpu=3µs after 6 kernel
9 all_reduce cuda=7µs communication after 5 mul 6 kernel
`},
	// Each gemm ran on another kind of device, and takes there what it took.
	{"t.rec", starpuTasks, Options{}, "times in ms where a task ran",
		`potrf 2 cpu=20ms -> a1:40
gemm 3 cpu=40ms cuda=2.25ms a1:40 -> b2:50 after potrf 2
gemm 4 cpu=40ms cuda=2.25ms a1:40 -> d4:70 after potrf 2
`},
	// 400 J and 310 J of both GPUs; the power limits are clocks.
	{"w.csv", zeusWindows, Options{}, "settings as clocks",
		"step gpu0=2s gpu0@100W=4s\n"},
	{"s.csv", zeusSummary, Options{}, "settings as clocks",
		"c n 64 adam gpu0=2s gpu0@100W=3s\nc m 64 adam gpu0@100W=5s\n"},
	// StarPU's dag.dot: times come from the models of a platform.
	{"dag.dot", "digraph G {\n\tcolor=white\n\t \"task_1\" [ style=filled, label=\"potrf\", color=\"0.1 0.2 0.3\"]\n\t \"task_1\"->\"task_2\"\n\t \"task_1\"->\"task_2\"\n}\n", Options{}, "labels as operations",
		`task_1 0 flop
task_2 *=0s after task_1
`},
}

// TestRead reads a file of each form and writes what became of it as a graph file and back.
func TestRead(t *testing.T) {
	for _, c := range cases {
		of, err := FormatOf(c.file, []byte(c.text))
		if err != nil {
			t.Error(err)
			continue
		}
		in, err := of.Read([]byte(c.text), "dir/"+c.file, c.Options)
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		g := in.Graph
		if got := describe(g); got != c.want {
			t.Errorf("%s is\n%swant\n%s", c.file, got, c.want)
		}
		if of.binary {
			checkGraph(t, g)
			continue
		}
		if marked, err := of.Read([]byte(dag.Mark+c.text), "dir/"+c.file, c.Options); err != nil || marked.Graph.Hash() != g.Hash() {
			t.Errorf("%s with a byte order mark is another graph: %v", c.file, err)
		}
		if name, _, _ := strings.Cut(c.file, "."); g.Name != name || !strings.Contains(in.Took, c.took) {
			t.Errorf("%s: name %q, took %q, want %q", c.file, g.Name, in.Took, c.took)
		}
		checkGraph(t, g)
	}
}

// checkGraph holds a graph to its invariants, and its file to the graph.
func checkGraph(t *testing.T, g *dag.Graph) {
	t.Helper()
	var text bytes.Buffer
	must.Do(t, g.WriteJSON(&text))
	again := must.Get(dag.ReadJSON(&text, "again.json"))(t)
	if err := again.Check(); err != nil || again.Hash() != g.Hash() {
		t.Errorf("a graph file with hash %s of a graph with hash %s: %v", again.Hash(), g.Hash(), err)
	}
}

// describe is a graph in the form of cases.
func describe(g *dag.Graph) string {
	var out strings.Builder
	for i := range g.Tasks {
		task := &g.Tasks[i]
		out.WriteString(task.Name)
		for _, c := range task.Costs {
			fmt.Fprintf(&out, " %s=%v", c.Key, time.Duration(c.Ns))
		}
		if task.Costs == nil {
			fmt.Fprintf(&out, " %g flop", task.Flops)
		}
		if phase := task.Labels.Phase; phase != "" {
			out.WriteString(" " + phase)
		}
		if task.Placement != nil && task.Placement.Colocate != "" {
			out.WriteString(" with " + task.Placement.Colocate)
		}
		reads, writes := "", ""
		for _, a := range task.Accesses {
			b := &g.Buffers[a.Buffer]
			text := fmt.Sprintf(" %s:%d", b.Name, b.Bytes())
			if a.Box != nil {
				text += "[" + a.Box.String() + "]"
			}
			if a.Mode == dag.Read {
				reads += text
			} else {
				writes += text
			}
		}
		out.WriteString(reads)
		if writes != "" {
			out.WriteString(" ->" + writes)
		}
		for k, p := range task.After {
			if k == 0 {
				out.WriteString(" after")
			}
			out.WriteString(" " + g.Tasks[p].Name)
		}
		out.WriteString("\n")
	}
	return out.String()
}

// TestDAGGEN compares a real file with what regular expressions find in it.
func TestDAGGEN(t *testing.T) {
	const file = "testdata/dslab/daggen-100-0.5-0.9-0.10-2.dot"
	src := must.Get(os.ReadFile(file))(t)
	of := must.Get(FormatOf(file, src))(t)
	g := must.Get(of.Read(src, file, Options{}))(t).Graph
	nodes := regexp.MustCompile(`(?m)^  (\w+) \[size="(.*)"\];$`).FindAllSubmatch(src, -1)
	edges := regexp.MustCompile(`(?m)^  (\w+) -> (\w+) \[size="(.*)"\];$`).FindAllSubmatch(src, -1)
	if len(nodes) != 102 || len(nodes) != g.NumTasks() {
		t.Errorf("%d tasks of %d nodes, want 100 and the dummies", g.NumTasks(), len(nodes))
	}
	for _, m := range nodes {
		id := taskNamed(t, g, string(m[1]))
		if want := parse(t, m[2]); g.Tasks[id].Flops != want {
			t.Errorf("task %s has %g flop, want %g", m[1], g.Tasks[id].Flops, want)
		}
	}
	moved, carried, preds := int64(0), int64(0), 0
	for _, m := range edges {
		from, to := taskNamed(t, g, string(m[1])), taskNamed(t, g, string(m[2]))
		if from >= to {
			t.Errorf("%s stands behind %s", m[1], m[2])
		}
		moved += int64(math.Round(parse(t, m[3])))
	}
	for i := range g.Buffers {
		carried += g.Buffers[i].Bytes()
	}
	for i := range g.Tasks {
		preds += len(g.Preds(dag.TaskID(i)))
	}
	if moved != carried || preds != len(edges) {
		t.Errorf("%d dependences carry %d bytes, want %d and %d", preds, carried, len(edges), moved)
	}
}

func parse(t *testing.T, text []byte) float64 {
	t.Helper()
	return must.Get(strconv.ParseFloat(string(text), 64))(t)
}

func taskNamed(t *testing.T, g *dag.Graph, name string) dag.TaskID {
	t.Helper()
	for i := range g.Tasks {
		if g.Tasks[i].Name == name {
			return dag.TaskID(i)
		}
	}
	t.Fatalf("no task %q", name)
	return 0
}

// TestOrder: a graph whose nodes stand in the reverse of the order in which they can run is put in
// order, however long its longest path is.
func TestOrder(t *testing.T) {
	const tasks = 100_000
	var text strings.Builder
	fmt.Fprintln(&text, tasks)
	for id := tasks - 1; id > 0; id-- {
		fmt.Fprintf(&text, "%d 1 1 %d\n", id, id-1)
	}
	text.WriteString("0 1 0\n")
	of := must.Get(FormatByName("stg"))(t)
	g := must.Get(of.Read([]byte(text.String()), "chain", Options{}))(t).Graph
	if first, last := g.Tasks[0].Name, g.Tasks[tasks-1].Name; first != "T0" || last != "T99999" {
		t.Errorf("the first task is %s, the last %s", first, last)
	}
}
