package experiment

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"dahl/rundir/tables"
	"dahl/stats"
)

// Status says what became of a cell.
type Status string

// What becomes of a cell.
const (
	OK      Status = "ok"
	Failed  Status = "failed"
	Missing Status = "not run"
	// Absent is a cell whose contestant is not installed.
	Absent Status = "not installed"
)

// Row is the result of a cell.
type Row struct {
	Cell   *Cell
	Values [numColumns]float64 // NaN means that the run does not give it
	Status Status
	Reason string // of a failure, or what is to be known of the values

	JoulesSource, MemorySource string // what these columns rest on; empty means that nothing is known
}

// NewRow is one without values.
func NewRow(c *Cell, s Status, reason string) Row {
	r := Row{Cell: c, Status: s, Reason: reason}
	for i := range r.Values {
		r.Values[i] = math.NaN()
	}
	return r
}

// Set sets a value. What is not finite stays unknown.
func (r *Row) Set(c Column, v float64) {
	if !math.IsInf(v, 0) {
		r.Values[c] = v
	}
}

// Table is the results of an experiment, a row for each cell in their order.
type Table struct {
	File *File
	Rows []Row
}

// Count is how many rows have a status.
func (t *Table) Count(s Status) (n int) {
	for i := range t.Rows {
		if t.Rows[i].Status == s {
			n++
		}
	}
	return n
}

// WriteCSV writes a line for each row: the coordinates, the repetition, the columns and what they rest on.
func (t *Table) WriteCSV(w io.Writer) error {
	var header []string
	for _, a := range t.File.Axes {
		header = append(header, a.Name)
	}
	header = append(append(header, repeatKey), ColumnNames()...)
	lines := [][]string{append(header, "joules_source", "memory_source", "status", "reason", "run")}
	for i := range t.Rows {
		r := &t.Rows[i]
		var line []string
		for _, at := range r.Cell.Coordinates {
			line = append(line, at.Label)
		}
		line = append(line, strconv.Itoa(r.Cell.Repeat))
		for _, v := range r.Values {
			line = append(line, number(v))
		}
		lines = append(lines, append(line, r.JoulesSource, r.MemorySource, string(r.Status), r.Reason, r.Cell.Name()))
	}
	return tables.WriteCSV(w, lines)
}

// number is the shortest decimal that reads back as the same number; empty means none.
func number(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// group is the rows of cells that differ by repetition and seed alone.
type group struct {
	at   []Coordinate // without the seed
	rows []*Row       // that have values
	all  int          // with those that have none
}

// groups are the groups in the order of their first rows.
func (t *Table) groups() []*group {
	var groups []*group
	of := map[string]*group{}
	for i := range t.Rows {
		r := &t.Rows[i]
		at := slices.DeleteFunc(slices.Clone(r.Cell.Coordinates), func(c Coordinate) bool { return c.Axis == SeedAxis })
		key := fmt.Sprintf("%q", at)
		g := of[key]
		if g == nil {
			g = &group{at: at}
			of[key], groups = g, append(groups, g)
		}
		if g.all++; r.Status == OK {
			g.rows = append(g.rows, r)
		}
	}
	return groups
}

// label is the value of a group on an axis.
func (g *group) label(axis string) string {
	for _, at := range g.at {
		if at.Axis == axis {
			return at.Label
		}
	}
	return ""
}

// values are the known values of a column.
func (g *group) values(c Column) (values []float64) {
	for _, r := range g.rows {
		if v := r.Values[c]; !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return values
}

// WriteMarkdown writes the lines of the table and notes.
func (t *Table) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", tables.Markdown(t.File.Name))
	if t.File.Sentence != "" {
		fmt.Fprintf(&b, "%s\n\n", tables.Markdown(t.File.Sentence))
	}
	lines, labels := t.Lines()
	for i, line := range lines {
		for k := range labels {
			line[k] = tables.Markdown(line[k])
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			fmt.Fprintf(&b, "|%s%s\n", strings.Repeat(" --- |", labels), strings.Repeat(" ---: |", len(line)-labels))
		}
	}
	t.writeNotes(&b, t.groups())
	_, err := io.WriteString(w, b.String())
	return err
}

// Lines are a heading and a line for each group of cells that differ by repetition and seed alone. The first cells of each
// are labels, and the others numbers: medians with intervals. Columns without any value are left out.
func (t *Table) Lines() (lines [][]string, labels int) {
	columns, head := t.columns(), []string(nil)
	for _, a := range t.File.Axes {
		if a.Name != SeedAxis {
			head = append(head, a.Name)
		}
	}
	labels = len(head)
	head = append(head, "runs")
	for _, c := range columns {
		head = append(head, c.info().Heading)
	}
	lines = [][]string{head}
	for _, g := range t.groups() {
		var line []string
		for _, at := range g.at {
			line = append(line, at.Label)
		}
		line = append(line, runs(g))
		for _, c := range columns {
			line = append(line, g.text(c))
		}
		lines = append(lines, line)
	}
	return lines, labels
}

// columns are the columns with a value in some row.
func (t *Table) columns() (columns []Column) {
	for c := range numColumns {
		if slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Status == OK && !math.IsNaN(r.Values[c]) }) {
			columns = append(columns, c)
		}
	}
	return columns
}

// runs is how many runs gave the values, and of how many where some did not.
func runs(g *group) string {
	if len(g.rows) == g.all {
		return strconv.Itoa(g.all)
	}
	return fmt.Sprintf("%d of %d", len(g.rows), g.all)
}

// text is the median of a column with its interval.
func (g *group) text(c Column) string {
	values := g.values(c)
	if len(values) == 0 {
		return ""
	}
	low, high, _ := Interval(values)
	return c.Format(stats.Median(values), low, high)
}

// writeNotes explains the numbers, and lists missing cells.
func (t *Table) writeNotes(b *strings.Builder, groups []*group) {
	least, most := 0, 0
	for _, g := range groups {
		if n := len(g.rows); n > 0 {
			least, most = min(n, cmp.Or(least, n)), max(most, n)
		}
	}
	b.WriteString("\n")
	if most > 1 {
		fmt.Fprintf(b, "Medians over repetitions%s; in brackets %s.\n", t.seeds(), IntervalText(least, most))
	}
	for _, s := range []struct {
		title string
		of    func(*Row) string
	}{{"Joules", func(r *Row) string { return r.JoulesSource }}, {"Peak memory", func(r *Row) string { return r.MemorySource }}} {
		if sources := t.sources(s.of); len(sources) > 0 {
			fmt.Fprintf(b, "%s: %s.\n", s.title, tables.Markdown(strings.Join(sources, "; ")))
		}
	}
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Reason != "" {
			fmt.Fprintf(b, "- %s, %s: %s\n", tables.Markdown(r.Cell.Title()), r.Status, tables.Markdown(r.Reason))
		}
	}
}

// seeds says that rows of several seeds are taken together.
func (t *Table) seeds() string {
	if a := t.File.Axis(SeedAxis); a != nil && len(a.Values) > 1 {
		return " and seeds"
	}
	return ""
}

// IntervalText says what the intervals of between least and most values are.
func IntervalText(least, most int) string {
	const enough = 6 // values for an interval of confidence, see interval.go
	covers := func(n int) string {
		_, _, p := Interval(make([]float64, n))
		return fmt.Sprintf("%.3g %%", 100*p)
	}
	switch {
	case least >= enough:
		return "an interval that holds the median with a probability of at least 95 % (order statistics)"
	case least == most:
		return fmt.Sprintf("the least and the greatest of %d, which hold the median with a probability of %s; for 95 %% there are too few", least, covers(least))
	}
	return fmt.Sprintf("an interval that holds the median with a probability of at least %s (order statistics; 95 %% from %d values on)", covers(least), enough)
}

// sources lists what a column rests on, and of how many rows where it is not one for all.
func (t *Table) sources(of func(*Row) string) []string {
	var names []string
	count := map[string]int{}
	for i := range t.Rows {
		if s := of(&t.Rows[i]); s != "" {
			if count[s]++; count[s] == 1 {
				names = append(names, s)
			}
		}
	}
	if len(names) > 1 {
		for i, name := range names {
			names[i] = fmt.Sprintf("%s (%d runs)", name, count[name])
		}
	}
	return names
}
