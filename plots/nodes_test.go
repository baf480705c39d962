package plots

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
)

// onTwoNodes is the tiny run with its cores on node n0 and its GPU on node n1.
func onTwoNodes(t *testing.T) *Run {
	r := tinyRun(t, schedule.Simulated, 1)
	p := r.Problem.Platform
	p.Nodes = []platform.Node{{Name: "n0"}, {Name: "n1"}}
	p.Memories[1].Node = 1
	for m, name := range []string{"n0.ram", "n1.hbm"} {
		p.Memories[m].Name = name
	}
	for w, name := range []string{"n0.cpu.0", "n0.cpu.1", "n1.gpu"} {
		p.Workers[w].Name = name
	}
	r.NodeTexts = []string{"first", "second"}
	return r
}

// A chart has the rows of each node together, below its name, and names them without it. What moves is in the node to which it goes.
func TestRowsOfNodes(t *testing.T) {
	ch := newChart(onTwoNodes(t), newColouring(onTwoNodes(t)))
	var got []string
	for i := range ch.rows {
		got = append(got, strings.Trim(ch.rows[i].head+" | "+ch.rows[i].label, " |"))
	}
	want := []string{"n0: first | cpu.0", "cpu.1", "n1.hbm to ram", "n1: second | gpu", "n0.ram to hbm"}
	if !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	v := must.Get(NewView(onTwoNodes(t), nil))(t)
	for i, m := range v.Spans {
		if name := v.Rows[m.Row].Node + "." + v.Rows[m.Row].Label; name != []string{"n0.cpu.0", "n0.cpu.1", "n1.gpu"}[onTwoNodes(t).Schedule.Spans[i].Worker] {
			t.Errorf("span %d is in the row %s", i, name)
		}
	}
	for i, m := range v.Transfers {
		to := []string{"n1.hbm to ram", "n0.ram to hbm"}[onTwoNodes(t).Schedule.Transfers[i].To]
		if v.Rows[m.Row].Label != to {
			t.Errorf("transfer %d is in the row %s, want %s", i, v.Rows[m.Row].Label, to)
		}
	}
}

// Of 100 nodes with two workers each, of which one runs tasks, there are more than a chart has rows for: two nodes share one.
func TestManyNodesShareRows(t *testing.T) {
	const nodes = 100
	r := largeRun(t, 20*nodes, nodes, 1, 7)
	p := &platform.Platform{Name: "many"}
	for n := range nodes {
		name := fmt.Sprint("n", n)
		p.Nodes = append(p.Nodes, platform.Node{Name: name})
		p.Memories = append(p.Memories, platform.Memory{Name: name + ".ram", Node: platform.NodeID(n)})
		p.Devices = append(p.Devices, platform.Device{Name: name + ".cpu", Kind: "cpu", Count: 2, Memory: platform.MemoryID(n)})
		for k := range 2 {
			p.Workers = append(p.Workers, platform.Worker{Name: fmt.Sprintf("%s.cpu.%d", name, k), Device: platform.DeviceID(n), Index: k})
		}
	}
	for i := range r.Schedule.Spans {
		r.Schedule.Spans[i].Worker *= 2
	}
	r.Problem.Platform = p
	ch := newChart(r, newColouring(r))
	if len(ch.rows) != nodes/2 || ch.rows[0].label != "n0…n1" || ch.rows[49].label != "n98…n99" || ch.rows[0].head != "" || len(ch.rows[0].lanes) != 2 {
		t.Fatalf("%d rows, the first %q of %d lanes", len(ch.rows), ch.rows[0].label, len(ch.rows[0].lanes))
	}
	must.Get(NewView(r, nil))(t)
}

// A trace of a cluster has a process for each node, with its workers and what moves to it as threads, and no process for devices.
func TestChromeProcessesOfNodes(t *testing.T) {
	process, threads := map[int]string{}, map[string]string{}
	for _, e := range readChrome(t, onTwoNodes(t)).TraceEvents {
		switch e.Name {
		case "process_name":
			if process[e.Pid] != "" {
				t.Errorf("process %d has two names", e.Pid)
			}
			process[e.Pid] = fmt.Sprint(e.Args["name"])
		case "thread_name":
			threads[fmt.Sprint(e.Args["name"])] = process[e.Pid]
		}
	}
	for name, want := range map[string]string{"n0.cpu.0": "n0", "n0.cpu.1": "n0", "n1.hbm to n0.ram": "n0", "n1.gpu": "n1", "n0.ram to n1.hbm": "n1"} {
		if threads[name] != want {
			t.Errorf("%s is a thread of %q, want %s", name, threads[name], want)
		}
	}
	for _, name := range process {
		if !slices.Contains([]string{"n0", "n1", "transfers and counters", "critical path"}, name) {
			t.Errorf("there is a process %q", name)
		}
	}
}
