package plots

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"slices"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"dahl/energy"
	"dahl/naming"
	"dahl/platform"
	"dahl/plots/paper"
)

// Power draws the power of the consumers, stacked, over the run, and their energy below it. If
// power changes more often than a picture can show, each column shows its mean, which keeps the
// energy. Caps are dashed lines: the platform's cap from zero, and a device's cap from the lower
// edge of its layer.
func Power(w io.Writer, p paper.Page, r *Run) error {
	if err := r.check("power"); err != nil {
		return err
	}
	if err := r.checkPower(); err != nil {
		return err
	}
	r = r.within()
	s := newStack(r.Power, r.Schedule.Makespan, powerColumns)
	if s.total() <= 0 {
		return fmt.Errorf("power: no power of the platform is above 0 W: %w", ErrNoData)
	}
	caps := s.caps(r.Problem.Platform)
	summary := fmt.Sprintf("%s in %s%s, %s on average", paper.SIUnit("J", s.total()).Format(s.total()),
		paper.FormatDuration(r.Schedule.Makespan), inBrackets(r.Part), paper.SIUnit("W", s.meanWatts()).Format(s.meanWatts()))
	summary += "; most by " + s.greatest()
	if len(s.times) == powerColumns+1 {
		summary += "; watts are means of " + paper.FormatDuration(s.times[1])
	}
	l, err := p.Layout(r.title()+": power and energy"+inBrackets(r.Grounds), summary)
	if err != nil {
		return err
	}
	legend := paper.NewLegend(l.Face, l.Inner(), paper.Group{Caption: "joules", Entries: s.legend()}, paper.Group{Caption: "caps", Entries: capLegend(caps)})
	const between = 26
	below := paper.AxisBottom + legend.Height + paper.Margin
	both, err := l.Fill(between+below, max(vg.Length(400*l.Share()), 240), 100)
	if err != nil {
		return err
	}
	upper := vg.Length(0.575 * both)
	return l.Render(w, both+between+below, func(page, c draw.Canvas) {
		f := l.TimeFrame(c, 66, s.end, "time")
		f.Place(c.Max.Y, upper)
		s.drawPower(f, caps)
		f.Place(f.Box.Min.Y-between, both-upper)
		s.drawEnergy(f)
		legend.Draw(page, paper.Margin, f.Box.Min.Y-paper.AxisBottom)
	})
}

// powerColumns bounds the steps of a power curve: each is then about two points wide, so that a short
// one is no hairline.
const powerColumns = 450

// checkPower refuses traces that are not step functions of time.
func (r *Run) checkPower() error {
	if len(r.Power) == 0 || r.Schedule.Makespan <= 0 {
		return fmt.Errorf("power: the run has no power over time: %w", ErrNoData)
	}
	for _, t := range r.Power {
		if !slices.IsSortedFunc(t.Samples, func(a, b energy.PowerSample) int { return cmp.Compare(a.At, b.At) }) {
			return fmt.Errorf("power: the steps of %q are not in the order of time", t.Name)
		}
		for _, s := range t.Samples {
			if !(s.Watts >= 0 && s.Watts < 1e12) {
				return fmt.Errorf("power: %q draws %g W at %v", t.Name, s.Watts, s.At)
			}
		}
	}
	return nil
}

// stack is several step functions over common times, each on top of those before it.
type stack struct {
	times []time.Duration
	end   time.Duration
	names []string
	watts [][]float64 // by layer and interval, summed from the first layer up
	sums  [][]float64 // joules from 0 to each of the times, summed likewise
}

// Consumers below a hundredth of the energy share one layer on top. So do consumers beyond the
// number of clearly different colours.
const (
	maxLayers  = 8
	smallShare = 0.01
)

func newStack(traces []energy.PowerTrace, end time.Duration, most int) *stack {
	s := &stack{end: end, times: mergedTimes(traces, end, most)}
	joules := make([][]float64, len(traces)) // by trace and interval
	totals := make([]float64, len(traces))
	all := 0.0
	for i, t := range traces {
		joules[i] = joulesBetween(t.Samples, s.times)
		for _, j := range joules[i] {
			totals[i] += j
		}
		all += totals[i]
	}
	ranked := slices.Clone(totals)
	slices.SortFunc(ranked, func(a, b float64) int { return cmp.Compare(b, a) })
	least := max(smallShare*all, ranked[min(maxLayers, len(ranked))-1])
	rest := make([]float64, len(s.times)-1)
	small := 0
	for i, t := range traces {
		switch {
		case totals[i] >= least && len(s.names) < maxLayers && totals[i] > 0:
			s.add(t.Name, joules[i])
		case totals[i] > 0:
			small++
			for k, j := range joules[i] {
				rest[k] += j
			}
		}
	}
	if small > 0 {
		s.add(naming.Count(small, "other"), rest)
	}
	return s
}

// add puts a layer on top.
func (s *stack) add(name string, joules []float64) {
	watts, sums := make([]float64, len(joules)), make([]float64, len(joules)+1)
	if n := len(s.names); n > 0 {
		copy(watts, s.watts[n-1])
		copy(sums, s.sums[n-1])
	}
	running := 0.0
	for k, j := range joules {
		watts[k] += j / (s.times[k+1] - s.times[k]).Seconds()
		running += j
		sums[k+1] += running
	}
	s.names, s.watts, s.sums = append(s.names, name), append(s.watts, watts), append(s.sums, sums)
}

// greatest is the layer with the most energy, and its share.
func (s *stack) greatest() string {
	best, most := 0, 0.0
	for i := range s.names {
		if own := s.own(i); own > most {
			best, most = i, own
		}
	}
	return fmt.Sprintf("%s, %s %%", s.names[best], paper.Significant(100*most/s.total()))
}

// own is the energy of a layer alone.
func (s *stack) own(i int) float64 {
	if i == 0 {
		return s.joules(0)
	}
	return s.joules(i) - s.joules(i-1)
}

func (s *stack) meanWatts() float64 { return s.total() / s.end.Seconds() }

func (s *stack) total() float64 {
	if len(s.sums) == 0 {
		return 0
	}
	return s.joules(len(s.sums) - 1)
}

// joules is the energy of the layers up to and including i.
func (s *stack) joules(i int) float64 { return s.sums[i][len(s.times)-1] }

// legend names the layers from the top of the stack down, with their energy.
func (s *stack) legend() []paper.Entry {
	var entries []paper.Entry
	for i, layer := range slices.Backward(s.names) {
		own := s.own(i)
		name := fmt.Sprintf("%s %s", layer, paper.SIUnit("J", own).Format(own))
		name += fmt.Sprintf(" (%s %%)", paper.Significant(100*own/s.total()))
		entries = append(entries, paper.Entry{Name: name, Colour: paper.Lighten(traceColour(i), 0.25)})
	}
	return entries
}

// powerCap is a cap over the run.
type powerCap struct {
	paper.Entry
	watts []float64 // by interval: where it lies in the stack; nil means too far above it to be drawn
}

// farCap is how many times the greatest power a cap may be and still be drawn.
const farCap = 2

// caps lists the caps of the platform and of devices with a layer of their own.
func (s *stack) caps(p *platform.Platform) (all []powerCap) {
	add := func(name string, watts float64, colour color.RGBA, below []float64) {
		c := powerCap{paper.Entry{Name: name + " " + paper.SIUnit("W", watts).Format(watts), Colour: colour, Stroke: true, Dashed: true}, make([]float64, len(s.times)-1)}
		for k := range c.watts {
			c.watts[k] = watts
			if below != nil {
				c.watts[k] += below[k]
			}
		}
		if slices.Max(c.watts) > farCap*s.peak() {
			c.Name, c.watts = c.Name+" (above the picture)", nil
		}
		all = append(all, c)
	}
	if p.CapWatts > 0 {
		add("of all", p.CapWatts, reservedRed, nil)
	}
	for i := range p.Devices {
		layer := slices.Index(s.names, p.Devices[i].Name)
		if p.Devices[i].CapWatts == 0 || layer < 0 {
			continue
		}
		var below []float64
		if layer > 0 {
			below = s.watts[layer-1]
		}
		add("of "+p.Devices[i].Name, p.Devices[i].CapWatts, paper.Darken(traceColour(layer)), below)
	}
	return all
}

func capLegend(caps []powerCap) (entries []paper.Entry) {
	for _, c := range caps {
		entries = append(entries, c.Entry)
	}
	return entries
}

// peak is the greatest power in the stack.
func (s *stack) peak() float64 { return slices.Max(s.watts[len(s.watts)-1]) }

func (s *stack) drawPower(f *paper.Frame, caps []powerCap) {
	peak := s.peak()
	for _, c := range caps {
		for _, watts := range c.watts {
			peak = max(peak, watts)
		}
	}
	f.Left = paper.LinearAxis(peak, 0.08, paper.SIUnit("W", peak), "power", f.Ticks(6))
	f.DrawGrid()
	lower := []vg.Point{f.Box.Min, {X: f.Box.Max.X, Y: f.Box.Min.Y}}
	for i, w := range s.watts {
		upper := f.Stairs(s.times, w)
		f.FillBetween(upper, lower, paper.Lighten(traceColour(i), 0.25))
		lower = upper
	}
	for _, c := range caps {
		if c.watts == nil {
			continue
		}
		f.Canvas.StrokeLines(draw.LineStyle{Color: c.Colour, Width: 1.2, Dashes: []vg.Length{5, 3}}, f.Stairs(s.times, c.watts))
	}
	f.DrawX(false)
	f.DrawY(44)
}

func (s *stack) drawEnergy(f *paper.Frame) {
	f.Left = paper.LinearAxis(s.total(), 0.08, paper.SIUnit("J", s.total()), "energy so far", f.Ticks(5))
	f.DrawGrid()
	lower := []vg.Point{f.Box.Min, {X: f.Box.Max.X, Y: f.Box.Min.Y}}
	for i, sums := range s.sums {
		upper := f.Polyline(s.times, sums)
		f.FillBetween(upper, lower, paper.Lighten(traceColour(i), 0.25))
		lower = upper
	}
	f.Canvas.StrokeLines(draw.LineStyle{Color: paper.Ink, Width: 1.2}, lower)
	f.DrawX(true)
	f.DrawY(44)
}

// traceColour repeats the palette where there are more traces than colours.
func traceColour(i int) color.RGBA { return palette[i%len(palette)] }
