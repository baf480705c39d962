package exchange

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/exchange/recording"
	"dahl/must"
	"dahl/platform"
)

// mistakes are files with one mistake, after the name of the format, and what is said of it.
var mistakes = []struct{ format, text, want string }{
	{"stg", "", "f:1: the first line has 0 numbers"},
	{"stg", "1 2 3\n", "f:1: the first line has 3 numbers"},
	{"stg", "-1\n", `f:1: the number of tasks is "-1"`},
	{"stg", "1\n0 1\n", "f:2: a task with 2 numbers"},
	{"stg", "1\nx 1 0\n", `f:2: the number of a task is "x"`},
	{"stg", "1\n0 -1 0\n", `f:2: the processing time is "-1"; write a finite number, at least 0`},
	{"stg", "1\n0 NaN 0\n", `f:2: the processing time is "NaN"`},
	{"stg", "1\n0 1e13 0\n", "f:2: the processing time is 1e+13; write a number from 0 to 1.15e+12"}, // 2^60 ns in ms
	{"stg", "1\n0 1 99999999999\n", `f:2: the number of predecessors is "99999999999"`},
	{"stg", "2\n0 1 0\n0 1 0\n", "f:3: task 0 is given twice"},
	{"stg", "2\n0 1 0\n1 1 2 0\n", "f:3: task 1 has 2 predecessors, and 1 stand on its line"},
	{"stg", "2\n0 1 0\n1 1 1\n0 1 5\n", "f:4: predecessor 1 of 1 of task 1 is a line with 3 numbers"},
	{"stg", "2\n0 1 0\n1 1 2000000000\n0 1\n", "f:5: predecessor 2 of 2000000000 of task 1 is a line with 0 numbers"},
	{"stg", "2\n0 1 0\n1 1 1\n0 -4\n", `f:4: a communication cost is "-4"`},
	{"stg", "2\n0 1 0\n1 1 1 7\n", "f:3: there is no task 7"},
	{"stg", "5\n0 1 0\n", "there are 1 tasks, and the first line says 5"},
	{"stg", "3\n0 0 0\n1 5 1 0\n2 6 1 1\n", "f:5: the first line says 3 tasks, which are 5 with a first and a last dummy of time 0, and the file has 3 and ends without the last; it was cut off, or else has no dummies: then add a last task of time 0, and write 4"},
	{"stg", "2\n0 1 1 1\n1 1 1 0\n", `f:3: the edge from "T0" to "T1" closes a cycle`},
	{"stg", "1\n0 1 1 0\n", `f:2: the edge from "T0" to "T0" closes a cycle`},
	{"stg", "2\n0 1 0\n1 1 2 0 0\n", `f:3: the edge from "T0" to "T1" is given twice`},
	{"stg", "1\n0 1 0\n\xff", "f:3: not UTF-8 text"},

	{"dot", "", `f:1: the end of the file stands where "digraph" has to`},
	{"dot", "graph {}", `f:1: "graph" stands where "digraph" has to`},
	{"dot", `"digraph" {}`, `f:1: "digraph" stands where "digraph" has to`},
	{"dot", "digraph {\n a [size=1]\n", "f:3: the end of the file stands where a name or a value has to"},
	{"dot", "digraph {} x", `f:1: "x" stands behind the end of the graph`},
	{"dot", "digraph {\n subgraph c { a } -> b }", "f:2: an edge from all nodes of a subgraph cannot be imported"},
	{"dot", "digraph " + strings.Repeat("{", 70), "f:1: more than 64 subgraphs within each other"},
	{"dot", "digraph {\n a -> { b c } }", `f:2: "{" stands where a name or a value has to`},
	{"dot", "digraph { a:n -> b }", `f:1: ":": ports and undirected edges cannot be imported; write a -> b`},
	{"dot", "digraph { a -- b }", `f:1: "-": ports and undirected edges cannot be imported`},
	{"dot", "digraph { a [size] }", `f:1: "]" stands where '=' has to`},
	{"dot", "digraph { a [size=1", "f:1: the end of the file stands where a name or a value has to"},
	{"dot", "digraph {\n a [label=\"x] }\n", "f:2: a text begins and does not end"},
	{"dot", "digraph {\n a [label=<<b>x] }\n", "f:2: a text of HTML begins and does not end"},
	{"dot", "digraph {\n /* a }\n", "f:2: a comment begins and does not end"},
	{"dot", "digraph {\n a [size=\"x\"] }", `f:2: size of a node is "x"; write a finite number, at least 0`},
	{"dot", "digraph {\n a [size=-1] }", `f:2: size of a node is "-1"`},
	{"dot", "digraph {\n a [size=1e31] }", `f:2: task "a": 1e+31 flops; write a number from 0 to 1e+30`},
	{"dot", "digraph {\n a [size=1]; b [size=1] a -> b [size=x] }", `f:2: size of an edge is "x"`},
	{"dot", "digraph {\n a [weight=1]; b [weight=1] a -> b [weight=-1] }", `f:2: weight of an edge is "-1"`},
	{"dot", "digraph {\n a [size=1]\n b [weight=1] }", `f:3: node "b" has a weight, and others have a size`},
	{"dot", "digraph {\n a [size=1]\n b }", `f:3: node "b" has no size, and others have one`},
	{"dot", "digraph {\n a [weight=1]\n a -> b }", `f:3: node "b" has neither size nor weight; write size=flop or weight=time`},
	{"dot", "digraph {\n node [size=0]\n a -> b\n b -> a }", `f:3: the edge from "a" to "b" closes a cycle`},
	{"dot", "digraph { node [size=0] a -> b -> c\n a -> b }", `f:2: the edge from "a" to "b" is given twice`},
	{"dot", "digraph {\n \"a\nb\" [size=1] }", `f:2: "a\nb" holds a control character`},
	{"dot", "digraph {\n node [size=1] edge [size=1]\n a -> \"b->c\"\n \"a->b\" -> c }", `f:4: buffer "a->b->c" is declared twice`},
	{"dot", "digraph {\n \"\" [size=1] }", `f:2: task name "" is empty`},

	{"placement", "", "f:1: the file ends in the middle"},
	{"placement", "[]", "f:1: [ stands where { has to"},
	{"placement", "{\n\"nodes\": 3}", "f:2: 3 stands where [ has to"},
	{"placement", "{\"nodes\": \"a\\nb\"}", `f:1: "a\nb" stands where [ has to`},
	{"placement", "{\"nodes\": [\n3]}", "f:2: an element is a number; write an object"},
	{"placement", "{\"nodes\": [\n{\"id\": 1.5}]}", "f:2: id is a number 1.5; write an integer"},
	{"placement", "{\"nodes\": [\n{\"size\": \"x\"}]}", "f:2: size is a string; write a number"},
	{"placement", "{\"nodes\": [\n{\"name\": 1}]}", "f:2: name is a number; write a text"},
	{"placement", "{\"nodes\": [\n{\"supportedOnFpga\": 2}]}", "f:2: not JSON of this format: 2 is neither true nor false; write one of them, or 1 or 0"},
	{"placement", "{\"nodes\": [\n{\"id\": 1}]}", "f:2: a node lacks a key; write id, supportedOnFpga"},
	{"placement", "{\"nodes\": [], \"edges\": [\n{}]}", "f:2: an edge lacks a key; write sourceId, destId and cost"},
	{"placement", "{\"nodes\": [],\n\"edges\": [{\"sourceId\": 1, \"destId\": 2, \"cost\": 1}]}", "f:2: an edge from 1 to 2, and one of them is no node"},
	{"placement", strings.Replace(placementNodes, `"id": 4`, `"id": 9`, 1), "f:4: node 9 is given twice"},
	{"placement", strings.Replace(placementNodes, `"cpuLatency": 2,`, `"cpuLatency": -2,`, 1), "f:4: cpuLatency is -2; write a number from 0 to 1.15e+12"},
	{"placement", strings.Replace(placementNodes, `"destId": 9, "cost": 0.002`, `"destId": 9, "cost": 3`, 1), "f:10: an edge of node 4 costs 3, and one before it 0.002"},
	{"placement", placementNodes + "\n3", "f:12: more text after the end of the graph"},
	{"placement", strings.TrimSuffix(placementNodes, "]}"), "f:11: the file ends in the middle"},
	{"placement", "{\"x\": tru}", "f:1: not JSON of this format"},

	{"pipedream", "", `f:1: a node is ""; write name -- description -- forward_compute_time=ms`},
	{"pipedream", "a -- b\n", `f:1: a node is "a -- b"`},
	{"pipedream", "a -- b -- c -- d -- e\n", `f:1: a node is "a -- b -- c -- d -- e"`},
	{"pipedream", profileLayer("a", "x") + "\n" + profileLayer("a", "y"), `f:2: node "a" is given twice`},
	{"pipedream", "a -- x -- forward_compute_time=1, activation_size=1", `f:1: "activation_size=1" stands where backward_compute_time=number has to`},
	{"pipedream", profileLayer("a\x02", "x"), `f:1: "a\x02" holds a control character`},
	{"pipedream", "a -- x -- forward_compute_time=-1", `f:1: forward_compute_time is "-1"`},
	{"pipedream", strings.Replace(profileLayer("a", "x"), "=100.000", "=[1; x]", 1), `f:1: activation_size is "x"`},
	{"pipedream", strings.Replace(profileLayer("a", "x"), "=100.000", "=[1e18; 1e18]", 1), `f:1: activation_size is [1e18; 1e18] in all; write less than 1.15e+18`},
	{"pipedream", profileLayer("a", "x") + ", b=1", `f:1: "b=1" stands behind the end of a node`},
	{"pipedream", profileLayer("a", "x") + "\n\ta -- b\n", `f:2: an edge is "a -- b", and one of its ends is no node`},
	{"pipedream", profileLayer("a", "x") + "\n\ta -- a\n", `f:2: the edge from "a" to "a" closes a cycle`},
	{"pipedream", profileLayer("a", "x") + "\n" + profileLayer("b", "y") + "\n\ta -- b\n\ta -- b\n", `f:4: the edge from "a" to "b" is given twice`},
	{"pipedream", profileLayer("a", "x") + "\n" + profileLayer("b", "Input") + "\n\ta -- b\n", `f:3: the edge from "a" leads to input "b"`},
	{"wfcommons", `{"workflow": {"tasks": [{"id": "a"}, {"id": "a"}]}}`, `f:1: task "a" is given twice`},
	{"wfcommons", `{"workflow": {"tasks": [{"id": "a"},` + "\n" + `{"id": "b", "parents": ["c"]}]}}`, `f:2: there is no task "c"`},
	{"wfcommons", `{"workflow": {"tasks": [{"id": "a", "runtime": -1}]}}`, `f:1: the runtime of a task is -1; write a number from 0`},
	{"wfcommons", `{"workflow": {"tasks": [{"parents": []}]}}`, `f:1: a task has no id`},
	{"wfcommons", `{"workflow": {"tasks": [{"id": 3}]}}`, `f:1: id is a number; write a text`},
	{"wfcommons", `{"workflow": {"tasks": [{"id": "a", "parents": ["a"]}]}}`, `f:1: the edge from "a" to "a" closes a cycle`},
	{"wfcommons", `{"workflow": {"jobs": [{"name": "a", "files": [{"name": "x", "link": "both"}]}]}}`, `f:1: the link of file "x" is "both"`},
	{"wfcommons", `{"workflow": {"tasks": [`, `f:1: the file ends in the middle`},
	{"wfcommons", `{"workflow": {` + strings.Repeat(`"specification":{`, 64) + "\n" + `"specification":{`, `f:2: more than 64 parts of a workflow within each other`},
	{"wfcommons", `{"workflow": {` + strings.Repeat(`"execution":{`, 1000), `f:1: more than 64 parts of a workflow within each other`},
	{"dax", "<adag>\n<job id='a' runtime='-1'/></adag>", `f:2: runtime is "-1"; write a finite number`},
	{"dax", "<adag><job id='a'><uses link='input'/></job></adag>", `f:1: a uses element of job "a" names no file`},
	{"dax", "<adag><job id='a'><uses file='x' link='y'/></job></adag>", `f:1: the link of file "x" is "y"`},
	{"dax", "<adag><child ref='a'>\n<parent ref='b'/></child></adag>", `f:2: there is no task "a"`},
	{"dax", "<adag><dax id='a' file='x'/></adag>", `f:1: element dax is a workflow in another file`},
	{"dax", "<dag/>", `f:1: element dag stands where adag has to`},
	{"dax", "<adag><job id='a'>", `f:1: not XML: unexpected EOF`},
	{"dax", "", `f:1: the file ends in the middle`},
	{"chakra", trace(message(1, 5), message(1, 5)), `f: node 2: the id 5 is given twice`},
	{"chakra", trace(message(1, 5))[:9], `f: node 1: the file ends within a field`},
	{"chakra", trace(message(1, 5, 4, []byte{0x80})), `f: node 1: the file ends within a field`},
	{"chakra", trace(message(1, 5, 5, []int{6}), message(1, 6, 5, []int{5})), `closes a cycle`},
	{"starpu-machine", "x # Number of CPUs\n", `f:1: "x" is no number of devices`},
	{"starpu-machine", "# Number of CPUs\n", `f:1: no line has a number of CPUs`},
	{"starpu-model", "44\n", `f:1: a performance model of version 44`},
	{"starpu-model", "45\n-1\n", `f:2: the number of combinations is "-1"`},
	{"starpu-model", starpuModel(starpuCombination(0, 0, 1, "aa 1 2 3 4 5 6")), `an entry of 7 words`},
	{"starpu-model", starpuModel(starpuCombination(0, 0, 1, "no 1 2 3 4 5 6 7")), `the hash of an entry is "no"; write a number of hexadecimal digits`},
	{"starpu-model", starpuModel(starpuCombination(0, 0, 1, "aa 1 2 x 4 5 6 7")), `"x" is no number`},
	{"starpu-model", starpuModel(), `f: no model of a processor or a CUDA device`},
	{"starpu-tasks", "JobId 3\n", `f:1: "JobId 3" stands where "Key: value" has to`},
	{"starpu-tasks", "Name: a\n", `f:1: a task has no JobId`},
	{"starpu-tasks", "JobId: 1\n\nJobId: 1\n", `f:3: task 1 is given twice`},
	{"starpu-tasks", "JobId: 1\nHandles: a\nModes: R\n", `f:1: task 1 has 1 handles, 1 modes and 0 sizes`},
	{"starpu-tasks", "JobId: 1\nHandles: a\nModes: X\nSizes: 4\n", `f:1: task 1: the mode of a handle is "X"`},
	{"starpu-tasks", "JobId: 1\nStartTime: 4\nEndTime: 3\n", `f:1: task 1 ends at 3 ms, before it starts at 4`},
	{"starpu-tasks", "JobId: 1\nPriority: z\n", `f:1: Priority is "z"`},
	{"simgrid", "<platform>\n<peer id='a'/></platform>", `f:2: element peer has no meaning here`},
	{"simgrid", "<platform><zone routing='Floyd'/></platform>", `f:1: zone "" has the routing "Floyd"`},
	{"simgrid", "<platform><host id='a' speed='1Gx'/></platform>", `f:1: the speed of host a is "1Gx"; write a number with a unit`},
	{"simgrid", "<platform><host id='a' speed='-1'/></platform>", `f:1: the speed of host a is "-1"; write a finite number`},
	{"simgrid", "<platform><host id='a' speed='0f'/></platform>", `f:1: host "a" has the speed 0`},
	{"simgrid", "<platform><host id='a' speed='1f' core='0'/></platform>", `f:1: core is "0"`},
	{"simgrid", "<platform><host id='a' speed='1f' pstate='1'/></platform>", `f:1: host "a" has the pstate "1"; write 0 to 0`},
	{"simgrid", "<platform><host id='a' speed='1f'><prop id='wattage_per_state' value='1:2,3:4'/></host></platform>", `f:1: watts of 2 states at a host with 1`},
	{"simgrid", "<platform><host id='a' speed='1f'><prop id='wattage_per_state' value='1'/></host></platform>", `f:1: the watts of a state are "1"`},
	{"simgrid", "<platform><link id='a' bandwidth='1Bps' sharing_policy='WIFI'/></platform>", `f:1: link "a" has the sharing policy "WIFI"`},
	{"simgrid", "<platform><link id='a' bandwidth='1Bps'/>\n<link id='a' bandwidth='1Bps'/></platform>", `f:2: link "a" is given twice`},
	{"simgrid", "<platform><route src='a' dst='b'>\n<link_ctn id='l'/></route></platform>", `f:2: there is no link "l"`},
	{"simgrid", "<platform><link id='l' bandwidth='1'/><route src='a' dst='b'><link_ctn id='l'/></route></platform>", `f:1: a route from "a" to "b", and one of them is no host`},
	{"simgrid", "<platform><cluster radical='3-1'/></platform>", `f:1: radical is "3-1"`},
	{"simgrid", "<platform><cluster radical='0-1999'/></platform>", `f:1: a cluster of 2000 hosts, with a route for each pair; write at most 1024`},
	{"simgrid", "<platform><cluster radical='" + strings.Repeat("0-1023,", 100_000) + "7'/></platform>", `f:1: a cluster of 2048 hosts, with a route for each pair; write at most 1024`},
	// 100·99/2 routes of each cluster, of which 26 are below and 27 above 2^17.
	{"simgrid", "<platform>\n" + simgridClusters(30) + "</platform>", `f:28: cluster "c26" makes 133650 routes between two hosts, and a machine has at most 131072; write fewer hosts`},
	{"simgrid", "<platform><cluster radical='0' topology='TORUS'/></platform>", `has the topology "TORUS"`},
	{"simgrid", "<platform/>", `f: platform "f"`},
	{"zeus", "", `f:1: no line with the names of columns`},
	{"zeus", "a,b\n", `f:1: columns "a,b"; write those of Zeus or Perseus`},
	{"zeus", "window_name,elapsed_time\n", `f:1: no line with a measurement`},
	{"zeus", "window_name,elapsed_time\nw_x,1\n", `f:2: window "w_x" does not end in _ and a limit of watts`},
	{"zeus", "window_name,elapsed_time\nw_100,0\n", `f:2: step takes no time`},
	{"zeus", "window_name,elapsed_time\nw_100,1,3\n", `f:2: not a table: wrong number of fields`},
	{"zeus", "window_name,elapsed_time\nw_100,1\n", `f:2: step takes 0 J, which is less than 0 W of a GPU that waits`},
	{"zeus", "stage,instruction,frequency,time,energy\n0,load,1,1,1\n", `f:2: instruction is "load"; write forward or backward`},
	{"zeus", "stage,instruction,frequency,time,energy\n-1,forward,1,1,1\n", `f:2: stage is "-1"`},
	{"zeus", "stage,instruction,frequency,time,energy\n0,forward,1,1,-1\n", `f:2: energy is "-1"`},
	{"zeus", "stage,instruction,frequency,time,energy\n0,forward,1,1,1\n", `f:1: stage 0 has no backward`},
}

// simgridClusters are clusters of a hundred hosts, a line for each.
func simgridClusters(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "<cluster id='c%d' prefix='c%[1]d-' radical='0-99' speed='1Gf' bw='1Bps'/>\n", i)
	}
	return text.String()
}

// TestMistakes: what is wrong is one line, with the file's and that of the mistake.
func TestMistakes(t *testing.T) {
	for _, c := range mistakes {
		of, err := FormatByName(c.format)
		if err != nil {
			t.Fatal(err)
		}
		_, err = of.Read([]byte(c.text), "f", Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "f:") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %q: %v, want %q", c.format, c.text, err, c.want)
		}
	}
}

// profileLayer is a layer of a profile.
func profileLayer(name, description string) string {
	return name + " -- " + description + " -- forward_compute_time=1.000, backward_compute_time=2.000, activation_size=100.000, parameter_size=8.000"
}

// profileLayers is a profile of layers with weights.
func profileLayers(n int) string {
	var text strings.Builder
	for i := range n {
		text.WriteString(profileLayer(fmt.Sprint("layer", i), "x") + "\n")
	}
	return text.String()
}

// TestFlags: each option is refused where a file of the format would not obey it, and no other one is.
func TestFlags(t *testing.T) {
	for flag, o := range map[string]Options{
		"unit": {Unit: time.Second}, "minibatches": {Minibatches: 2}, "wait-power": {WaitWatts: 1}, "stash": {Stash: true},
		"step": {Step: "1"}, "ranks": {Ranks: 1}, "alone": {Alone: true, Step: "1"}, "extents": {Extents: recording.Extents{2: 3}},
	} {
		for _, of := range formats {
			_, err := of.Read(nil, "f", o)
			refused := err != nil && err.Error() == "f: a file of format "+of.Name+" has no use for --"+flag+"; leave it out"
			if flag == "alone" && !slices.Contains(of.Flags, flag) {
				refused = err != nil && strings.Contains(err.Error(), "has no use for --")
			}
			if refused == slices.Contains(of.Flags, flag) {
				t.Errorf("%s with --%s: %v", of.Name, flag, err)
			}
		}
	}
}

// TestOptions: an option that a format obeys is refused where this file cannot, or not so much of it.
func TestOptions(t *testing.T) {
	for _, c := range []struct {
		format, text string
		Options
		want string
	}{
		{"pipedream", profileText, Options{Minibatches: 1025}, "f: a step of 1025 mini-batches; take 1 to 1024"},
		// 512²·17 is more than 2^22, and 496²·17 = 4182272 is not, but 497²·17 is.
		{"pipedream", profileLayers(17), Options{Minibatches: 512, Stash: true}, "f: each of 512 mini-batches updates a part of 17 layers with the gradients of all: 4456448 reads, and a step has at most 4194304; take at most 496 mini-batches"},
		{"zeus", perseusText, Options{Minibatches: 1025}, "f: a step of 1025 mini-batches; take 1 to 1024"},
		{"zeus", zeusSummary, Options{Minibatches: 2}, "f:1: a table without stages has no pipeline of mini-batches; leave --minibatches out"},
		{"dot", dotSizes, Options{Unit: time.Second}, "f:4: a size is flop, which has no unit; leave --unit out"},
		{"dot", `digraph { "task_1" [label="potrf"] }`, Options{Unit: time.Second}, "f:1: the codelets of StarPU have no times; leave --unit out"},
		{"kineto", "{}", Options{Alone: true}, "f: --alone leaves out what is older than one step; name that by --step"},
	} {
		of := must.Get(FormatByName(c.format))(t)
		if _, err := of.Read([]byte(c.text), "f", c.Options); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.format, err, c.want)
		}
	}
}

// TestUnknown: formats that are not there are refused with those that are.
func TestUnknown(t *testing.T) {
	if _, err := FormatByName("gml"); err == nil || !strings.Contains(err.Error(), "stg, dot, placement, pipedream") {
		t.Error(err)
	}
	for _, name := range []string{"graph.xml", "graph.json"} { // the second is a graph file of dahl
		if _, err := FormatOf(name, []byte(`{"format": "dahl-graph 1"}`)); err == nil || !strings.Contains(err.Error(), ".stg (stg), .dot (dot), .gv (dot), .json (placement), .txt (pipedream)") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fuzz reads whatever comes in one format. What is read is a graph that keeps its invariants and
// survives its file.
func fuzz(f *testing.F, format string) {
	of := must.Get(FormatByName(format))(f)
	for _, c := range cases {
		if shown, err := FormatOf(c.file, []byte(c.text)); err == nil && shown.Name == format {
			f.Add([]byte(c.text))
		}
	}
	for _, c := range mistakes {
		if c.format == format {
			f.Add([]byte(c.text))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := of.Read(text, "f", Options{})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
			return
		}
		if in.Graph != nil {
			checkGraph(t, in.Graph)
		}
		if in.Platform != nil {
			checkPlatform(t, in.Platform)
		}
	})
}

// checkPlatform holds a machine to its invariants, and its file to the machine.
func checkPlatform(t *testing.T, p *platform.Platform) {
	t.Helper()
	var text bytes.Buffer
	must.Do(t, p.WriteTOML(&text))
	if again, err := platform.Parse(text.Bytes(), "again.toml"); err != nil || again.Hash() != p.Hash() {
		t.Errorf("a platform file of a machine is not the machine: %v", err)
	}
}

func FuzzSTG(f *testing.F)       { fuzz(f, "stg") }
func FuzzDOT(f *testing.F)       { fuzz(f, "dot") }
func FuzzPlacement(f *testing.F) { fuzz(f, "placement") }
func FuzzPipeDream(f *testing.F) { fuzz(f, "pipedream") }
