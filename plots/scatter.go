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
	"dahl/platform"
)

// kernelPair is one kernel (operation, type, shape, device) in both runs, or the copies
// of one size on one way between memories.
type kernelPair struct {
	kernelKey
	calls               int     // measured
	predicted, measured float64 // median nanoseconds
}

// kernelKey names calls, or copies, that should take equally long.
type kernelKey struct {
	op, shape string
	dtype     dag.DType
	device    platform.DeviceID // copyDevice: copies
}

const copyDevice platform.DeviceID = -1

// pairKernels takes the median duration of each kernel and copy in both runs and leaves
// out those that either lacks or that took no time. The order is by operation,
// shape, type and device.
func pairKernels(predicted, measured *Run) []kernelPair {
	before, after := durationsByKernel(predicted), durationsByKernel(measured)
	var pairs []kernelPair
	for key, m := range after {
		p := before[key]
		if len(p) == 0 {
			continue
		}
		pair := kernelPair{key, len(m), median(p), median(m)}
		if pair.predicted > 0 && pair.measured > 0 {
			pairs = append(pairs, pair)
		}
	}
	slices.SortFunc(pairs, func(a, b kernelPair) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.shape, b.shape), cmp.Compare(a.dtype, b.dtype), cmp.Compare(a.device, b.device))
	})
	return pairs
}

func durationsByKernel(r *Run) map[kernelKey][]time.Duration {
	by := map[kernelKey][]time.Duration{}
	for i := range r.Schedule.Spans {
		s := &r.Schedule.Spans[i]
		t := &r.Problem.Graph.Tasks[s.Task]
		key := kernelKey{cmp.Or(t.Op, t.Name), t.Shape, t.Type, r.Problem.Platform.Workers[s.Worker].Device}
		by[key] = append(by[key], s.End-s.Start)
	}
	memories := r.Problem.Platform.Memories
	for i := range r.Schedule.Transfers {
		t := &r.Schedule.Transfers[i]
		key := kernelKey{"copy " + memories[t.From].Name + " to " + memories[t.To].Name, formatBytes(t.Bytes), r.Problem.Graph.Buffers[t.Buffer].Type, copyDevice}
		by[key] = append(by[key], t.End-t.Start)
	}
	return by
}

// median sorts its argument.
func median(d []time.Duration) float64 {
	slices.Sort(d)
	return (float64(d[(len(d)-1)/2]) + float64(d[len(d)/2])) / 2
}

// drawScatter paints the kernels over the diagonal of equal times and the lines
// of 10 % above and below, and to the right the operations with their errors.
func drawScatter(f *frame, kernels []kernelPair) {
	if len(kernels) == 0 {
		f.c.FillText(f.face.style(10, faintInk, text.XLeft, text.YTop), vg.Point{X: f.box.Min.X, Y: f.box.Max.Y},
			"The two runs have no kernel in common.")
		return
	}
	lo, hi := math.Inf(1), 0.0
	for _, k := range kernels {
		lo, hi = min(lo, k.predicted, k.measured), max(hi, k.predicted, k.measured)
	}
	lo, hi = lo/1.3, hi*1.3
	u := timeUnit(time.Duration(math.Sqrt(lo * hi)))
	f.x, f.y = logAxis(lo, hi, u, "predicted median"), logAxis(lo, hi, u, "measured median")
	f.drawGrid()
	for _, ratio := range []float64{0.9, 1, 1.1} {
		from, to := max(lo, lo/ratio), min(hi, hi/ratio)
		a, b := vg.Point{X: f.X(from), Y: f.Y(from * ratio)}, vg.Point{X: f.X(to), Y: f.Y(to * ratio)}
		if ratio == 1 {
			line(f.c, faintInk, 1, a, b)
		} else {
			line(f.c, faintInk, 0.7, a, b, 4, 3)
		}
	}
	ops, colours := opsByTime(kernels)
	for _, k := range kernels {
		dot := draw.GlyphStyle{Color: colours[k.op], Radius: 3, Shape: draw.CircleGlyph{}}
		at := vg.Point{X: f.X(k.predicted), Y: f.Y(k.measured)}
		f.c.DrawGlyph(draw.GlyphStyle{Color: white, Radius: 3.8, Shape: draw.CircleGlyph{}}, at)
		f.c.DrawGlyph(dot, at)
	}
	f.drawX(true)
	f.drawY(44)
	what := "kernels"
	if slices.ContainsFunc(kernels, func(k kernelPair) bool { return k.device == copyDevice }) {
		what = "kernels and copies"
	}
	f.c.FillText(f.face.style(10.5, ink, text.XLeft, text.YBottom), vg.Point{X: f.box.Min.X, Y: f.box.Max.Y + 8},
		what+": diagonal = exact, dashed = 10 % off")
	drawOpTable(f, ops, colours)
}

// opError is how far off the kernels of one operation are, weighted by calls.
type opError struct {
	op                  string
	calls               int
	predicted, measured float64 // nanoseconds of all measured calls, at the medians
}

// maxOps bounds the lines of the table of operations.
const maxOps = 18

// opsByTime sums the kernels by operation, the longest first, and colours them.
func opsByTime(kernels []kernelPair) ([]opError, map[string]color.RGBA) {
	var ops []opError
	for _, k := range kernels { // kernels are ordered by operation
		if len(ops) == 0 || ops[len(ops)-1].op != k.op {
			ops = append(ops, opError{op: k.op})
		}
		o := &ops[len(ops)-1]
		o.calls += k.calls
		o.predicted += float64(k.predicted * float64(k.calls))
		o.measured += float64(k.measured * float64(k.calls))
	}
	slices.SortStableFunc(ops, func(a, b opError) int { return cmp.Compare(b.measured, a.measured) })
	colours := map[string]color.RGBA{}
	for i, o := range ops {
		colours[o.op] = otherGrey
		if i < len(palette) {
			colours[o.op] = palette[i]
		}
	}
	return ops, colours
}

// drawOpTable lists operations, their calls, times and error beside the scatter.
func drawOpTable(f *frame, ops []opError, colours map[string]color.RGBA) {
	left, top := f.box.Max.X+44, f.box.Max.Y
	right := []vg.Length{left + 230, left + 320, left + 410, left + 480}
	head := f.face.style(8.5, faintInk, text.XRight, text.YCenter)
	f.c.FillText(f.face.style(8.5, faintInk, text.XLeft, text.YCenter), vg.Point{X: left + 14, Y: top}, "operation")
	for i, name := range []string{"calls", "predicted", "measured", "error"} {
		f.c.FillText(head, vg.Point{X: right[i], Y: top}, name)
	}
	name, number := f.face.style(9, ink, text.XLeft, text.YCenter), f.face.style(9, ink, text.XRight, text.YCenter)
	for i, o := range ops {
		y := top - vg.Length(vg.Length(i+1)*legendLine)
		if i == maxOps && len(ops) > maxOps+1 {
			f.c.FillText(name, vg.Point{X: left + 14, Y: y}, plural(len(ops)-i, "further operation"))
			return
		}
		f.c.DrawGlyph(draw.GlyphStyle{Color: colours[o.op], Radius: 3.5, Shape: draw.CircleGlyph{}}, vg.Point{X: left + 4, Y: y - 1})
		f.c.FillText(name, vg.Point{X: left + 14, Y: y}, clip(name, o.op, 170))
		for c, s := range []string{fmt.Sprint(o.calls), formatDuration(time.Duration(o.predicted)), formatDuration(time.Duration(o.measured)),
			fmt.Sprintf("%+.1f %%", 100*(o.predicted/o.measured-1))} {
			f.c.FillText(number, vg.Point{X: right[c], Y: y}, s)
		}
	}
}
