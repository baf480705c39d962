package plots

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"slices"
	"time"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"dahl/platform"
	"dahl/plots/paper"
	"dahl/schedule"
)

// Memory draws the bytes live in each memory over the run. Each memory that held anything has a
// panel. The reserved bytes are a dashed line.
func Memory(w io.Writer, p paper.Page, r *Run) error {
	if err := r.check("memory"); err != nil {
		return err
	}
	panels := memoryPanels(r.within())
	if len(panels) == 0 {
		return fmt.Errorf("memory: the run has no occupancy over time: %w", ErrNoData)
	}
	summary := r.summary() // of all steps
	r = r.within()
	l, err := p.Layout(r.title()+": live bytes by memory", summary)
	if err != nil {
		return err
	}
	note, style := l.Note(memoryNote, l.Inner()), l.Face.Style(paper.LabelSize, paper.Ink, text.XLeft, text.YBottom)
	const left, captionLine = 66, 13
	captions, beside := make([][]string, len(panels)), note.Height()+paper.AxisBottom-paper.AxisBottomBar+paper.Margin
	for i, m := range panels {
		captions[i] = paper.Wrap(style, m.caption(), l.Wide-left-paper.Margin)
		beside += vg.Length(captionLine*len(captions[i])) + 11 + paper.AxisBottomBar
	}
	n := vg.Length(len(panels))
	all, err := l.Fill(beside, n*max(70, min(240, vg.Length(640*l.Share())/n, vg.Length(240*l.Share())), vg.Length(90*l.Share())), 40*n)
	if err != nil {
		return err
	}
	return l.Render(w, all+beside, func(page, c draw.Canvas) {
		end := max(r.Schedule.Makespan, 1)
		f := l.TimeFrame(c, left, end, "time")
		top := c.Max.Y + 8
		for i, m := range panels {
			f.Place(top-11-vg.Length(captionLine*len(captions[i])), all/n)
			m.draw(f, end, traceColour(i))
			for k, s := range slices.Backward(captions[i]) {
				c.FillText(style, vg.Point{X: f.Box.Min.X, Y: f.Box.Max.Y + 5 + vg.Length(captionLine*(len(captions[i])-1-k))}, s)
			}
			f.DrawX(i == len(panels)-1)
			top = f.Box.Min.Y - paper.AxisBottomBar
		}
		note.Draw(page, vg.Point{X: page.Min.X + paper.Margin, Y: f.Box.Min.Y - paper.AxisBottom - 4}, text.XLeft)
	})
}

// memoryNote explains why the two numbers of a memory differ.
const memoryNote = "Live: what holds values that will still be read. Reserved: what the plan sets aside, with a place for every buffer of all graphs of the run, and workspace; buffers that are never live at once share places."

// panel is the occupancy of one memory.
type panel struct {
	memory         platform.Memory
	at             []time.Duration
	bytes          []int64
	peak, reserved int64
}

// memoryPanels splits the occupancy by memory and leaves out memories that stayed empty.
func memoryPanels(r *Run) []panel {
	all := make([]panel, len(r.Problem.Platform.Memories))
	events := slices.Clone(r.Schedule.Memory)
	slices.SortStableFunc(events, func(a, b schedule.Occupancy) int { return cmp.Compare(a.At, b.At) })
	for _, o := range events {
		p := &all[o.Memory]
		p.at, p.bytes = append(p.at, o.At), append(p.bytes, o.Bytes)
		p.peak = max(p.peak, o.Bytes)
	}
	var panels []panel
	for m := range all {
		all[m].memory = r.Problem.Platform.Memories[m]
		if m < len(r.ReservedBytes) {
			all[m].reserved = r.ReservedBytes[m]
		}
		if all[m].peak > 0 {
			panels = append(panels, all[m])
		}
	}
	return panels
}

// caption names the memory and its peaks.
func (p *panel) caption() string {
	s := fmt.Sprintf("%s: live peak %s", p.memory.Name, paper.FormatBytes(p.peak))
	if p.reserved > 0 {
		s += ", reserved " + paper.FormatBytes(p.reserved)
	}
	if p.memory.CapacityBytes > 0 {
		s += ", capacity " + paper.FormatBytes(p.memory.CapacityBytes)
	}
	return s
}

func (p *panel) draw(f *paper.Frame, end time.Duration, colour color.RGBA) {
	highest := float64(max(p.peak, p.reserved, p.limit()))
	f.Left = paper.LinearAxis(highest, 0.12, paper.ByteUnit(highest), "live", f.Ticks(5))
	f.DrawGrid()
	times, bytes := envelope(p.at, p.bytes, end, maxStairs)
	upper := f.Stairs(times, bytes)
	f.FillBetween(upper, []vg.Point{{X: upper[0].X, Y: f.Box.Min.Y}, {X: f.Box.Max.X, Y: f.Box.Min.Y}}, paper.Lighten(colour, 0.65))
	f.Canvas.StrokeLines(draw.LineStyle{Color: colour, Width: 1}, upper)
	if p.limit() > 0 {
		p.drawLevel(f, p.limit(), paper.Ink, "capacity", text.XLeft)
	}
	if p.reserved > 0 {
		p.drawLevel(f, p.reserved, reservedRed, "reserved", text.XRight, 5, 3)
	}
	f.DrawY(44)
}

// nearCapacity is the part of a memory's capacity from which on the capacity is drawn. A limit
// far above the curve would press the curve to the axis.
const nearCapacity = 0.4

// limit is the capacity if the run comes near it, else 0.
func (p *panel) limit() int64 {
	if float64(max(p.peak, p.reserved)) < nearCapacity*float64(p.memory.CapacityBytes) {
		return 0
	}
	return p.memory.CapacityBytes
}

// drawLevel draws a line at a number of bytes, with its name at one end.
func (p *panel) drawLevel(f *paper.Frame, bytes int64, colour color.RGBA, name string, end text.XAlignment, dashes ...vg.Length) {
	y := f.Y(float64(bytes))
	paper.Line(f.Canvas, colour, 1.2, vg.Point{X: f.Box.Min.X, Y: y}, vg.Point{X: f.Box.Max.X, Y: y}, dashes...)
	x := f.Box.Min.X + 4
	if end == text.XRight {
		x = f.Box.Max.X - 2
	}
	f.Canvas.FillText(f.Face.Style(8, colour, end, text.YBottom), vg.Point{X: x, Y: y + 3}, name)
}

// envelope turns occupancy events into values between moments. If there are more moments than most,
// each column shows its highest value, so that no peak vanishes.
func envelope(at []time.Duration, bytes []int64, end time.Duration, most int) (times []time.Duration, values []float64) {
	times = []time.Duration{0}
	for _, t := range at {
		if t > times[len(times)-1] && t < end {
			times = append(times, t)
		}
	}
	times = append(times, end)
	if len(times) > most {
		times = grid(end, most)
	}
	values = make([]float64, len(times)-1)
	i, current := 0, int64(0)
	for k := range values {
		for i < len(at) && at[i] <= times[k] { // the value when the interval begins
			current = bytes[i]
			i++
		}
		highest := current
		for i < len(at) && at[i] < times[k+1] {
			current = bytes[i]
			highest = max(highest, current)
			i++
		}
		values[k] = float64(highest)
	}
	return times, values
}
