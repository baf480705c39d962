package plots

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"dahl/dag"
	"dahl/naming"
	"dahl/platform"
	"dahl/plots/paper"
	"dahl/stats"
)

// kernelPair is one kernel (operation, type, shape, device) of tasks of one colour in both runs, or
// the copies of one size on one way between memories.
type kernelPair struct {
	kernelKey
	calls               int     // measured
	predicted, measured float64 // median nanoseconds
}

// kernelKey names calls, or copies, that should take equal times.
type kernelKey struct {
	op, shape string
	dtype     dag.DType
	device    platform.DeviceID // copyDevice: copies
	category  int
}

const copyDevice platform.DeviceID = -1

// pairKernels takes the median duration of each kernel and copy in both runs. It leaves out kernels that
// took no time, or are missing in one run. The order is by operation, shape, type, device and colour.
func pairKernels(predicted, measured *chart) []kernelPair {
	before, after := durationsByKernel(predicted), durationsByKernel(measured)
	var pairs []kernelPair
	for key, m := range after {
		p := before[key]
		if len(p) == 0 {
			continue
		}
		pair := kernelPair{key, len(m), float64(stats.Median(p)), float64(stats.Median(m))}
		if pair.predicted > 0 && pair.measured > 0 {
			pairs = append(pairs, pair)
		}
	}
	slices.SortFunc(pairs, func(a, b kernelPair) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.shape, b.shape), cmp.Compare(a.dtype, b.dtype), cmp.Compare(a.device, b.device), cmp.Compare(a.category, b.category))
	})
	return pairs
}

func durationsByKernel(c *chart) map[kernelKey][]time.Duration {
	r, by := c.run, map[kernelKey][]time.Duration{}
	for i := range r.Schedule.Spans {
		s := &r.Schedule.Spans[i]
		t := &r.Problem.Graph.Tasks[s.Task]
		key := kernelKey{cmp.Or(t.Op, t.Name), t.Shape, t.Type, r.Problem.Platform.Workers[s.Worker].Device, c.colours.ofTask[s.Task]}
		by[key] = append(by[key], s.End-s.Start)
	}
	memories := r.Problem.Platform.Memories
	for i := range r.Schedule.Transfers {
		t := &r.Schedule.Transfers[i]
		key := kernelKey{"copy " + memories[t.From].Name + " to " + memories[t.To].Name, paper.FormatBytes(t.Bytes), r.Problem.Graph.Buffers[t.Buffer].Type, copyDevice, c.colours.transfer()}
		by[key] = append(by[key], t.End-t.Start)
	}
	return by
}

// drawScatter paints the kernels over the diagonal of equal times, with lines 10 % above and below, in
// the colours of their tasks. It names those that are furthest off, by the time of all their calls.
func drawScatter(f *paper.Frame, kernels []kernelPair, fills []color.RGBA) {
	if len(kernels) == 0 {
		f.Canvas.FillText(f.Face.Style(10, paper.FaintInk, text.XLeft, text.YTop), vg.Point{X: f.Box.Min.X, Y: f.Box.Max.Y},
			"The two runs have no kernel in common.")
		return
	}
	lo, hi := math.Inf(1), 0.0
	for _, k := range kernels {
		lo, hi = min(lo, k.predicted, k.measured), max(hi, k.predicted, k.measured)
	}
	lo, hi = lo/1.3, hi*1.3
	u := paper.TimeUnit(time.Duration(math.Sqrt(lo * hi)))
	f.Lower, f.Left = paper.LogAxis(lo, hi, u, "predicted median"), paper.LogAxis(lo, hi, u, "measured median")
	f.DrawGrid()
	for _, ratio := range []float64{0.9, 1, 1.1} {
		from, to := max(lo, lo/ratio), min(hi, hi/ratio)
		a, b := vg.Point{X: f.X(from), Y: f.Y(from * ratio)}, vg.Point{X: f.X(to), Y: f.Y(to * ratio)}
		if ratio == 1 {
			paper.Line(f.Canvas, paper.FaintInk, 1, a, b)
		} else {
			paper.Line(f.Canvas, paper.FaintInk, 0.7, a, b, 4, 3)
		}
	}
	at := func(k *kernelPair) vg.Point { return vg.Point{X: f.X(k.predicted), Y: f.Y(k.measured)} }
	l := &labels{Frame: f, patch: true}
	for i := range kernels {
		l.leaveDot(at(&kernels[i]))
	}
	for _, k := range furthest(kernels) {
		l.put(k.op, at(&k))
	}
	for i := range kernels {
		k := &kernels[i]
		f.Canvas.DrawGlyph(draw.GlyphStyle{Color: paper.White, Radius: 3.8, Shape: draw.CircleGlyph{}}, at(k))
		f.Canvas.DrawGlyph(draw.GlyphStyle{Color: fills[k.category], Radius: 3, Shape: draw.CircleGlyph{}}, at(k))
	}
	f.DrawX(true)
	f.DrawY(44)
	what := "kernels"
	if slices.ContainsFunc(kernels, func(k kernelPair) bool { return k.device == copyDevice }) {
		what = "kernels and copies"
	}
	what += ": diagonal = exact, dashed = 10 % off"
	caption := paper.Shrunk(f.Face.Style(10.5, paper.Ink, text.XLeft, text.YBottom), what, f.Canvas.Max.X-f.Box.Min.X-paper.Margin)
	f.Canvas.FillText(caption, vg.Point{X: f.Box.Min.X, Y: f.Box.Max.Y + 8}, what)
}

// furthest lists the kernels whose calls together are furthest off, the furthest first.
func furthest(kernels []kernelPair) []kernelPair {
	const most = 6
	off := func(k kernelPair) float64 { return math.Abs(k.measured-k.predicted) * float64(k.calls) }
	sorted := slices.SortedStableFunc(slices.Values(kernels), func(a, b kernelPair) int { return cmp.Compare(off(b), off(a)) })
	return sorted[:min(most, len(sorted))]
}

// maxOps bounds the lines of the table of operations.
const maxOps = 17

// opTable is the table of operations. Every time in it is the time in one step: the sum of a run's
// spans over the number of its steps. The last line is the sum over all kernels, which is the busy
// time of the workers.
type opTable struct {
	*Compared
	steps int
	face  paper.Typeface
	width vg.Length
}

// title says what the numbers are.
func (t *opTable) title() string {
	return "in a step: all spans of " + naming.Count(t.steps, "step") + ", over the steps"
}

// cells is the text of one operation.
func (t *opTable) cells(o *Operation) []string {
	off := "-"
	if o.PredictedS > 0 && o.MeasuredS > 0 {
		off = fmt.Sprintf("%+.1f %%", 100*(o.PredictedS/o.MeasuredS-1))
	}
	time := func(s float64) string { return paper.FormatDuration(time.Duration(math.Round(s * 1e9))) }
	return []string{paper.Significant(o.Calls), time(o.PredictedS), time(o.MeasuredS), off}
}

// operations are the lines of the table.
func (t *opTable) operations() (list []Operation) {
	var further Operation
	for i := range t.Operations {
		o := &t.Operations[i]
		if i >= maxOps && len(t.Operations) > maxOps+1 {
			further.Add(o.Calls, o.PredictedS, o.MeasuredS)
			continue
		}
		list = append(list, *o)
	}
	if n := len(t.Operations) - maxOps; n > 1 {
		further.Name = naming.Count(n, "further operation")
		list = append(list, further)
	}
	return append(list, t.Kernels)
}

func (t *opTable) nameStyle() draw.TextStyle {
	return t.face.Style(9, paper.Ink, text.XLeft, text.YCenter)
}

// right is where a column of numbers ends.
func (t *opTable) right(column int) vg.Length {
	const columns = 4
	return min(t.width, leastTable) - vg.Length(vg.Length(columns-1-column)*max(48, min(90, t.width/6)))
}

// alone reports whether a name has a line of its own, since there is no room for it to the left of its numbers.
func (t *opTable) alone(name string) bool { return t.nameStyle().Width(name) > t.right(0)-28 }

// height is the height below the heading.
func (t *opTable) height() vg.Length {
	lines := 1
	for _, o := range t.operations() {
		if lines++; t.alone(o.Name) {
			lines++
		}
	}
	return vg.Length(lines * paper.LegendLine)
}

// draw lists operations, their calls, times and errors, from a point down and to the right.
func (t *opTable) draw(c draw.Canvas, at vg.Point) {
	head, title := t.face.Style(8.5, paper.FaintInk, text.XRight, text.YCenter), t.face.Style(10.5, paper.Ink, text.XLeft, text.YBottom)
	c.FillText(paper.Shrunk(title, t.title(), t.width), vg.Point{X: at.X, Y: at.Y + 8}, t.title())
	c.FillText(t.face.Style(8.5, paper.FaintInk, text.XLeft, text.YCenter), at, "operation")
	for i, name := range []string{"calls", "predicted", "measured", "error"} {
		c.FillText(head, vg.Point{X: at.X + t.right(i), Y: at.Y}, name)
	}
	number := t.face.Style(9, paper.Ink, text.XRight, text.YCenter)
	for _, o := range t.operations() {
		at.Y -= paper.LegendLine
		c.FillText(t.nameStyle(), at, paper.Clip(t.nameStyle(), o.Name, t.width))
		if t.alone(o.Name) {
			at.Y -= paper.LegendLine
		}
		for i, s := range t.cells(&o) {
			c.FillText(number, vg.Point{X: at.X + t.right(i), Y: at.Y}, s)
		}
	}
}
