package words

import (
	"fmt"
	"io"
	"strings"

	"dahl/cmd/cli"
	"dahl/plan"
	"dahl/schedule/explain"
)

// AllKernels names the sum of all rows of kernels.
const AllKernels = "all kernels"

// maxShapeWidth is how much of the shape of a call is printed; --json has all of it.
const maxShapeWidth = 44

// maxCopyRows bounds the lines of copies that are printed; --json has all.
const maxCopyRows = 40

// maxNamedCopies bounds the copies that are named in one line; --json has all.
const maxNamedCopies = 3

// PrintKernels writes a line for each kernel. Times of a step are sums of spans, so that
// they add up to what the workers are busy.
func PrintKernels(w io.Writer, c *plan.Comparison) {
	op, shape, device, variant, model := len(AllKernels), len("shape"), len("device"), len("variant"), len("model")
	for i := range c.Kernels {
		k := &c.Kernels[i]
		op, shape, device = max(op, len(k.Op)), max(shape, min(len(k.Shape), maxShapeWidth)), max(device, len(k.Device))
		variant, model = max(variant, len(k.Variant)), max(model, len(k.Source))
	}
	line := func(format string, cells ...any) {
		fmt.Fprintf(w, "%-*s %-*s %-*s %-*s %-*s "+format+"\n", append([]any{op, cells[0], shape, cells[1], device, cells[2], variant, cells[3], model, cells[4]}, cells[5:]...)...)
	}
	fmt.Fprintln(w)
	line("%21s %19s %8s %17s", "", "", "", "", "", "in a step:", "", "", "one call:")
	line("%5s %11s %11s %9s %6s %11s %11s", "kernel", "shape", "device", "variant", "model", "calls", "predicted", "measured", "error", "share", "median", "p95")
	for _, k := range c.Kernels {
		line("%5.4g %11s %11s %+8.1f%% %5.1f%% %11s %11s", k.Op, cli.Cut(k.Shape, maxShapeWidth), k.Device, k.Variant, k.Source, k.Count,
			cli.ShowTime(k.Sum.Predicted), cli.ShowTime(k.Sum.Measured), k.Sum.ErrorPercent, 100*k.Share, cli.ShowTime(k.Median.Measured), cli.ShowTime(k.P95S))
	}
	line("%5s %11s %11s %+8.1f%%", AllKernels, "", "", "", "", "", cli.ShowTime(c.Busy.Predicted), cli.ShowTime(c.Busy.Measured), c.Busy.ErrorPercent)
}

// PrintMoved writes what moves as tables.
func PrintMoved(w io.Writer, c *plan.Comparison) {
	if len(c.Copies) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-32s %-16s %-9s %9s %7s %11s %11s %11s %9s %6s\n", "copy of", "from to", "reason", "bytes", "n", "predicted", "median", "p95", "error", "share")
	for i, k := range c.Copies {
		if i == maxCopyRows {
			fmt.Fprintf(w, "and %d more\n", len(c.Copies)-i)
			break
		}
		predicted, off := "-", "-"
		if k.Median.Predicted > 0 {
			predicted, off = cli.ShowTime(k.Median.Predicted), fmt.Sprintf("%+.1f%%", k.Median.ErrorPercent)
		}
		fmt.Fprintf(w, "%-32s %-16s %-9s %9s %7.3g %11s %11s %11s %9s %5.1f%%\n", k.Buffer, k.From+" "+k.To, k.Reason, cli.ShortBytes(k.Bytes), k.Count,
			predicted, cli.ShowTime(k.Median.Measured), cli.ShowTime(k.P95S), off, 100*k.Share)
	}
	for _, way := range c.Ways {
		fmt.Fprintf(w, "%s to %s per step: predicted %.4g copies of %s, measured %.4g of %s\n", way.From, way.To,
			way.Count.Predicted, cli.ShortBytes(int64(way.Bytes.Predicted)), way.Count.Measured, cli.ShortBytes(int64(way.Bytes.Measured)))
	}
}

// PrintWaits writes two lines. Where nothing moves or changes there is little to say.
func PrintWaits(out io.Writer, w *plan.Waits) {
	of := func(cause explain.IdleCause) string { return cli.ShowTime(w.PerStepS[cause.String()]) }
	changes, asleep, inChanges := "", "", ""
	if w.PerStepS[explain.WaitChange.String()] > 0 {
		changes = fmt.Sprintf(", %s for a change of state", of(explain.WaitChange))
	}
	if w.AsleepS > 0 {
		asleep = fmt.Sprintf("; %s of it asleep", cli.ShowTime(w.AsleepS))
	}
	if w.Path.ChangeS > 0 {
		inChanges = fmt.Sprintf(", %s in changes of state", cli.ShowTime(w.Path.ChangeS))
	}
	fmt.Fprintf(out, "waits     per step of all workers: %s for a predecessor, %s for a transfer%s, %s for dispatch, %s without work%s%s\n",
		of(explain.WaitPredecessor), of(explain.WaitTransfer), changes, of(explain.WaitDispatch), of(explain.NoWork), asleep, namedCopies("; ", "for", w.Transfers))
	fmt.Fprintf(out, "path      per step %s in tasks, %s in copies%s, %s between them%s\n",
		cli.ShowTime(w.Path.TasksS), cli.ShowTime(w.Path.CopiesS), inChanges, cli.ShowTime(w.Path.WaitS), namedCopies("; ", "in", w.Path.Copies))
}

// namedCopies writes the longest: "; 0.4 ms for w@gpu from ram".
func namedCopies(before, what string, all []plan.TransferTime) string {
	var parts []string
	for i, t := range all {
		if i == maxNamedCopies {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s %s from %s", cli.ShowTime(t.StepS), what, t.Buffer, t.From))
	}
	if parts == nil {
		return ""
	}
	return before + strings.Join(parts, ", ")
}
