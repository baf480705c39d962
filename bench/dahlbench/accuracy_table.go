package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/execute"
	"dahl/plan"
	"dahl/rundir/durable"
)

const accuracyHead = "| network | batch | workers | lowering | predicted step, us | measured step, us | error | repeat spread | busiest error | of which kernels | scheduling | load |\n" +
	"| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"

const kernelsHead = "| network | batch | workers | lowering | operation | shape | variant | predicted | measured median | p95 | error | share |\n" +
	"| --- | ---: | ---: | --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |\n"

// minKernelShare is the part of the busy time from which a kernel gets a line of its own.
const minKernelShare = 0.02

// key begins the line of a case.
func (c *accuracyCase) key() string {
	return fmt.Sprintf("| %s | %d | %d | %s |", c.model, c.batch, c.workers, c.lowering)
}

// format is the row as a line of the table.
func (r *accuracyRow) format() string {
	return fmt.Sprintf("%s %.1f | %.1f | %+.1f %% | %.1f %% | %.1f %% | %+.1f %% | %+.1f %% | %.2f |", r.key(), float64(r.predicted)/1e3, float64(r.measured)/1e3,
		plan.ErrorPercent(float64(r.predicted), float64(r.measured)), 100*r.spread, 100*r.busy, r.KernelErrorPercent, r.SchedulingErrorPercent, r.load)
}

// formatKernels are the lines of the kernels that matter in a row.
func (r *accuracyRow) formatKernels() []string {
	var lines []string
	for _, k := range r.Kernels {
		if k.Share >= minKernelShare {
			lines = append(lines, fmt.Sprintf("%s %s | %s | %s | %s | %s | %s | %+.1f %% | %.0f %% |", r.key(), k.Op, k.Shape, k.Variant,
				cli.ShowTime(k.Median.Predicted), cli.ShowTime(k.Median.Measured), cli.ShowTime(k.P95S), k.Median.ErrorPercent, 100*k.Share))
		}
	}
	return lines
}

// accuracyTable is the file of --out: its rows are its state, so that a run can go on
// where another ended.
type accuracyTable struct {
	path    string // empty: kept in memory only
	header  string // machine and build
	rows    []string
	kernels []string
}

// openTable reads the file, if it is there and is of this machine and build.
func (a *accuracyOptions) openTable() (*accuracyTable, error) {
	p, err := execute.Detect()
	if err != nil {
		return nil, err
	}
	t := &accuracyTable{path: a.out, header: fmt.Sprintf("%s, %d cores; dahl %s; %s; %v of calibration and %d pairs of runs per row.",
		p.Name, len(p.Workers), cli.Version(), a.dtype, a.perRow, a.repeats)}
	if a.out == "" || a.force {
		return t, nil
	}
	text, err := os.ReadFile(a.out)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, cli.AsInput(err)
	}
	if !strings.Contains(string(text), t.header+"\n") {
		return nil, cli.InputErrorf("%s is not a table of this machine, build and options; choose another file, or --force to write it anew", a.out)
	}
	t.rows, t.kernels = linesOf(string(text), accuracyHead), linesOf(string(text), kernelsHead)
	return t, nil
}

// linesOf are the lines of the table with a head.
func linesOf(text, head string) (lines []string) {
	_, text, _ = strings.Cut(text, head)
	text, _, _ = strings.Cut(text, "\n## ")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| ") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// row finds the line of a case; "": there is none.
func (t *accuracyTable) row(c *accuracyCase) string {
	if i := slices.IndexFunc(t.rows, func(r string) bool { return strings.HasPrefix(r, c.key()) }); i >= 0 {
		return t.rows[i]
	}
	return ""
}

// add appends a row and writes the file. Kernels of an earlier row of the same case,
// which someone has deleted, give way.
func (t *accuracyTable) add(r *accuracyRow) error {
	t.kernels = slices.DeleteFunc(t.kernels, func(line string) bool { return strings.HasPrefix(line, r.key()) })
	t.rows, t.kernels = append(t.rows, r.format()), append(t.kernels, r.formatKernels()...)
	if t.path == "" {
		return nil
	}
	return durable.Write(t.path, func(w io.Writer) error {
		_, err := io.WriteString(w, t.text())
		return err
	})
}

func (t *accuracyTable) text() string {
	return fmt.Sprintf("# Predicted against measured step time\n\n%s\n\n%s%s\n%s\n## Kernels with at least %.0f %% of the busy time\n\n%s%s\n",
		t.header, accuracyHead, strings.Join(t.rows, "\n"), t.summary(), 100*minKernelShare, kernelsHead, strings.Join(t.kernels, "\n"))
}

// orderingMargin is by how much two measured times of a network must differ for their
// order to count.
const orderingMargin = 1.1

// summary says how far the predictions are off, from the printed rows.
func (t *accuracyTable) summary() string {
	type row struct {
		network             string
		predicted, measured float64
	}
	var rows []row
	var errs, spreads []float64
	worstBusy, within := 0.0, 0
	for _, line := range t.rows {
		var c row
		var batch, workers int
		var lowering string
		var e, spread, busy float64
		c.network, line, _ = strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		_, err := fmt.Sscanf(line, "%d | %d | %s | %f | %f | %f %% | %f %% | %f %% |", &batch, &workers, &lowering, &c.predicted, &c.measured, &e, &spread, &busy)
		if err != nil || c.measured <= 0 {
			continue
		}
		rows = append(rows, c)
		e = 100 * math.Abs(c.predicted/c.measured-1) // less rounded
		errs, spreads = append(errs, e), append(spreads, spread)
		worstBusy = max(worstBusy, busy)
		if e <= max(3, spread) {
			within++
		}
	}
	if len(rows) == 0 {
		return ""
	}
	slices.Sort(errs)
	slices.Sort(spreads)
	pairs, right := 0, 0
	for i, a := range rows {
		for _, b := range rows[:i] {
			if a.network != b.network || max(a.measured, b.measured) < orderingMargin*min(a.measured, b.measured) {
				continue
			}
			pairs++
			if (a.predicted < b.predicted) == (a.measured < b.measured) {
				right++
			}
		}
	}
	text := fmt.Sprintf("\nOver %d rows: median error %.1f %%, 90th percentile %.1f %%, largest %.1f %%; median spread of repeated runs %.1f %%; %d rows within 3 %% or their spread; largest error of a worker's busy time %.1f %%.\n",
		len(rows), plan.Quantile(errs, 0.5), plan.Quantile(errs, 0.9), errs[len(errs)-1], plan.Quantile(spreads, 0.5), within, worstBusy)
	if pairs > 0 {
		text += fmt.Sprintf("Of %d pairs of one network whose measured steps differ by more than 10 %%, %d (%.1f %%) are ordered right.\n", pairs, right, 100*float64(right)/float64(pairs))
	}
	return text
}
