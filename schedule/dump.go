package schedule

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"dahl/dag"
	"dahl/naming"
	"dahl/platform"
	"dahl/schedule/place"
)

// Dump decides once more and writes the state after a pass as text: for each graph the plan, the costs, clocks and sleep
// states of its tasks, its transfers, the places of its buffers and the orders of reuse, as far as the passes have come.
func (d *Decision) Dump(out io.Writer, pass string) error {
	w := bufio.NewWriter(out)
	choice := d.choice
	choice.After = func(now string, d *Decision) {
		if now == pass {
			for i := range d.Graphs {
				d.dump(w, i)
			}
		}
	}
	if _, err := d.from.Decide(choice); err != nil {
		return err
	}
	return w.Flush()
}

// dump writes the decisions on one graph so far.
func (d *Decision) dump(w *bufio.Writer, graph int) {
	g, p, decided := d.Priced.Program.Graphs[graph], d.Priced.Platform, &d.Graphs[graph]
	fmt.Fprintf(w, "graph %q on %q: %s, %s\n", g.Name, p.Name, naming.Count(len(g.Tasks), "task"), naming.Count(len(g.Buffers), "buffer"))
	if plan := decided.Plan; plan != nil {
		fmt.Fprintf(w, "plan by %s\n", d.PolicyName(graph))
		for i, list := range plan.Order {
			dumpList(w, p.Workers[i].Name, list, func(t dag.TaskID) string {
				if plan.Lags != nil {
					return fmt.Sprintf("%s, %d behind", g.Tasks[t].Name, plan.Lags[t])
				}
				return g.Tasks[t].Name
			})
		}
	}
	if decided.Problem.Graph != nil {
		dumpProblem(w, decided)
	}
	if d.Placed != nil {
		written := d.Placed.Written(graph)
		dumpWritten(w, &written)
	} else if decided.atHost != nil {
		written := place.OnHost(g, p, decided.atHost)
		dumpWritten(w, &written)
	}
	order := func(e dag.Edge) string { return g.Tasks[e.From].Name + ", then " + g.Tasks[e.To].Name }
	dumpList(w, "shared bytes", decided.Problem.Reuse, order)
	dumpList(w, "shared bytes, of the next step", decided.Problem.ReuseNext, order)
}

// dumpList writes the entries of a list, and nothing of an empty one.
func dumpList[T any](w *bufio.Writer, name string, list []T, text func(T) string) {
	if len(list) > 0 {
		fmt.Fprintf(w, "  %s:\n", name)
	}
	for _, entry := range list {
		fmt.Fprintf(w, "    %s\n", text(entry))
	}
}

// dumpProblem writes the costs of each task by device, and the states that its plan gives it.
func dumpProblem(w *bufio.Writer, decided *Decided) {
	p, clocks, sleeps := &decided.Problem, map[string]string{}, map[string]string{}
	if decided.Plan != nil {
		clocks, sleeps = decided.Plan.StateNames(p.Graph, p.Platform)
	}
	fmt.Fprintln(w, "costs")
	for t := range dag.TaskID(len(p.Graph.Tasks)) {
		name, on := p.Graph.Tasks[t].Name, []string{}
		for id := range p.Platform.Devices {
			if cost, ok := p.Costs.Of(t, platform.DeviceID(id)); ok {
				on = append(on, strings.TrimSpace(fmt.Sprintf("%s %v %s", p.Platform.Devices[id].Name, cost.Duration, cost.Variant)))
			}
		}
		if clock := clocks[name]; clock != "" {
			on = append(on, "at clock "+clock)
		}
		if sleep := sleeps[name]; sleep != "" {
			on = append(on, "then asleep in "+sleep)
		}
		fmt.Fprintf(w, "  %s: %s\n", name, strings.Join(on, ", "))
	}
}

// dumpWritten writes the transfers of a graph and the places of its buffers.
func dumpWritten(w *bufio.Writer, d *place.Written) {
	fmt.Fprintln(w, "memories")
	transfer := func(t place.PlannedTransfer) string {
		return fmt.Sprintf("%s %v: %s to %s, %d bytes, %s", t.Buffer, t.Boxes, t.From, t.To, t.Bytes, t.Reason)
	}
	dumpList(w, "before the first step", d.Enter, transfer)
	for _, engine := range d.Transfers {
		dumpList(w, "engine "+engine.Engine, engine.Transfers, transfer)
	}
	dumpList(w, "after the last step", d.Leave, transfer)
	dumpList(w, "versions", d.Versions, func(v place.PlannedVersions) string {
		return fmt.Sprintf("%s in %s: %d", v.Buffer, v.Memory, v.Versions)
	})
	dumpList(w, "arenas", d.Arenas, func(a place.PlannedArena) string {
		return fmt.Sprintf("%s of %s: %d bytes", a.Arena, a.Memory, a.Bytes)
	})
	dumpList(w, "places", d.Places, func(at place.PlannedPlace) string {
		return fmt.Sprintf("%s in %s: %s + %d", at.Buffer, at.Memory, at.Arena, at.Offset)
	})
}
