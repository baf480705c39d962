package plots

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"dahl/must"
	"dahl/schedule"
	"dahl/schedule/explain"
)

// traceFile is the trace as a viewer reads it.
type traceFile struct {
	DisplayTimeUnit string `json:"displayTimeUnit"`
	TraceEvents     []struct {
		Ph, Name, Cat, Bp string
		Pid, Tid, ID      int
		Ts, Dur           float64
		Args              map[string]any
	} `json:"traceEvents"`
}

func readChrome(t *testing.T, runs ...*Run) traceFile {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, Chrome(&out, runs...))
	var f traceFile
	d := json.NewDecoder(&out)
	must.Do(t, d.Decode(&f))
	if d.More() {
		t.Fatal("there is more after the object")
	}
	return f
}

type thread struct{ pid, tid int }

type slice struct{ from, to float64 }

// Every slice is on a thread with a name in a process with a name, slices of a
// thread do not overlap, and there is one for each task and transfer.
func TestChromeSlices(t *testing.T) {
	for name, r := range map[string]*Run{"tiny": tinyRun(t, schedule.Measured, 1), "overlapping": overlapping(t), "large": largeRun(t, 2000, 4, 2, 5)} {
		f := readChrome(t, r)
		processes, threads := map[int]bool{}, map[thread]bool{}
		slices_ := map[thread][]slice{}
		count := 0
		for _, e := range f.TraceEvents {
			at := thread{e.Pid, e.Tid}
			switch {
			case e.Ph == "M" && e.Name == "process_name":
				processes[e.Pid] = e.Args["name"] != ""
			case e.Ph == "M" && e.Name == "thread_name":
				threads[at] = e.Args["name"] != ""
			case e.Ph == "X":
				if e.Cat != "critical path" {
					count++
				}
				if !threads[at] || !processes[e.Pid] {
					t.Errorf("%s: slice %q is on unknown thread %v", name, e.Name, at)
				}
				slices_[at] = append(slices_[at], slice{e.Ts, e.Ts + e.Dur})
			}
		}
		if want := len(r.Schedule.Spans) + len(r.Schedule.Transfers); count != want {
			t.Errorf("%s: %d slices, want %d", name, count, want)
		}
		for at, list := range slices_ {
			slices.SortFunc(list, func(a, b slice) int { return cmp.Compare(a.from, b.from) })
			for i := range list[1:] {
				if list[i].to > list[i+1].from+1e-6 { // a thousandth of a nanosecond: decimals are not binary
					t.Errorf("%s: slices %v and %v of thread %v overlap", name, list[i], list[i+1], at)
				}
			}
		}
	}
}

// Every arrow has one start and one end, does not point back in time, and both
// its ends lie in a slice of their thread.
func TestChromeFlowsArePaired(t *testing.T) {
	for name, r := range map[string]*Run{"tiny": tinyRun(t, schedule.Measured, 1), "large": largeRun(t, 2000, 4, 2, 5)} {
		f := readChrome(t, r)
		inside := map[thread][]slice{}
		for _, e := range f.TraceEvents {
			if e.Ph == "X" {
				at := thread{e.Pid, e.Tid}
				inside[at] = append(inside[at], slice{e.Ts, e.Ts + e.Dur})
			}
		}
		starts, ends := map[int]float64{}, map[int]float64{}
		for _, e := range f.TraceEvents {
			if e.Ph != "s" && e.Ph != "f" {
				continue
			}
			side := starts
			if e.Ph == "f" {
				side = ends
				if e.Bp != "e" {
					t.Errorf("%s: arrow %d does not bind to the slice around its end", name, e.ID)
				}
			}
			if _, twice := side[e.ID]; twice || e.ID == 0 {
				t.Errorf("%s: arrow %d has two %q events", name, e.ID, e.Ph)
			}
			side[e.ID] = e.Ts
			if !slices.ContainsFunc(inside[thread{e.Pid, e.Tid}], func(s slice) bool { return s.from <= e.Ts && e.Ts < s.to }) {
				t.Errorf("%s: arrow %d at %g lies in no slice of its thread", name, e.ID, e.Ts)
			}
		}
		if len(starts) != len(ends) || len(starts) == 0 {
			t.Errorf("%s: %d starts and %d ends of arrows", name, len(starts), len(ends))
		}
		for id, from := range starts {
			if to, ok := ends[id]; !ok || to < from {
				t.Errorf("%s: arrow %d from %g to %g", name, id, from, to)
			}
		}
	}
}

// Derived from tinyGraph with the second tile on the GPU. Within a step the loss
// on cpu.1 needs z of tile 0 from cpu.0 (1 dependence) and of tile 1 from the GPU
// (a transfer); the update on cpu.0 needs dw of tile 1 from the GPU (a transfer).
// The GPU needs x of tile 1 and fc1.weight: transfers that no task of step 0
// wrote for. An arrow leads into each task from each of its transfers, and into
// a transfer from the task that wrote it.
func TestChromeFlowsOfTheTinyRun(t *testing.T) {
	r := tinyRun(t, schedule.Measured, 1)
	count := map[string]int{}
	for _, e := range readChrome(t, r).TraceEvents {
		if e.Ph == "s" {
			count[e.Cat]++
		}
	}
	into, out := 0, 0
	g, s := r.Problem.Graph, r.Schedule
	for i := range s.Transfers {
		into++
		if name := g.Buffers[s.Transfers[i].Buffer].Name; name == "z" || name == "grad.fc1.weight" || (name == "fc1.weight" && s.Transfers[i].Step > 0) {
			out++ // z, dw and the updated weight were written by a predecessor
		}
	}
	if count["transfer"] != into+out {
		t.Errorf("%d transfer arrows, want %d into tasks and %d out of tasks", count["transfer"], into, out)
	}
	if count["dependence"] == 0 {
		t.Error("no arrow from cpu.0 to the loss on cpu.1")
	}
}

func TestChromeCounters(t *testing.T) {
	r := tinyRun(t, schedule.Measured, 1)
	memory, power := 0, 0
	for _, e := range readChrome(t, r).TraceEvents {
		if e.Ph != "C" {
			continue
		}
		if _, ok := e.Args["bytes"]; ok {
			memory++
		}
		if _, ok := e.Args["watts"]; ok {
			power++
		}
	}
	samples := 0
	for _, trace := range r.Power {
		samples += len(trace.Samples)
	}
	if memory != len(r.Schedule.Memory) || power != samples {
		t.Errorf("%d memory and %d power events, want %d and %d", memory, power, len(r.Schedule.Memory), samples)
	}
}

// fullDisk takes some bytes and then fails.
type fullDisk struct{ left int }

var errFull = errors.New("disk full")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.left -= len(p); d.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestTracesReturnWriteErrors(t *testing.T) {
	r := tinyRun(t, schedule.Measured, 1)
	for _, left := range []int{0, 5000} {
		if err := Chrome(&fullDisk{left}, r); !errors.Is(err, errFull) {
			t.Errorf("Chrome trace: error %v after %d bytes", err, left)
		}
		if err := Paje(&fullDisk{left}, r); !errors.Is(err, errFull) {
			t.Errorf("Pajé trace: error %v after %d bytes", err, left)
		}
	}
}

// A task that waits for a hundred others shows the arrows of the last four.
func TestChromeBoundsTheArrowsIntoATask(t *testing.T) {
	r := largeRun(t, 2000, 4, 1, 5)
	into := map[[2]float64]int{} // by thread and time
	for _, e := range readChrome(t, r).TraceEvents {
		if e.Ph == "f" && e.Cat == "dependence" {
			into[[2]float64{float64(e.Tid), e.Ts}]++
		}
	}
	most := 0
	for _, n := range into {
		most = max(most, n)
	}
	// The last tile of a layer writes the weight that all hundred others read.
	if most != maxArrows {
		t.Errorf("a task has %d arrows, want %d", most, maxArrows)
	}
}

// What is on the critical path is marked, and drawn again in a process of its own. Predicted and measured have
// processes of their own, each with a place.
func TestChromeOfBothWorlds(t *testing.T) {
	predicted, measured := tinyRun(t, schedule.Simulated, 1), tinyRun(t, schedule.Measured, 1.5)
	f := readChrome(t, predicted, measured)
	names, places := map[string]int{}, map[string]map[int]bool{"process_sort_index": {}, "thread_sort_index": {}}
	marked, path := map[string]int{}, map[string]int{}
	world := ""
	for _, e := range f.TraceEvents {
		switch {
		case e.Name == "process_name":
			names[e.Args["name"].(string)]++
			world, _, _ = strings.Cut(e.Args["name"].(string), ":")
		case places[e.Name] != nil:
			at := int(e.Args["sort_index"].(float64))
			if places[e.Name][at] {
				t.Errorf("%s %d is given twice", e.Name, at)
			}
			places[e.Name][at] = true
		case e.Ph == "X" && e.Cat == "critical path":
			path[world]++
		case e.Ph == "X" && e.Args["critical_path"] == true:
			marked[world]++
		}
	}
	for _, world := range []string{"simulated", "measured"} {
		for _, process := range []string{"cpu", "gpu", "transfers and counters", "critical path"} {
			if names[world+": "+process] != 1 {
				t.Errorf("%d processes are named %s: %s", names[world+": "+process], world, process)
			}
		}
	}
	for i, r := range []*Run{predicted, measured} {
		want := len(explain.CriticalPath(r.Problem, r.Schedule))
		if world := []string{"simulated", "measured"}[i]; path[world] != want || marked[world] != want {
			t.Errorf("%s: the path has %d slices and %d tasks and copies are marked, want %d", world, path[world], marked[world], want)
		}
	}
	if len(places["process_sort_index"]) != len(names) {
		t.Errorf("%d of %d processes have a place", len(places["process_sort_index"]), len(names))
	}
}
