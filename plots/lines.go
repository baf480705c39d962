package plots

import (
	"dahl/plots/paper"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// segment is a straight line in a picture.
type segment struct {
	from, to vg.Point
	colour   color.RGBA
	width    float64
	dashes   []vg.Length
}

func (s *segment) stroke(c draw.Canvas) {
	paper.Line(c, s.colour, s.width, s.from, s.to, s.dashes...)
}

// lines are the ends of the steps and the critical path between rows. They leave out the labels.
func (c *chart) lines(f *paper.Frame, labels []label) (all []segment) {
	for _, s := range slices.Concat(c.stepLines(f), c.hopLines(f)) {
		parts := []segment{s}
		for i := range labels {
			var rest []segment
			for _, part := range parts {
				rest = append(rest, part.without(labels[i].box())...)
			}
			parts = rest
		}
		all = append(all, parts...)
	}
	return all
}

// without returns the parts of a segment outside a box: none, one or two. The stretch inside is
// found by clipping against the four edges (Liang and Barsky, 1984).
func (s segment) without(box vg.Rectangle) []segment {
	enter, leave := vg.Length(0), vg.Length(1)
	step := vg.Point{X: s.to.X - s.from.X, Y: s.to.Y - s.from.Y}
	for _, edge := range []struct{ along, room vg.Length }{
		{-step.X, s.from.X - box.Min.X}, {step.X, box.Max.X - s.from.X},
		{-step.Y, s.from.Y - box.Min.Y}, {step.Y, box.Max.Y - s.from.Y},
	} {
		switch {
		case edge.along < 0:
			enter = max(enter, edge.room/edge.along)
		case edge.along > 0:
			leave = min(leave, edge.room/edge.along)
		case edge.room < 0:
			return []segment{s}
		}
	}
	if enter >= leave {
		return []segment{s}
	}
	at := func(share vg.Length) vg.Point {
		return vg.Point{X: s.from.X + vg.Length(share*step.X), Y: s.from.Y + vg.Length(share*step.Y)}
	}
	var parts []segment
	if enter > 0 {
		before := s
		before.to = at(enter)
		parts = append(parts, before)
	}
	if leave < 1 {
		after := s
		after.from = at(leave)
		parts = append(parts, after)
	}
	return parts
}

// stepEnd is the end of a step in a chart.
type stepEnd struct {
	name string
	x    vg.Length
}

// stepsShown are the steps of a schedule of several that end in the window.
func (c *chart) stepsShown(f *paper.Frame) (ends []stepEnd) {
	if len(c.stepEnds) < 2 {
		return nil
	}
	for k, end := range c.stepEnds {
		if end > c.shown.from && end <= c.shown.to {
			ends = append(ends, stepEnd{fmt.Sprintf("step %d", c.run.firstStep()+k), f.X(float64(end - c.shown.from))})
		}
	}
	return ends
}

// stepLines mark the end of the last task of each step, as far as there is room.
func (c *chart) stepLines(f *paper.Frame) (lines []segment) {
	last := f.Box.Min.X - 10
	for _, s := range c.stepsShown(f) {
		if s.x-last >= 4 {
			lines = append(lines, segment{vg.Point{X: s.x, Y: f.Box.Min.Y}, vg.Point{X: s.x, Y: f.Box.Max.Y + 2}, paper.FaintInk, 0.6, []vg.Length{2, 2}})
			last = s.x
		}
	}
	return lines
}

// nameSteps names as many steps as there is room for, above their ends.
func (c *chart) nameSteps(f *paper.Frame) {
	style := f.Face.Style(8, paper.FaintInk, text.XRight, text.YBottom)
	free := f.Box.Min.X
	for _, s := range c.stepsShown(f) {
		if s.x-style.Width(s.name) >= free {
			f.Canvas.FillText(style, vg.Point{X: s.x, Y: f.Box.Max.Y + 3}, s.name)
			free = s.x + 8
		}
	}
}

// hopLines are the lines of the critical path between rows. There are none if they would be too many.
func (c *chart) hopLines(f *paper.Frame) (lines []segment) {
	if len(c.hops) > maxHops {
		return nil
	}
	strip := func(row int) vg.Length { // the middle of the path within its row
		r := &c.rows[row]
		return f.Box.Max.Y - r.top - r.tall + vg.Length(r.tall*rowGap/2) + vg.Length(stripHeight(r.tall*(1-rowGap))/2)
	}
	for _, h := range c.hops {
		from, to := vg.Point{X: f.X(float64(h.from)), Y: strip(h.fromRow)}, vg.Point{X: f.X(float64(h.to)), Y: strip(h.toRow)}
		lines = append(lines, segment{from, to, paper.Black, 0.8, nil})
	}
	return lines
}
