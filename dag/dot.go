package dag

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// dotColors fill the tasks by phase, one after the other: ColorBrewer's Pastel1.
var dotColors = [...]string{"#b3cde3", "#ccebc5", "#fbb4ae", "#decbe4", "#fed9a6", "#ffffcc", "#e5d8bd", "#fddaec"}

// WriteDOT writes one step for Graphviz, from top to bottom: a box per task with its name,
// operation and flops, clustered by layer and coloured by phase. Solid arrows are dependences
// within the step, labelled with their buffers; an arrow implied by two others is left out.
// Dashed arrows are carried into the next step and do not influence the drawing.
func (g *Graph) WriteDOT(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "digraph %s {\n  rankdir=TB\n  node [shape=box style=filled fontname=Helvetica fontsize=10]\n", dotQuote(g.Name))
	fmt.Fprintf(out, "  edge [fontname=Helvetica fontsize=8 color=gray40]\n")
	layers, phases := g.layersAndPhases()
	for i, layer := range layers {
		indent := "  "
		if layer != "" {
			fmt.Fprintf(out, "  subgraph cluster_%d {\n    label=%s\n    color=gray70\n", i, dotQuote(layer))
			indent = "    "
		}
		for t := range g.Tasks {
			if task := &g.Tasks[t]; task.Labels.Layer == layer {
				color := dotColors[slices.Index(phases, task.Labels.Phase)%len(dotColors)]
				fmt.Fprintf(out, "%st%d [label=%s fillcolor=%q]\n", indent, t, dotQuote(dotLabel(task)), color)
			}
		}
		if layer != "" {
			fmt.Fprintf(out, "  }\n")
		}
	}
	for t := range g.Tasks {
		id := TaskID(t)
		for _, p := range g.Preds(id) {
			if !g.implied(p, id) {
				fmt.Fprintf(out, "  t%d -> t%d [label=%s]\n", p, t, dotQuote(strings.Join(g.sharedBuffers(TaskID(p), id), "\n")))
			}
		}
		for _, p := range g.CarriedPreds(id) {
			fmt.Fprintf(out, "  t%d -> t%d [style=dashed constraint=false]\n", p, t)
		}
	}
	fmt.Fprintf(out, "}\n")
	return out.Flush() // it keeps the first error of all writes
}

// layersAndPhases lists both in the order of their first task.
func (g *Graph) layersAndPhases() (layers, phases []string) {
	for t := range g.Tasks {
		l := g.Tasks[t].Labels
		if !slices.Contains(layers, l.Layer) {
			layers = append(layers, l.Layer)
		}
		if !slices.Contains(phases, l.Phase) {
			phases = append(phases, l.Phase)
		}
	}
	return layers, phases
}

// implied reports whether another predecessor of t follows p directly.
func (g *Graph) implied(p int32, t TaskID) bool {
	for _, q := range g.Preds(t) {
		if _, ok := slices.BinarySearch(g.Preds(TaskID(q)), p); ok {
			return true
		}
	}
	return false
}

// sharedBuffers names the storages in which the regions of both tasks overlap and one of them
// writes.
func (g *Graph) sharedBuffers(p, t TaskID) []string {
	var names []string
	for i, a := range g.Tasks[t].Accesses {
		for k, b := range g.Tasks[p].Accesses {
			name := g.Buffers[g.Storage(a.Buffer)].Name
			if (a.Mode.Writes() || b.Mode.Writes()) && !slices.Contains(names, name) && g.overlap(t, i, p, k) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (g *Graph) overlap(t TaskID, i int, p TaskID, k int) bool {
	return slices.ContainsFunc(g.Atoms(t, i), func(a int32) bool { return slices.Contains(g.Atoms(p, k), a) })
}

func dotLabel(t *Task) string {
	lines := []string{t.Name}
	if t.Op != "" {
		lines = append(lines, t.Op)
	}
	if t.Flops > 0 {
		lines = append(lines, strconv.FormatFloat(t.Flops, 'g', 3, 64)+" flop")
	}
	return strings.Join(lines, "\n")
}

// dotQuote makes a double-quoted string of the DOT language, in which only the
// quote and the backslash are special and a line ends with \n.
func dotQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
