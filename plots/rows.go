package plots

import (
	"dahl/plots/paper"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// Heights of rows, in points. Where all rows at the same height would be too thin for their names, the
// units of a device with many share what the others leave: a GPU is not as thin as one of 72 cores.
const (
	minRowHeight   = 6
	leastRowHeight = 1.5 // on a narrow page, or one of a height of its own
	narrowChart    = 150 // of all rows on a narrow page
	maxRowHeight   = 32
	nameHeight     = 10 // of a row's name, with what is free below it
	aloneHeight    = 22 // of a device that is one unit, and of copies
	manyRowHeight  = 12 // of the same, where there are many of them
	headHeight     = 12 // of the name of a node above its rows
)

// setHeights gives the rows of charts their places on a page, given the height of all else there, and returns how tall the
// charts are. Where the page has a height of its own they fill it, else they are at best of a target.
func setHeights(l *paper.Layout, target, beside vg.Length, charts ...*chart) (talls []vg.Length, err error) {
	rows, heads := 0, vg.Length(0)
	for _, c := range charts {
		rows += len(c.rows)
		heads += c.headsHeight()
	}
	all, err := l.Fill(beside+heads, 0, vg.Length(leastRowHeight*vg.Length(rows)))
	if err != nil {
		return nil, err
	}
	for _, c := range charts {
		if all > 0 {
			talls = append(talls, c.setHeights(all*vg.Length(len(c.rows))/vg.Length(rows), leastRowHeight, all))
		} else {
			talls = append(talls, c.setHeights(max(target*l.Share(), narrowChart), max(leastRowHeight, minRowHeight*l.Share()), maxRowHeight))
		}
	}
	return talls, nil
}

// setHeights gives every row its place and returns the height of all, at best the target.
func (c *chart) setHeights(target, least, most vg.Length) vg.Length {
	alone, units := 0, 0
	for i := range c.rows {
		if c.rows[i].unit {
			units++
		} else {
			alone++
		}
	}
	single := min(target/vg.Length(len(c.rows)), most)
	unit := single
	if single < aloneHeight && alone > 0 {
		single = max(single, min(aloneHeight, max(manyRowHeight, target/2/vg.Length(alone))))
		unit = (target - single*vg.Length(alone)) / vg.Length(max(1, units))
	}
	unit = max(unit, least)
	top := vg.Length(0)
	for i := range c.rows {
		r := &c.rows[i]
		if r.head != "" {
			top += headHeight
		}
		r.top, r.tall = top, single
		if r.unit {
			r.tall = unit
		}
		top += r.tall
	}
	return top
}

// rowName is a row's name and where its middle is, below the upper edge of the chart.
type rowName struct {
	text string
	at   vg.Length
}

// rowNames are the names that fit: the names of all devices, and the names of further units where there is
// room.
func (c *chart) rowNames() (names []rowName) {
	middle := func(i int) vg.Length { // of the bars
		r := &c.rows[i]
		return r.top + vg.Length((0.5-stripShare*(1-rowGap)/2)*r.tall)
	}
	last, next := vg.Length(-nameHeight), 0
	for i := range c.rows {
		for next = max(next, i+1); next < len(c.rows) && c.rows[next].unit && !c.rows[next].opens; {
			next++
		}
		must := !c.rows[i].unit || c.rows[i].opens
		room := middle(i)-last >= nameHeight && (next == len(c.rows) || middle(next)-middle(i) >= nameHeight)
		if must || room {
			last = middle(i)
			names = append(names, rowName{c.rows[i].label, last})
		}
	}
	return names
}

// labelWidth is the width of the row names to the left of the axis.
func (c *chart) labelWidth(l *paper.Layout) vg.Length {
	style := l.Face.Style(paper.TickSize, paper.Ink, text.XRight, text.YCenter)
	widest := vg.Length(0)
	for i := range c.rows {
		widest = max(widest, style.Width(paper.Clip(style, c.rows[i].label, min(140, l.Wide/3))))
	}
	return vg.Length(widest*1.05) + 8 // SVG viewers without the font draw wider ones
}

// drawHeads writes the headings of nodes from the left edge of the page, each below a line.
func (c *chart) drawHeads(f *paper.Frame) {
	style := f.Face.Style(paper.TickSize, paper.Ink, text.XLeft, text.YCenter)
	left, right := f.Canvas.Min.X+paper.Margin, f.Box.Max.X
	for i := range c.rows {
		r := &c.rows[i]
		if r.head == "" {
			continue
		}
		top := f.Box.Max.Y - r.top + headHeight
		paper.FillRect(f.Canvas, vg.Rectangle{Min: vg.Point{X: left, Y: top - headHeight}, Max: vg.Point{X: right, Y: top}}, paper.White)
		paper.Line(f.Canvas, paper.FaintInk, 0.4, vg.Point{X: left, Y: top}, vg.Point{X: right, Y: top})
		f.Canvas.FillText(style, vg.Point{X: left, Y: top - headHeight/2}, paper.Clip(style, r.head, right-left))
	}
}

// drawLabels names the rows.
func (c *chart) drawLabels(f *paper.Frame) {
	style := f.Face.Style(paper.TickSize, paper.Ink, text.XRight, text.YCenter)
	for _, n := range c.rowNames() {
		f.Canvas.FillText(style, vg.Point{X: f.Box.Min.X - 6, Y: f.Box.Max.Y - n.at}, paper.Clip(style, n.text, f.Box.Min.X-6-f.Canvas.Min.X))
	}
	paper.Line(f.Canvas, paper.Ink, 0.6, f.Box.Min, vg.Point{X: f.Box.Min.X, Y: f.Box.Max.Y})
	c.drawHeads(f)
}
