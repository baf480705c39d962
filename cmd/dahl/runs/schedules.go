package runs

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/plots"
	"dahl/rundir/tables"
	"dahl/schedule"
)

// writeSchedule writes what ran in a run as a table: tasks, transfers and changes of clocks and of sleep, by start.
func writeSchedule(w io.Writer, _, run *plots.Run) error {
	type line struct {
		start time.Duration
		cells []string
	}
	var lines []line
	p, g := run.Problem.Platform, run.Problem.Graph
	add := func(kind, name, where string, step int32, start, end time.Duration, clock string, bytes int64) {
		lines = append(lines, line{start, []string{kind, name, where, strconv.Itoa(int(step)), seconds(start), seconds(end), clock, strconv.FormatInt(bytes, 10)}})
	}
	for _, s := range run.Schedule.Spans {
		add("task", g.Tasks[s.Task].Name, p.Workers[s.Worker].Name, s.Step, s.Start, s.End, clockOf(run.Problem, &s).Name, g.Tasks[s.Task].MovedBytes)
	}
	for _, t := range run.Schedule.Transfers {
		add("transfer", g.Buffers[t.Buffer].Name, p.Memories[t.From].Name+" to "+p.Memories[t.To].Name, t.Step, t.Start, t.End, "", t.Bytes)
	}
	for _, c := range run.Schedule.Changes {
		add(c.Kind.String(), c.StateName(p), c.Of(p), 0, c.Start, c.End, "", 0)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.start, b.start) })
	all := [][]string{{"kind", "name", "where", "step", "start_s", "end_s", "clock", "bytes"}}
	for _, l := range lines {
		all = append(all, l.cells)
	}
	return tables.WriteCSV(w, all)
}

// writeClocks writes the clock of each task of the first step, device by device in the order in which they ran. A program that sets
// clocks follows it line by line.
func writeClocks(w io.Writer, _, run *plots.Run) error {
	spans := slices.Clone(run.Schedule.Spans)
	spans = slices.DeleteFunc(spans, func(s schedule.Span) bool { return s.Step != spans[0].Step })
	slices.SortStableFunc(spans, func(a, b schedule.Span) int {
		return cmp.Or(cmp.Compare(a.Worker, b.Worker), cmp.Compare(a.Start, b.Start))
	})
	all := [][]string{{"device", "stage", "instruction", "micro_batch", "task", "clock", "frequency"}}
	for _, s := range spans {
		task, clock := &run.Problem.Graph.Tasks[s.Task], clockOf(run.Problem, &s)
		stage, frequency := "", ""
		if task.Labels.Stage > 0 {
			stage = strconv.Itoa(int(task.Labels.Stage - 1))
		}
		if clock.FrequencyHz > 0 {
			frequency = strconv.FormatFloat(clock.FrequencyHz/1e6, 'f', -1, 64)
		}
		all = append(all, []string{run.Problem.Platform.Workers[s.Worker].Name, stage, cmp.Or(task.Labels.Phase, task.Op), strconv.Itoa(int(task.Labels.MicroBatch)), task.Name, clock.Name, frequency})
	}
	return tables.WriteCSV(w, all)
}

// clockOf is the clock at which a task ran.
func clockOf(p *schedule.Problem, s *schedule.Span) platform.Clock {
	device := p.Platform.Workers[s.Worker].Device
	clock, _ := p.StatesOf(dag.TaskID(s.Task), device)
	return p.Platform.Devices[device].ClockAt(clock)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.9f", d.Seconds()) }
