package simulate

import (
	"bufio"
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
	"dahl/schedule/policy"
)

// paperProblem reads the ten-task example of the HEFT paper: one unit of time is
// one second, one unit of communication cost is one byte at one byte per second.
func paperProblem(t *testing.T) *schedule.Problem {
	t.Helper()
	file := must.Get(os.Open("../schedule/policy/testdata/heft10.csv"))(t)
	defer file.Close()
	type edge struct {
		from, to string
		cost     int
	}
	var names []string
	costs := map[string][]dag.Cost{}
	var edges []edge
	for scan := bufio.NewScanner(file); scan.Scan(); {
		f := strings.Split(scan.Text(), ",")
		switch {
		case strings.HasPrefix(f[0], "#"):
		case len(f) == 4:
			names = append(names, f[0])
			for p, s := range f[1:] {
				seconds := must.Get(strconv.Atoi(s))(t)
				costs[f[0]] = append(costs[f[0]], dag.Cost{Key: "P" + strconv.Itoa(p+1), Ns: int64(seconds) * 1e9})
			}
		case len(f) == 3:
			cost := must.Get(strconv.Atoi(f[2]))(t)
			edges = append(edges, edge{f[0], f[1], cost})
		}
	}
	b := dag.NewBuilder("heft10")
	buffers := map[edge]dag.BufferID{}
	for _, e := range edges {
		buffers[e] = b.Buffer(dag.Buffer{Name: e.from + "-" + e.to, Shape: []int{e.cost}, Type: dag.Uint8})
	}
	for _, name := range names {
		task := dag.Task{Name: name, Costs: costs[name]}
		for _, e := range edges {
			if e.to == name {
				task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: buffers[e]}, Mode: dag.Read})
			}
			if e.from == name {
				task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: buffers[e]}, Mode: dag.Write})
			}
		}
		b.Task(task)
	}
	g := must.Get(b.Build())(t)
	return problem(t, g, paperPlatform(t), 1)
}

// paperPlatform is three processors, each with a memory of its own and a link to
// each other that no transfers share.
func paperPlatform(t *testing.T) *platform.Platform {
	p := &platform.Platform{Name: "heft"}
	for i := range 3 {
		n := strconv.Itoa(i + 1)
		p.Memories = append(p.Memories, platform.Memory{Name: "M" + n, BandwidthBytesPerSec: 1})
		p.Devices = append(p.Devices, platform.Device{Name: "P" + n, Kind: "cpu", Count: 1, Memory: platform.MemoryID(i), PowerSource: platform.Guess})
	}
	for i := range 3 {
		for j := range i {
			p.Routes = append(p.Routes, platform.Route{From: platform.MemoryID(j), To: platform.MemoryID(i), Links: []platform.LinkID{platform.LinkID(len(p.Links))}})
			p.Links = append(p.Links, platform.Link{Name: "L" + strconv.Itoa(j+1) + strconv.Itoa(i+1), BandwidthBytesPerSec: 1, Sharing: platform.Fatpipe, PowerSource: platform.Guess})
		}
	}
	must.Do(t, p.Complete())
	return p
}

// TestHEFTPaper repeats figure 3(a) of the paper: makespan 80 and, to the second,
// the placement given there (and in the last lines of the data file).
func TestHEFTPaper(t *testing.T) {
	p := paperProblem(t)
	plan := must.Get(policy.HEFT.Plan(p))(t)
	s := must.Get(run(p, how{plan: plan}))(t)
	if s.Makespan != 80*time.Second {
		t.Errorf("makespan %v, the paper has 80", s.Makespan)
	}
	want := map[string][3]int{ // processor, start, end
		"n2": {1, 27, 40}, "n8": {1, 57, 62},
		"n4": {2, 18, 26}, "n6": {2, 26, 42}, "n9": {2, 56, 68}, "n10": {2, 73, 80},
		"n1": {3, 0, 9}, "n3": {3, 9, 28}, "n5": {3, 28, 38}, "n7": {3, 38, 49},
	}
	for _, span := range s.Spans {
		name := p.Graph.Tasks[span.Task].Name
		got := [3]int{int(span.Worker) + 1, int(span.Start / time.Second), int(span.End / time.Second)}
		if got != want[name] {
			t.Errorf("%s: processor, start, end = %v, the paper has %v", name, got, want[name])
		}
	}
	ordered := slices.IsSortedFunc(s.Spans, func(a, b schedule.Span) int { return int(a.Start - b.Start) })
	if len(s.Spans) != len(want) || !ordered {
		t.Errorf("%d spans, ordered: %v", len(s.Spans), ordered)
	}
}
