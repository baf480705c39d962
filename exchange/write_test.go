package exchange

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
)

// again writes a graph and reads what was written.
func again(t *testing.T, g *dag.Graph, file string, write func(io.Writer, *dag.Graph, Time) error) *dag.Graph {
	t.Helper()
	var text bytes.Buffer
	must.Do(t, write(&text, g, TimeOf(g)))
	return must.Get(must.Get(FormatOf(file, text.Bytes()))(t).Read(text.Bytes(), file, Options{}))(t).Graph
}

// TestGraphsReturn: a file of another format that became a graph becomes the same graph again by way of the format.
func TestGraphsReturn(t *testing.T) {
	daggen := must.Get(os.ReadFile("testdata/dslab/daggen-100-0.5-0.9-0.10-2.dot"))(t)
	for _, c := range []struct {
		file, text string
		write      func(io.Writer, *dag.Graph, Time) error
	}{
		{"daggen.dot", string(daggen), WriteSimGridDOT},
		{"sizes.dot", dotSizes, WriteSimGridDOT},
		{"instance.json", instance, WriteWfCommons},
		{"old.json", instanceOld, WriteWfCommons},
	} {
		g := must.Get(must.Get(FormatOf(c.file, []byte(c.text)))(t).Read([]byte(c.text), c.file, Options{}))(t).Graph
		if got := again(t, g, c.file, c.write); got.NumTasks() != g.NumTasks() || edges(got) != edges(g) {
			t.Errorf("%s comes back as\n%s\nwant\n%s", c.file, edges(got), edges(g))
		}
	}
}

// edges lists the tasks of a graph by name, each with its time or work, what it follows and the bytes that it reads and writes.
func edges(g *dag.Graph) string {
	var lines []string
	reads, writes := flowsOf(g)
	sum := func(all []flow) (bytes int64) {
		for _, f := range all {
			bytes += f.bytes
		}
		return bytes
	}
	for i := range g.Tasks {
		takes, _ := TimeOf(g)(dag.TaskID(i))
		var before []string
		for _, p := range g.Preds(dag.TaskID(i)) {
			before = append(before, g.Tasks[p].Name)
		}
		slices.Sort(before)
		lines = append(lines, fmt.Sprintf("%s %v %g %v %d %d", g.Tasks[i].Name, takes, g.Tasks[i].Flops, before, sum(reads[i]), sum(writes[i])))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestStarpuTasksReturn: a task keeps its handles and what it follows, and takes its shortest time. Its name has the number that it gets in the file.
func TestStarpuTasksReturn(t *testing.T) {
	g := must.Get(must.Get(FormatOf("t.rec", []byte(starpuTasks)))(t).Read([]byte(starpuTasks), "t.rec", Options{}))(t).Graph
	want := `potrf 2 1 cpu=20ms -> 1:40
gemm 3 2 cuda=2.25ms 1:40 -> 2:50 after potrf 2 1
gemm 4 3 cuda=2.25ms 1:40 -> 3:70 after potrf 2 1
`
	got := again(t, g, "t.rec", WriteStarpuTasks)
	if text := describe(got); text != want {
		t.Errorf("tasks come back as\n%swant\n%s", text, want)
	}
	if task := got.Tasks[0]; task.Op != "potrf_model" || task.Shape != "cafe" || task.Flops != 0.5e9 || task.Priority != 7 {
		t.Errorf("the first task comes back as %+v", task)
	}
}

// TestSimGridReturns: speeds, watts and the times of all ways are the same by way of a platform of SimGrid's. A link with two directions is crossed
// in the direction of each way.
func TestSimGridReturns(t *testing.T) {
	gpu := testmachine.GPU("gpu", 30, 200)
	gpu.FlopsPerSec = map[string]float64{"float32": 3e12}
	gpu.Clocks = []platform.Clock{{Name: "fast", Scale: 1, Idle: 30, Busy: gpu.Busy}, {Name: "slow", Scale: 0.5, Idle: 20, Busy: platform.BusyPower{UnitWatts: 90}}}
	p := testmachine.Node(t, testmachine.CPU(4, 2, 11), gpu, testmachine.GPU("other"))
	p.Links[0] = platform.Link{Name: "bus", BandwidthBytesPerSec: 7e8, Latency: 13 * time.Microsecond, Sharing: platform.Duplex}
	p.Links = append(p.Links, platform.Link{Name: "up", BandwidthBytesPerSec: 3e8, Sharing: platform.Fatpipe, IdleWatts: 1, BusyWatts: 5, PowerSource: platform.Guess})
	p.Routes = append(p.Routes, platform.Route{From: 1, To: 2, Links: []platform.LinkID{1}, OneWay: true})
	must.Do(t, p.Complete())
	var text bytes.Buffer
	must.Do(t, WriteSimGrid(&text, p))
	q, left := readMachine(t, "node.xml", text.String())
	if left != "" || len(q.Devices) != len(p.Devices) {
		t.Fatalf("%d devices come back, without %s", len(q.Devices), left)
	}
	for i := range p.Devices {
		a, b := &p.Devices[i], &q.Devices[i]
		for c := range a.NumClocks() {
			for busy := range a.Count + 1 {
				if x, y := a.Watts(c, busy), b.Watts(c, busy); x < y-1e-9 || x > y+1e-9 {
					t.Errorf("%s draws %g W at clock %d with %d busy units, and %g before", a.Name, y, c, busy, x)
				}
			}
		}
		if a.Name != b.Name || a.Kind != b.Kind || a.Count != b.Count || a.NumClocks() != b.NumClocks() {
			t.Errorf("%+v comes back as %+v", a, b)
		}
	}
	for _, r := range p.Routes {
		for _, way := range [][2]platform.MemoryID{{r.From, r.To}, {r.To, r.From}} {
			if r.OneWay && way[0] != r.From {
				continue
			}
			if x, y := p.RouteTime(way[0], way[1], 1e6), q.RouteTime(way[0], way[1], 1e6); x != y {
				t.Errorf("a megabyte from %d to %d takes %v, and %v before", way[0], way[1], y, x)
			}
		}
	}
	there, _ := q.Route(0, 1)
	back, _ := q.Route(1, 0)
	if a, b := q.Links[there[0]].Name, q.Links[back[0]].Name; a != "bus.up" || b != "bus.down" {
		t.Errorf("the bus is crossed by %s and %s", a, b)
	}
}
