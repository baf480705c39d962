package dag

import (
	"encoding/json"
	"strings"
	"testing"

	"dahl/must"
)

func jsonText(t *testing.T, g *Graph) string {
	t.Helper()
	var s strings.Builder
	must.Do(t, g.WriteJSON(&s))
	return s.String()
}

func TestJSONGolden(t *testing.T) {
	golden(t, "sample.json", jsonText(t, sampleGraph(t)))
}

func TestJSONRoundTrip(t *testing.T) {
	graphs := []*Graph{sampleGraph(t)}
	for seed := range uint64(200) {
		graphs = append(graphs, randomGraph(t, seed))
	}
	for i, g := range graphs {
		file := jsonText(t, g)
		if !json.Valid([]byte(file)) {
			t.Fatalf("graph %d: not JSON:\n%s", i, file)
		}
		back, err := ReadJSON(strings.NewReader(file), "g")
		if err != nil {
			t.Fatalf("graph %d: %v in\n%s", i, err, file)
		}
		if got, want := text(t, back), text(t, g); got != want {
			t.Fatalf("graph %d: read back as\n%s\nwas\n%s", i, got, want)
		}
	}
}

// TestReadJSONByHand reads a file as a person writes it, tasks first, and compares
// with the text form of the same graph.
func TestReadJSONByHand(t *testing.T) {
	want := `graph ""
buffer x uint8 [18] activation home=ram
buffer w float64 [5,7] gradient layout=oi accumulators=2
view v w [35]
buffer y uint8 [3] activation copies=8
costs gemm gpu=11

task a
  write x
  costs *=5,0.5
task b
  reduce w[0:4,:]
  read x
  after a
  costs cpu=7,2 cuda/f32@1GHz=3
task c op=gemm
  readwrite v[5:35]
  read v[0:5]
  params p=1 s=2
  work bytes=9
  place device=cpu.0
task d
  read v
  write x
  write y
  labels layer=l microbatch=2 stage=5
  costs cpu=7,3 gpu=8,3
`
	g := must.Get(ReadJSON(strings.NewReader(`{
	  "tasks": [
	    {"name": "a", "ns": 5, "joules": 0.5, "writes": ["x"]},
	    {"name": "b", "ns": {"cpu": 7, "cuda/f32@1GHz": 3}, "joules": {"cpu": 2}, "reads": ["x"], "reduces": ["w[0:4,:]"], "after": ["a"]},
	    {"name": "c", "op": "gemm", "reads": ["v[0:5]"], "updates": ["v[5:35]"], "params": {"s": 2, "p": 1}, "device": "cpu.0", "bytes": 9},
	    {"name": "d", "ns": {"cpu": 7, "gpu": 8}, "joules": 3, "accesses": ["read v", "write x", "write y"], "labels": {"layer": "l", "micro_batch": 2, "stage": 5}}
	  ],
	  "costs": {"gemm": {"ns": {"gpu": 11}}},
	  "buffers": [
	    {"name": "x", "bytes": 18, "home": "ram"},
	    {"name": "w", "shape": [5, 7], "type": "float64", "role": "gradient", "layout": "oi", "accumulators": 2},
	    {"name": "v", "view_of": "w", "shape": [35]},
	    {"name": "y", "bytes": 3, "copies": 8}
	  ],
	  "format": "dahl-graph 1"
	}`), "hand.json"))(t)
	if got := text(t, g); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if c, _ := g.TaskByName("c"); len(g.Tasks[c].Costs) != 1 || g.Tasks[c].Costs[0] != (Cost{Key: "gpu", Ns: 11}) {
		t.Errorf("costs of c: %v", g.Tasks[c].Costs)
	}
}

// graphWith is a file with the given tasks on line 4 and one buffer on line 3.
func graphWith(tasks string) string {
	return `{"format": "dahl-graph 1",
"buffers": [
  {"name": "w", "shape": [5, 7], "type": "float32"}],
"tasks": [` + tasks + "]}"
}

func bufferOf(buffer string) string {
	return `{"format": "dahl-graph 1", "tasks": [], "buffers": [
` + buffer + "]}"
}

var jsonErrors = []struct{ file, want string }{
	{"", "g:1: the file ends in the middle"},
	{"[]", "g:1: a graph file is an array; write an object"},
	{"null", "a graph file is null"},
	{"{}", `no format; write "format": "dahl-graph 1"`},
	{`{"format": "dahl-graph 2"}`, `format is "dahl-graph 2"; this program reads "dahl-graph 1"`},
	{`{"format": "dahl-graph 1"}`, `no tasks; write "tasks"`},
	{`{"format": "dahl-graph 1", "tasks": []} {}`, "more text after the end"},
	{`{"format": "dahl-graph 1", "tasks": [], "tasks": []}`, `"tasks" is given twice`},
	{"{\"format\": \"dahl-graph 1\",\n\"taks\": []}", `g:2: unknown key "taks"; write format, name`},
	{"{\"format\": \"dahl-graph 1\",\n\n\"tasks\" []}", `g:3: not JSON`},
	{"{\"format\": \"dahl-graph 1\", \"tasks\": [\n{\"name\": NaN}]}", `g:2: not JSON`},
	{"{\"name\": \"\xff\"}", "not UTF-8"},
	{"{\"format\": \"dahl-graph 1\",\n\"name\": \"\\u001b[2J\"}", `g:2: "\x1b[2J" holds a control character; write it without`},
	{"{\"format\": \"dahl-graph 1\",\n\"costs\": {\n\"\\t\": {}}}", `g:3: "\t" holds a control character`},
	{"{\"format\": \"dahl-graph 1\", \"tasks\": [\n{\"name\": \"a\", \"op\": \"\\u009b\"}]}", `g:2: "\u009b" holds a control character`},
	{graphWith("")[:95], "the file ends in the middle; it was cut off"},
	{bufferOf(`{"name": "a"}`), `g:2: buffer "a" has no size or two`},
	{bufferOf(`{"name": "a", "bytes": 4, "shape": [4], "type": "uint8"}`), `has no size or two`},
	{bufferOf(`{"name": "a", "shape": [4]}`), `write either bytes or shape and type`},
	{bufferOf(`{"bytes": 4}`), `buffer name "" is empty`},
	{bufferOf(`{"name": "a", "bytes": -4}`), `has -4 bytes; write a number from 1`},
	{bufferOf(`{"name": "a", "bytes": 0}`), `has 0 bytes`},
	{bufferOf(`{"name": "a", "bytes": 1e3}`), `bytes is 1e3; write an integer`},
	{bufferOf(`{"name": "a", "bytes": 99999999999999999999}`), `write an integer`},
	{bufferOf(`{"name": "a", "bytes": 1125899906842625}`), `write a number from 1 to`},
	{bufferOf(`{"name": "a", "bytes": "4"}`), `bytes is "4"; write an integer`},
	{bufferOf(`{"name": "a", "shape": [4, 0], "type": "uint8"}`), `extent 0 in shape [4 0]`},
	{bufferOf(`{"name": "a", "shape": [4294967296, 4294967296], "type": "uint8"}`), `elements`},
	{bufferOf(`{"name": "a", "shape": 4, "type": "uint8"}`), `shape is 4; write an array`},
	{bufferOf(`{"name": "a", "shape": [4], "type": "half"}`), `element type "half" is not one of`},
	{bufferOf(`{"name": "a", "bytes": 4, "role": "weights"}`), `role "weights" is not one of`},
	{bufferOf(`{"name": "a", "bytes": 4, "hom": "x"}`), `unknown key "hom" of a buffer`},
	{bufferOf(`{"name": "a", "bytes": 4}, {"name": "a", "bytes": 4}`), `buffer "a" is declared twice`},
	{bufferOf(`{"name": "a", "view_of": "b", "shape": [4]}`), `view "a" of "b", which is not declared before it`},
	{bufferOf(`{"name": "b", "bytes": 4}, {"name": "a", "view_of": "b", "shape": [4], "home": "x"}`), `the rest is the owner's`},
	{bufferOf(`{"name": "a", "bytes": 4, "copies": 0}`), `g:2: 0 versions; write a number from 1 to 64`},
	{bufferOf(`{"name": "a", "bytes": 4, "copies": 65}`), `g:2: buffer "a": 65 versions; write a number from 1 to 64`},
	{bufferOf(`{"name": "b", "bytes": 4}, {"name": "a", "view_of": "b", "shape": [4], "copies": 2}`), `the rest is the owner's`},
	{bufferOf(`{"name": "a", "bytes": 4, "copies": 2}`), `buffer "a" has 2 versions and no task writes it, so that all would hold the same; leave copies out`},
	{bufferOf(`{"name": "b", "bytes": 4}, {"name": "a", "view_of": "b", "shape": [3]}`), `does not hold the elements`},
	{graphWith(`{}`), `g:4: task name "" is empty`},
	{graphWith(`{"nam": "t"}`), `g:4: unknown key "nam" of a task; write name, op`},
	{graphWith(`{"name": "t"}, {"name": "t"}`), `task "t" is declared twice`},
	{graphWith("{\"name\": \"t\"},\n{\"name\": \"u\", \"after\": [\"v\"]}, {\"name\": \"v\"}"), `g:5: no task "v" before this one to follow`},
	{graphWith(`{"name": "t", "after": ["t"]}`), `no task "t" before this one`},
	{graphWith(`{"name": "t", "reads": ["x"]}`), `region: no buffer "x"`},
	{graphWith(`{"name": "t", "reads": ["w[0:6,:]"]}`), `range 0:6 of "w" is empty or outside 0:5; write "buffer"`},
	{graphWith(`{"name": "t", "reads": ["w[0:5]"]}`), `the box of "w" has 1 dimensions; its shape is [5 7]`},
	{graphWith(`{"name": "t", "reads": ["w[0:5,:]]"]}`), `"]" is one too many`},
	{graphWith(`{"name": "t", "reads": "w"}`), `reads is "w"; write an array`},
	{graphWith(`{"name": "t", "accesses": ["w"]}`), `access mode "w" is not one of read, write, readwrite, reduce`},
	{graphWith(`{"name": "t", "accesses": ["read w"], "reads": ["w"]}`), `write either accesses or writes`},
	{graphWith(`{"name": "t", "reads": ["w"], "writes": ["w"]}`), `overlap; write in place with one readwrite`},
	{graphWith(`{"name": "t", "ns": -1}`), `-1 ns on "*"; write a number from 0`},
	{graphWith(`{"name": "t", "ns": 1.5}`), `ns, if not an object, is 1.5; write an integer`},
	{graphWith(`{"name": "t", "ns": 9223372036854775807}`), `write a number from 0`},
	{graphWith(`{"name": "t", "ns": 700000000000000000}, {"name": "u", "ns": 700000000000000000}`), `nanoseconds in this graph`},
	{graphWith(`{"name": "t", "ns": {"cpu": "4"}}`), `ns is "4"; write an integer`},
	{graphWith(`{"name": "t", "ns": {}}`), `ns of no device`},
	{graphWith(`{"name": "t", "ns": {"cpu@": 4}}`), `cost key "cpu@"; write "device or kind`},
	{graphWith(`{"name": "t", "joules": 4}`), `joules without ns`},
	{graphWith(`{"name": "t", "ns": {"cpu": 1}, "joules": {"gpu": 4}}`), `joules of "gpu", which has no ns`},
	{graphWith(`{"name": "t", "ns": 1, "joules": -4}`), `-4 joules on "*"`},
	{graphWith(`{"name": "t", "ns": 1, "joules": 1e999}`), `joules, if not an object, is 1e999; write a finite number`},
	{graphWith(`{"name": "t", "flops": -4}`), `task "t": -4 flops`},
	{graphWith(`{"name": "t", "flops": 1e999}`), `flops is 1e999; write a finite number`},
	{graphWith(`{"name": "t", "bytes": -1}`), `-1 is negative`},
	{graphWith(`{"name": "t", "priority": 2147483648}`), `priority is 2147483648; write an integer of 32 bits`},
	{graphWith(`{"name": "t", "labels": {"chunk": "x"}}`), `unknown label "chunk"; write layer, phase`},
	{graphWith(`{"name": "t", "params": {"s": "x"}}`), `s is "x"; write a finite number`},
	{`{"format": "dahl-graph 1", "tasks": [], "costs": {"a": {"watts": 3}}}`, `unknown key "watts" of costs; write ns or joules`},
	{`{"format": "dahl-graph 1", "tasks": [], "costs": {"a": {}}}`, `costs of operation "a" are empty`},
}

func TestReadJSONErrors(t *testing.T) {
	for _, c := range jsonErrors {
		_, err := ReadJSON(strings.NewReader(c.file), "g")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want %q on one line", c.file, err, c.want)
		}
	}
}

// TestReadJSONTruncated cuts a good file at every byte.
func TestReadJSONTruncated(t *testing.T) {
	file := strings.TrimSpace(jsonText(t, sampleGraph(t)))
	for n := range len(file) {
		if _, err := ReadJSON(strings.NewReader(file[:n]), "g"); err == nil {
			t.Fatalf("the first %d of %d bytes were accepted", n, len(file))
		} else {
			oneLine(t, err)
		}
	}
}

func FuzzReadJSON(f *testing.F) {
	for _, c := range jsonErrors {
		f.Add(c.file)
	}
	var s strings.Builder
	must.Do(f, sampleGraph(f).WriteJSON(&s))
	f.Add(s.String())
	f.Add(s.String()[:s.Len()/2])
	f.Fuzz(func(t *testing.T, in string) {
		g, err := ReadJSON(strings.NewReader(in), "g")
		if err != nil {
			oneLine(t, err)
			return
		}
		back, err := ReadJSON(strings.NewReader(jsonText(t, g)), "g")
		if err != nil {
			t.Fatalf("%v in\n%s", err, jsonText(t, g))
		}
		if got, want := text(t, back), text(t, g); got != want {
			t.Fatalf("read back as\n%s\nwas\n%s", got, want)
		}
	})
}
