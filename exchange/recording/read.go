package recording

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"dahl/dag"
	"dahl/naming"
	"dahl/platform"
)

// File is a file without compression.
type File struct {
	Name  string
	In    io.Reader                 // from its beginning
	Again func() (io.Reader, error) // begins anew; nil where the file can be read once only
	Pages *io.SectionReader         // reads it at any place; nil where it can be read in its order only
	Room  *Room                     // for what is read
}

// Options say which part of a recording becomes a graph.
type Options struct {
	Step    string  // its name, such as "16"; empty stands for all steps
	Extents Extents // of shapes, to be replaced; nil replaces none
	Alone   bool    // leaves out older work that delays the step
	Ranks   int     // of the training, if the only recording stands for all of them; 0 is as many as there are recordings
}

// Result is a recording as dahl has it.
type Result struct {
	Graph   *dag.Graph
	Machine *platform.Platform // that it was recorded on
	Notes   []string           // about steps, time that nothing explains, and work, one line each
	Left    []LeftOut          // by name
}

// LeftOut counts one thing that is in the files and not in the graph.
type LeftOut struct {
	What  string
	Count int
}

// Read reads a recording. The graph and the machine get a name. Errors are one line.
func Read(files []File, name string, o Options) (*Result, error) {
	recordings, err := readAll(files, o.Step)
	if err != nil {
		return nil, err
	}
	var all []*timeline
	for _, r := range recordings {
		all = append(all, newTimeline(r))
	}
	t := all[0]
	step, err := t.stepNamed(o.Step)
	if err != nil {
		return nil, err
	}
	resized := 0
	if o.Extents != nil {
		for _, t := range all {
			resized += t.resize(o.Extents)
		}
	}
	j, err := newJob(all, o.Ranks)
	if err != nil {
		return nil, err
	}
	j.alone = o.Alone
	out := &Result{}
	if out.Graph, err = j.graph(name, o.Step); err != nil {
		return nil, fmt.Errorf("%s: %w", t.file, err)
	}
	if out.Machine, err = j.machine(name); err != nil {
		return nil, fmt.Errorf("%s: %w", t.file, err)
	}
	out.Notes = append(append(t.stepNotes(step), j.rankNotes()...), workNote(out.Graph))
	if o.Extents != nil {
		out.Notes = append(out.Notes, naming.Count(resized, "task")+" have other extents; their times follow the roofline of the recorded machine")
	}
	left := counts{}
	for _, t := range all {
		for what, n := range t.left {
			left[what] += n
		}
	}
	for _, what := range slices.Sorted(maps.Keys(left)) {
		out.Left = append(out.Left, LeftOut{what, left[what]})
	}
	return out, nil
}

// readAll reads recordings of a step, one for each rank. Execution traces give their operands to the recording with the same place among
// its kind. Without any recording they become recordings without times of their own.
func readAll(files []File, step string) (recordings []*recording, err error) {
	var traced []*execution
	for _, f := range files {
		in := bufio.NewReaderSize(f.In, peekBytes)
		beginning, _ := in.Peek(peekBytes) // whoever reads on sees the error
		if IsExecution("", beginning) {
			f.In = in
			x, err := readExecution(f)
			if err != nil {
				return nil, err
			}
			traced = append(traced, x)
			continue
		}
		f.In = in
		read := readKineto
		if IsNsight("", beginning) {
			read = readNsight
		}
		r, err := readStep(f, read, step)
		if err != nil {
			return nil, err
		}
		recordings = append(recordings, r)
	}
	switch {
	case len(recordings) == 0:
		for _, x := range traced {
			recordings = append(recordings, x.recorded())
		}
	case len(traced) > 0 && len(traced) != len(recordings):
		return nil, fmt.Errorf("%s: %d recordings and %d execution traces; give one trace for each recording, or none", files[0].Name, len(recordings), len(traced))
	}
	for i, x := range traced {
		recordings[i].join(x)
	}
	return recordings, nil
}

// peekBytes is how much of a file tells its kind.
const peekBytes = 4096

// IsExecution recognises execution traces by their beginning.
func IsExecution(_ string, beginning []byte) bool {
	return bytes.Contains(beginning, []byte(`"schema"`)) && bytes.Contains(beginning, []byte(`"nodes"`))
}

// stepNamed finds a step by its name, or by what stands behind "step ".
func (r *recording) stepNamed(name string) (int, error) {
	if name == "" {
		return everyStep, nil
	}
	names := make([]string, len(r.steps))
	for i, s := range r.steps {
		names[i] = strings.TrimPrefix(s.name, stepWord)
		if name == names[i] || name == s.name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s: %w", r.file, naming.Unknown("step", name, names))
}

// stepNotes says how long steps took, with their unexplained time.
func (t *timeline) stepNotes(step int) (notes []string) {
	share := func(part, of int64) string { return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(max(1, of))) }
	line := func(s stepReport) string {
		if t.byRoofline {
			return fmt.Sprintf("%s: %v by the roofline of the GPU; no time was recorded", s.name, time.Duration(s.end-s.start).Round(time.Microsecond))
		}
		return fmt.Sprintf("%s: %v recorded; host time that nothing explains %s, %s of the step on the path that decides its end; gaps before work of GPUs on that path %s",
			s.name, time.Duration(s.end-s.start).Round(time.Microsecond), time.Duration(s.unexplained).Round(time.Microsecond), share(s.onPath, s.end-s.start), share(s.gapOnPath, s.end-s.start))
	}
	reports := t.reports()
	if step != everyStep {
		return []string{line(reports[step])}
	}
	if len(reports) <= shownSteps {
		for _, s := range reports {
			notes = append(notes, line(s))
		}
	}
	if len(reports) == 1 {
		return notes
	}
	all := t.wholeReport()
	all.name = naming.Count(len(reports), "step")
	return append(notes, line(all))
}

// shownSteps is how many steps get a line of their own.
const shownSteps = 40

// workNote says for how much of the time of a graph the work is known.
func workNote(g *dag.Graph) string {
	known, all := 0, 0
	var knownNs, allNs int64
	for i := range g.Tasks {
		k := &g.Tasks[i]
		if strings.HasPrefix(k.Op, hostWork) || k.Op == earlier {
			continue
		}
		all, allNs = all+1, allNs+k.Costs[0].Ns
		if k.MovedBytes > 0 {
			known, knownNs = known+1, knownNs+k.Costs[0].Ns
		}
	}
	return fmt.Sprintf("work is known for %s of %s kernels, copies and operators, with %.1f %% of their time", naming.Thousands(known), naming.Thousands(all), 100*float64(knownNs)/float64(max(1, allNs)))
}
