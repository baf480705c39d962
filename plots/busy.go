package plots

import (
	"dahl/plots/paper"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// busy is how many workers run a task, over the time of a chart. A chart of few workers has none: its
// rows say as much.
type busy struct {
	times   []time.Duration
	workers []float64 // the mean between neighbouring times
	of      int
}

// Sizes of the panel, in points; its columns; and from how many workers on there is one.
const (
	busyTall    = 40
	busyCaption = 20
	busyColumns = 600
	busyWorkers = 8
)

// newBusy counts the workers of a chart; nil means that they are few, or there is no time.
func newBusy(c *chart) *busy {
	b := &busy{times: grid(c.end, busyColumns), workers: make([]float64, busyColumns), of: len(c.run.Problem.Platform.Workers)}
	if b.of < busyWorkers || c.end < busyColumns {
		return nil
	}
	for _, at := range slices.Compact(slices.Clone(c.rowOfWorker)) {
		if at < 0 {
			continue
		}
		for _, lane := range c.rows[at].lanes {
			for _, p := range lane {
				if p.category < len(c.colours.names) {
					b.add(p.from, p.to)
				}
			}
		}
	}
	return b
}

// add counts a worker between two times.
func (b *busy) add(from, to time.Duration) {
	k, exact := slices.BinarySearch(b.times, from)
	if !exact {
		k--
	}
	for ; k < len(b.workers) && b.times[k] < to; k++ {
		inside := min(to, b.times[k+1]) - max(from, b.times[k])
		b.workers[k] += float64(inside) / float64(b.times[k+1]-b.times[k])
	}
}

// mean is that over the time of the chart. Columns have equal lengths to the nanosecond.
func (b *busy) mean() (mean float64) {
	for _, w := range b.workers {
		mean += w / float64(len(b.workers))
	}
	return mean
}

// height is the height of the panel.
func (b *busy) height() vg.Length {
	if b == nil {
		return 0
	}
	return busyCaption + busyTall
}

// draw paints the panel below a frame, and moves the frame there.
func (b *busy) draw(f *paper.Frame) {
	if b == nil {
		return
	}
	f.Place(f.Box.Min.Y-busyCaption, busyTall)
	f.Left = paper.LinearAxis(float64(b.of), 0, paper.Unit{Size: 1}, "", 2)
	f.DrawGrid()
	upper := f.Stairs(b.times, b.workers)
	f.FillBetween(upper, []vg.Point{f.Box.Min, {X: f.X(float64(b.times[busyColumns])), Y: f.Box.Min.Y}}, paper.Lighten(paper.FaintInk, 0.45))
	caption := fmt.Sprintf("busy workers: %s of %d on average", paper.Significant(b.mean()), b.of)
	f.Canvas.FillText(f.Face.Style(8, paper.FaintInk, text.XLeft, text.YBottom), vg.Point{X: f.Box.Min.X, Y: f.Box.Max.Y + 4}, caption)
	style := f.Face.Style(paper.TickSize, paper.Ink, text.XRight, text.YCenter)
	for _, t := range f.Left.Ticks {
		f.Canvas.FillText(style, vg.Point{X: f.Box.Min.X - 6, Y: f.Y(t.Value)}, t.Label)
	}
	paper.Line(f.Canvas, paper.Ink, 0.6, f.Box.Min, vg.Point{X: f.Box.Min.X, Y: f.Box.Max.Y})
}
