package recording

import (
	"slices"
	"strings"
	"testing"

	"dahl/dag"
)

// node is one of an execution trace.
func node(id, parent string, name, shapes, types, attrs string) string {
	return `{"id":` + id + `,"ctrl_deps":` + parent + `,"name":"` + name + `","inputs":{"values":[0,0],"shapes":` + shapes + `,"types":` + types + `},"outputs":{"values":[],"shapes":[],"types":[]},"attrs":[{"name":"rf_id","type":"uint64","value":` + id + `}` + attrs + `]}`
}

// twoRanks is an execution trace of one of two ranks, with a product within another operator and an allreduce of 101 floats.
var twoRanks = `{"schema":"1.1.0-chakra.0.0.4","pid":7,"nodes":[` + strings.Join([]string{
	node("3", "2", "ProfilerStep#5", "[]", "[]", ""),
	node("5", "4", "aten::mm", "[[7,11],[11,13]]", `["Tensor(float)","Tensor(float)"]`, ""),
	node("4", "3", "aten::linear", "[[7,11],[13,11]]", `["Tensor(float)","Tensor(float)"]`, ""),
	node("8", "3", "record_param_comms", "[[[101]]]", `["GenericList[Tensor(float)]"]`,
		`,{"name":"collective_name","value":"allreduce"},{"name":"dtype","value":"Float"},{"name":"in_msg_nelems","value":101},{"name":"pg_size","value":2}`),
}, ",") + `]}`

func read(t *testing.T, o Options, sources ...string) *Result {
	t.Helper()
	var files []File
	for _, s := range sources {
		files = append(files, File{Name: "x.json", In: strings.NewReader(s)})
	}
	r, err := Read(files, "x", o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestExecutionTrace: the inner one of two operators with work is a task, with the work of both. No note takes its time for a recorded one.
func TestExecutionTrace(t *testing.T) {
	r := read(t, Options{}, twoRanks)
	if step := r.Notes[0]; !strings.HasPrefix(step, "step 5: ") || !strings.HasSuffix(step, "no time was recorded") {
		t.Errorf("%q", step)
	}
	g := r.Graph
	if len(g.Tasks) != 2 || g.Tasks[0].Op != "aten::mm" || g.Tasks[0].Flops != 2*7*11*13 || g.Tasks[0].Labels.Phase != "step 5" {
		t.Errorf("%+v", g.Tasks)
	}
}

// TestOldExecutionTrace: before version 1.1 of the schema a node has numbers, shapes and types in itself.
func TestOldExecutionTrace(t *testing.T) {
	const old = `{"schema":"1.0.1","pid":7,"nodes":[{"name":"aten::mm","id":5,"rf_id":9,"parent":2,"fw_parent":0,"seq_id":-1,"scope":0,"tid":1,"fw_tid":0,"op_schema":"",
"inputs":[[1,2,0,77,4,"cpu"],[3,4,0,143,4,"cpu"]],"input_shapes":[[7,11],[11,13]],"input_types":["Tensor(float)","Tensor(float)"],"outputs":[],"output_shapes":[],"output_types":[]}]}`
	if k := read(t, Options{}, old).Graph.Tasks[0]; k.Op != "aten::mm" || k.Flops != 2*7*11*13 {
		t.Errorf("%+v", k)
	}
}

// TestJoin: an operator of a recording without shapes gets those of the node with its number and its name.
func TestJoin(t *testing.T) {
	recorded := file(`cpu_op 1 aten::mm 100 30 {"Record function id":5}`, `cpu_op 1 aten::add 140 5 {"Record function id":4}`)
	r := read(t, Options{}, recorded, twoRanks)
	if k := r.Graph.Tasks[0]; k.Op != "aten::mm" || k.Flops != 2*7*11*13 || k.Costs[0].Ns != 30_000 {
		t.Errorf("%+v", k)
	}
	if want := []LeftOut{{"operators without a node in x.json", 1}}; !slices.Equal(r.Left, want) {
		t.Errorf("left out %v, want %v", r.Left, want)
	}
}

// TestRanks: an allreduce of two ranks moves half of the bytes each way twice: each rank reads its slice of both inputs, and then both slices.
func TestRanks(t *testing.T) {
	g := read(t, Options{Ranks: 2}, twoRanks).Graph
	const half = 4 * 101 / 2
	moved := map[string]int64{}
	home := map[dag.BufferID]string{}
	for i := range g.Tasks {
		k := &g.Tasks[i]
		for _, a := range k.Accesses {
			switch bytes := g.Buffers[a.Buffer].Bytes(); {
			case a.Mode == dag.Write:
				home[a.Buffer] = k.Placement.Device
			case home[a.Buffer] != k.Placement.Device:
				if a.Box != nil {
					bytes = a.Box.Elems()
				}
				moved[home[a.Buffer]+" "+k.Placement.Device] += bytes
			}
		}
	}
	if len(moved) != 2 || moved["gpu0 gpu1"] != 2*half || moved["gpu1 gpu0"] != 2*half {
		t.Errorf("moved %v, want %d bytes each way", moved, 2*half)
	}
}

// TestExtents: with twice the rows a product has twice the work. By the roofline it takes twice the time of the recording, but for what the
// shortest operator took: 3 µs of 33.
func TestExtents(t *testing.T) {
	recorded := file(`cpu_op 1 aten::mm 100 33 {"Input Dims":[[7,11],[11,13]],"Input type":["float","float"]}`,
		`cpu_op 1 aten::relu 140 3 {"Input Dims":[[5]],"Input type":["float"]}`)
	e, err := ParseExtents("7=14")
	if err != nil {
		t.Fatal(err)
	}
	k := read(t, Options{Extents: e}, recorded).Graph.Tasks[0]
	// 2002 flop at 50 GF/s take 40 ns, and 984 bytes at 100 GB/s 10 ns: flop decide before and after.
	if k.Flops != 2*2*7*11*13 || k.Costs[0].Ns != 63_000 {
		t.Errorf("%v flop in %d ns, want %d in 63000", k.Flops, k.Costs[0].Ns, 2*2*7*11*13)
	}
	for _, text := range []string{"", "7", "7=", "0=3", "7=8,7=9", "a=3"} {
		if _, err := ParseExtents(text); err == nil {
			t.Errorf("%q is no list of extents", text)
		}
	}
}

// TestTooManyRanks: 724 GPUs have 724·723/2 routes to each other and 724 to the host, which are more than 2^18 = 262144.
func TestTooManyRanks(t *testing.T) {
	_, err := Read([]File{{Name: "x.json", In: strings.NewReader(twoRanks)}}, "x", Options{Ranks: 724})
	if want := "x.json: 724 GPUs of all ranks have 262450 routes to the host and to each other, and a machine has at most 262144; take fewer ranks"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestMissingRank: one of eight recordings is missing.
func TestMissingRank(t *testing.T) {
	rank := func(n string) string {
		return strings.Replace(file(`cpu_op 1 aten::mm 100 30`), `"schemaVersion":1`, `"schemaVersion":1,"distributedInfo":{"rank":`+n+`,"world_size":3}`, 1)
	}
	_, err := Read([]File{{Name: "a.json", In: strings.NewReader(rank("0"))}, {Name: "c.json", In: strings.NewReader(rank("2"))}}, "x", Options{})
	if err == nil || !strings.Contains(err.Error(), "of 3") || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}
