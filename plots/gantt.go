package plots

import (
	"dahl/plots/paper"
	"image/color"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Gantt draws the work of each worker over time. Tasks are coloured by layer or phase, transfers
// have rows of their own, and idle time is tinted by its cause. The critical path of the schedule
// is a black line under its tasks. The ends of the steps are marked. Of several steps it shows the
// steps of r.Show.
func Gantt(w io.Writer, p paper.Page, r *Run) error {
	if err := r.check("gantt"); err != nil {
		return err
	}
	ch := newChart(r, newColouring(r))
	ch.crop()
	l, err := p.Layout(ch.title(), r.summary())
	if err != nil {
		return err
	}
	busy := newBusy(ch)
	legend := paper.NewLegend(l.Face, l.Inner(), ch.colours.legend(ch.used())...)
	below := busy.height() + paper.AxisBottom + legend.Height + paper.Margin
	talls, err := setHeights(l, 520, stepStrip+below, ch)
	if err != nil {
		return err
	}
	return l.Render(w, stepStrip+talls[0]+below, func(page, c draw.Canvas) {
		f := l.TimeFrame(c, paper.Margin+ch.labelWidth(l), ch.end, ch.shown.axis())
		f.Place(c.Max.Y-stepStrip, talls[0])
		ch.draw(f)
		busy.draw(f)
		f.DrawX(true)
		legend.Draw(page, paper.Margin, f.Box.Min.Y-paper.AxisBottom)
	})
}

// Sizes of a Gantt chart, in points.
const (
	stepStrip  = 12   // above the rows, for the names of the steps
	minBar     = 0.6  // no task is drawn narrower, among few
	rowGap     = 0.16 // share of a row left empty
	stripShare = 0.14 // share of the rest for the critical path, if that is
	minStrip   = 1.6  // no less than this many points
	maxHops    = 80   // beyond it, the path is drawn without the lines between rows
)

// maxMarks bounds the rectangles of one chart, and with them the size of a file.
const maxMarks = 24000

// draw paints the rows, as setHeights made them, into the frame's box, the first on top.
func (c *chart) draw(f *paper.Frame) {
	f.DrawXGrid()
	p := c.paintRows(f)
	p.paint()
	for _, l := range c.lines(f, p.labels) {
		l.stroke(f.Canvas)
	}
	p.write()
	c.nameSteps(f)
	c.drawLabels(f)
}

// paintRows collects what the rows show.
func (c *chart) paintRows(f *paper.Frame) *painter {
	shown := f.X(float64(c.end)) - f.Box.Min.X // the axis may go on beyond this schedule
	columns := int(2 * shown)                  // no picture shows more
	if c.pieces() > maxMarks {
		columns = min(columns, max(maxMarks/len(c.rows), 64))
	}
	p := &painter{chart: c, f: f, columns: max(columns, 1), rects: make([]vg.Path, c.colours.categories())}
	for i := range c.rows {
		r := &c.rows[i]
		top := f.Box.Max.Y - r.top
		p.paintRow(r, top-vg.Length(r.tall*(1-rowGap/2)), top-vg.Length(r.tall*rowGap/2))
	}
	return p
}

// pieces counts the pieces of all rows.
func (c *chart) pieces() (n int) {
	for i := range c.rows {
		n += piecesOf(c.rows[i].lanes)
	}
	return n
}

func piecesOf(lanes [][]piece) (n int) {
	for _, lane := range lanes {
		n += len(lane)
	}
	return n
}

// painter collects the rectangles of each category into one path, which keeps
// files small.
type painter struct {
	chart   *chart
	f       *paper.Frame
	columns int
	rects   []vg.Path // by category
	edges   vg.Path   // the outlines of bars wide enough to have one
	labels  []label
}

// label is the name of a piece.
type label struct {
	text  string
	style draw.TextStyle
	at    vg.Point
	fill  color.RGBA
	patch bool // behind the text
}

// paintRow paints one row between two heights: its pieces, below them the strip of the critical
// path, and over their upper edge the marks of tasks at another clock.
func (p *painter) paintRow(r *row, bottom, top vg.Length) {
	strip := stripHeight(top - bottom)
	p.paintLanes(r.lanes, bottom+strip, top, true)
	if len(r.path) > 0 {
		p.paintLanes([][]piece{r.path}, bottom, bottom+strip, false)
	}
	if len(r.clocks) > 0 {
		p.paintLanes(r.clocks, top-strip, top, false)
	}
}

// stripHeight is the height of the critical path in a row. In thin rows it takes a greater share.
func stripHeight(row vg.Length) vg.Length {
	return max(row*stripShare, min(minStrip, row*0.35))
}

// paintLanes paints each piece if they are few, and columns if they are many.
func (p *painter) paintLanes(lanes [][]piece, bottom, top vg.Length, outlined bool) {
	if 3*piecesOf(lanes) > p.columns || len(lanes) > 4 {
		for _, run := range diffuse(lanes, p.chart.end, p.columns, len(p.rects)) {
			from := p.f.X(float64(columnEdge(p.chart.end, run.First, p.columns)))
			to := p.f.X(float64(columnEdge(p.chart.end, run.End, p.columns)))
			addRect(&p.rects[run.Category], from, bottom, to, top)
		}
		return
	}
	tall := (top - bottom) / vg.Length(len(lanes))
	for l, lane := range lanes {
		high := top - vg.Length(vg.Length(l)*tall)
		for i := range lane {
			p.paintPiece(&lane[i], high-tall, high, outlined)
		}
	}
}

func (p *painter) paintPiece(q *piece, bottom, top vg.Length, outlined bool) {
	from, to := p.f.X(float64(q.from)), p.f.X(float64(q.to))
	idle := q.category > p.chart.colours.path()
	if !idle {
		to = max(to, from+minBar)
	}
	addRect(&p.rects[q.category], from, bottom, to, top)
	if outlined && !idle && to-from >= 2.5 {
		addRect(&p.edges, from, bottom, to, top)
	}
	size := min(8.5, (top-bottom).Points()*0.62)
	if q.text == "" || size < 5 || to-from < 12 {
		return
	}
	style := p.f.Face.Style(size, paper.OnColour(p.chart.colours.fills[q.category]), text.XCenter, text.YCenter)
	if name := fitText(&style, q, p.chart.colours, to-from-3); name != "" {
		p.labels = append(p.labels, label{name, style, vg.Point{X: (from + to) / 2, Y: (bottom + top) / 2},
			p.chart.colours.fills[q.category], p.chart.colours.hatch(q.category) != paper.Plain})
	}
}

// fitText makes the text of a piece fit a width: it shrinks a little, and then loses its tile and its phase. The text of a
// transfer or a state is whole or left out, since part of a number is another number.
func fitText(style *draw.TextStyle, q *piece, colours *colouring, width vg.Length) string {
	names := []string{q.text}
	if q.category < len(colours.names) {
		for _, end := range []string{"[", "."} {
			if short, _, cut := strings.Cut(q.text, end); cut && short != "" {
				names = append(names, short)
			}
		}
	}
	whole := *style
	for _, name := range names {
		*style = whole
		if style.Width(name) > width {
			style.Font.Size *= 0.82
		}
		if style.Width(name) <= width {
			return name
		}
	}
	return ""
}

// paint paints the collected shapes: fills of idle time, fills of tasks, then outlines and the marks
// of clocks.
func (p *painter) paint() {
	colours := p.chart.colours
	fill := func(category int) {
		if path := p.rects[category]; len(path) > 0 {
			paper.FillHatched(p.f.Canvas, path, colours.fills[category], colours.hatch(category))
		}
	}
	for category := range slices.Backward(p.rects) {
		if category != colours.clock() {
			fill(category)
		}
	}
	if len(p.edges) > 0 {
		p.f.Canvas.SetLineStyle(draw.LineStyle{Color: paper.White, Width: 0.5})
		p.f.Canvas.Stroke(p.edges)
	}
	fill(colours.clock())
}

// write puts the names of the pieces over everything. Over a hatch a name has a patch of its piece's
// colour.
func (p *painter) write() {
	for _, l := range p.labels {
		if l.patch {
			paper.FillRect(p.f.Canvas, l.box(), l.fill)
		}
		p.f.Canvas.FillText(l.style, l.at, l.text)
	}
}

// box is the rectangle under the label.
func (l *label) box() vg.Rectangle {
	half := vg.Point{X: l.style.Width(l.text)/2 + 1.5, Y: l.style.Font.Size / 2}
	return vg.Rectangle{Min: vg.Point{X: l.at.X - half.X, Y: l.at.Y - half.Y}, Max: vg.Point{X: l.at.X + half.X, Y: l.at.Y + half.Y}}
}

func addRect(path *vg.Path, left, bottom, right, top vg.Length) {
	path.Move(vg.Point{X: left, Y: bottom})
	path.Line(vg.Point{X: right, Y: bottom})
	path.Line(vg.Point{X: right, Y: top})
	path.Line(vg.Point{X: left, Y: top})
	path.Close()
}
