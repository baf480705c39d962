package report

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dahl/must"
	"dahl/schedule/explain"
)

// decoded is the data of a page, read by the words of doc.go and not by the program of the page.
type decoded struct {
	Columns []columnHead
	Runs    []struct {
		Energy  json.RawMessage
		Buffers patterns
		Tasks   struct {
			Names patterns
			Words []string
			Layer column
		}
		Schedules []struct {
			Spans, Transfers decodedItems
		}
	}
	values [][]int64
}

type decodedItems struct {
	StepsBack, TasksBack, Arrival, Last, Gap, Length, Task, Step, Worker column
	Buffer, Bytes, From, To                                              column
	Busy                                                                 [3]column
}

func write(t *testing.T, title string, runs ...Run) string {
	t.Helper()
	var page strings.Builder
	must.Do(t, Write(&page, title, runs))
	return page.String()
}

func decode(t *testing.T, page string) *decoded {
	t.Helper()
	text := regexp.MustCompile(`id="data">([^<]*)</script>`).FindStringSubmatch(page)
	if text == nil {
		t.Fatal("the page holds no data")
	}
	packed := must.Get(base64.StdEncoding.DecodeString(text[1]))(t)
	stream := must.Get(zlib.NewReader(bytes.NewReader(packed)))(t)
	all := must.Get(io.ReadAll(stream))(t)
	in := bytes.NewReader(all)
	length := must.Get(binary.ReadUvarint(in))(t)
	object := make([]byte, length)
	must.Get(io.ReadFull(in, object))(t)
	d := new(decoded)
	must.Do(t, json.Unmarshal(object, d))
	for _, head := range d.Columns {
		list := make([]int64, head.Length)
		if head.Kind == "f" {
			must.Get(in.Seek(int64(4*head.Length), io.SeekCurrent))(t)
		} else {
			for i := range list {
				list[i] = must.Get(binary.ReadVarint(in))(t)
				if head.Kind == "d" && i > 0 {
					list[i] += list[i-1]
				}
			}
		}
		d.values = append(d.values, list)
	}
	if in.Len() > 0 {
		t.Errorf("%d bytes follow the last column", in.Len())
	}
	return d
}

func (d *decoded) name(p patterns, i int64) string {
	parts := strings.Split(p.List[d.values[p.Of][i]], "\x00")
	name := parts[0]
	for k, part := range parts[1:] {
		name += fmt.Sprint(d.values[p.Numbers[k]][i]) + part
	}
	return name
}

// timed is a task or a copy of a schedule. Its cause is named by its task and step, or by when it
// began where it is a copy.
type timed struct {
	name       string
	step, on   int64
	start, end int64
	cause      string
}

// timedOf lists those of a schedule.
func timedOf(r *Run) map[timed]bool {
	s, g := r.Shown.Schedule, r.Shown.Problem.Graph
	starts := explain.NewStarts(r.Shown.Problem, s)
	cause := func(all []explain.Freed) string {
		last := explain.LastFreed(all)
		if last < 0 {
			return "none"
		}
		if by := all[last].By; by.Span < 0 {
			return fmt.Sprintf("copy from %d", s.Transfers[by.Transfer].Start)
		}
		x := &s.Spans[all[last].By.Span]
		return fmt.Sprintf("%s of step %d", g.Tasks[x.Task].Name, x.Step)
	}
	all := map[timed]bool{}
	for i, x := range s.Spans {
		all[timed{g.Tasks[x.Task].Name, int64(x.Step), int64(x.Worker), int64(x.Start), int64(x.End), cause(starts.OfSpan(int32(i)))}] = true
	}
	for i, x := range s.Transfers {
		name := fmt.Sprintf("%s of %d bytes for %s", g.Buffers[x.Buffer].Name, x.Bytes, g.Tasks[x.For].Name)
		all[timed{name, int64(x.Step), int64(100*x.From) + int64(x.To), int64(x.Start), int64(x.End), cause(starts.OfTransfer(int32(i)))}] = true
	}
	return all
}

// timed lists the tasks of the first schedule, then its copies.
func (d *decoded) timed() (all []timed) {
	run := &d.Runs[0]
	names, spans, transfers := run.Tasks.Names, &run.Schedules[0].Spans, &run.Schedules[0].Transfers
	spanStart, copyStart := d.starts(spans), d.starts(transfers)
	// The places of causes: 1 a predecessor, 2 an arrival, 4 to 6 what was busy.
	cause := func(of *decodedItems, i int) string {
		switch place := d.values[of.Last][i]; place {
		case 0:
			return "none"
		case 1:
			return fmt.Sprintf("%s of step %d", d.name(names, d.values[of.Task][i]-d.values[of.TasksBack][i]), d.values[of.Step][i]-d.values[of.StepsBack][i]+1)
		case 2:
			return fmt.Sprintf("copy from %d", copyStart[d.values[of.Arrival][i]-1])
		default:
			by := int64(i) - d.values[of.Busy[place-4]][i]
			if of == transfers {
				return fmt.Sprintf("copy from %d", copyStart[by])
			}
			return fmt.Sprintf("%s of step %d", d.name(names, d.values[spans.Task][by]), d.values[spans.Step][by])
		}
	}
	for i, task := range d.values[spans.Task] {
		all = append(all, timed{d.name(names, task), d.values[spans.Step][i], d.values[spans.Worker][i], spanStart[i], spanStart[i] + d.values[spans.Length][i], cause(spans, i)})
	}
	for i, task := range d.values[transfers.Task] {
		name := fmt.Sprintf("%s of %d bytes for %s", d.name(run.Buffers, d.values[transfers.Buffer][i]), d.values[transfers.Bytes][i], d.name(names, task))
		all = append(all, timed{name, d.values[transfers.Step][i], 100*d.values[transfers.From][i] + d.values[transfers.To][i], copyStart[i], copyStart[i] + d.values[transfers.Length][i], cause(transfers, i)})
	}
	return all
}

func (d *decoded) starts(of *decodedItems) (starts []int64) {
	ended := int64(0)
	for i, gap := range d.values[of.Gap] {
		starts = append(starts, ended+gap)
		ended = starts[i] + d.values[of.Length][i]
	}
	return starts
}

// Whoever decodes a report finds every task and copy of the schedule, with its time, its names and
// the cause of its start, and the energy as it was.
func TestReportHoldsTheSchedule(t *testing.T) {
	r := simulated(t, randomGraph(7, 11), 2, 3)
	d := decode(t, write(t, "random", r))
	want, got := timedOf(&r), d.timed()
	if n := len(r.Shown.Schedule.Spans) + len(r.Shown.Schedule.Transfers); len(got) != n || len(want) != n || len(r.Shown.Schedule.Transfers) == 0 {
		t.Fatalf("%d tasks and copies, %d of them different, want %d and copies among them", len(got), len(want), n)
	}
	for _, x := range got {
		if !want[x] {
			t.Errorf("the report has %+v, which is not in the schedule", x)
		}
	}
	run := &d.Runs[0]
	text, err := json.Marshal(r.Energy)
	if err != nil || string(text) != string(run.Energy) {
		t.Errorf("energy is %s, want %s (%v)", run.Energy, text, err)
	}
	for i, x := range r.Shown.Problem.Graph.Tasks {
		if layer := run.Tasks.Words[d.values[run.Tasks.Layer][i]]; layer != x.Labels.Layer {
			t.Errorf("task %q is of layer %q, want %q", x.Name, layer, x.Labels.Layer)
		}
	}
}

// TestReportOfUnorderedSpans: spans may lie in a file in any order.
func TestReportOfUnorderedSpans(t *testing.T) {
	r := simulated(t, randomGraph(7, 11), 2, 3)
	want := decode(t, write(t, "random", r)).timed()
	turned := *r.Shown.Schedule
	turned.Spans = slices.Clone(turned.Spans)
	slices.Reverse(turned.Spans)
	r.Shown.Schedule = &turned
	got := decode(t, write(t, "random", r)).timed()
	if len(got) != len(want) {
		t.Fatalf("%d tasks and copies, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].cause = want[i].cause; got[i] != want[i] { // causes are those of a schedule in order
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

// A hundred thousand tasks of random durations, half of them with a name of their own, and their
// copies take less than 2 MB.
func TestReportOfManyTasksIsSmall(t *testing.T) {
	r := simulated(t, randomGraph(250, 200), 13, 2)
	page := write(t, "many", r)
	t.Logf("%d bytes with %d copies", len(page), len(r.Shown.Schedule.Transfers))
	if n := len(r.Shown.Schedule.Spans); n != 100_000 || len(page) >= 2_000_000 {
		t.Errorf("%d tasks take %d bytes, want 100000 in less than 2 MB", n, len(page))
	}
}

// Equal runs give equal bytes, and what a name contains never becomes a part of the page.
func TestReportIsOnePage(t *testing.T) {
	r := simulated(t, strings.ReplaceAll(randomGraph(2, 3), "forward[", `</script><b>\"`), 2, 1)
	r.Name = "</script><b>"
	one, other := write(t, r.Name, r, r), write(t, r.Name, r, r)
	if one != other {
		t.Error("two reports of the same runs differ")
	}
	if strings.Contains(one, "<b>") || strings.Count(one, "</script>") != 2 {
		t.Error("a name reached the page as HTML")
	}
	if urls := regexp.MustCompile(`(?i)https?:|//[a-z]+\.|@import|url\(`).FindAllString(one[:strings.Index(one, `id="data"`)], -1); urls != nil {
		t.Errorf("the page names %q", urls)
	}
	if strings.Contains(one, "{{") {
		t.Error("a part of the page was not filled in")
	}
}

// Names come back from their patterns: numbers that are short enough and have no leading zero are
// taken out of them.
func TestNamesSplit(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		numbers       []int64
	}{
		{"conv1.forward[0:64,8]", "conv\x00.forward[\x00:\x00,\x00]", []int64{1, 0, 64, 8}},
		{"x007", "x007", nil},
		{"999999999", "\x00", []int64{999999999}},
		{"1234567890", "1234567890", nil},
		{"", "", nil},
		{"é3", "é\x00", []int64{3}},
	} {
		pattern, numbers := splitName(c.name)
		if pattern != c.pattern || fmt.Sprint(numbers) != fmt.Sprint(c.numbers) {
			t.Errorf("%q is %q with %v, want %q with %v", c.name, pattern, numbers, c.pattern, c.numbers)
		}
	}
}

// Columns hold the extremes of what they are for.
func TestColumns(t *testing.T) {
	e := &encoder{}
	want := []int64{0, -1, math.MaxInt64 / 2, math.MinInt64 / 2, 5}
	at := func(i int) int64 { return want[i] }
	e.ints(len(want), at)
	e.floats([]float64{1.5, -2})
	e.deltas(len(want), at)
	var text strings.Builder
	must.Do(t, e.write(&text, map[string]any{}))
	d := decode(t, `id="data">`+text.String()+"</script>")
	for _, k := range []int{0, 2} {
		if fmt.Sprint(d.values[k]) != fmt.Sprint(want) {
			t.Errorf("column %d is %v, want %v", k, d.values[k], want)
		}
	}
	// 1.5 is 3fc00000 and -2 is c0000000; the lowest bytes of both come first.
	if n := len(e.data) - 8; !bytes.Contains(e.data[:n+8], []byte{0, 0, 0, 0, 0xc0, 0, 0x3f, 0xc0}) {
		t.Errorf("floats are written as % x", e.data)
	}
}
