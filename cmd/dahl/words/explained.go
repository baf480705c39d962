package words

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/energy"
	"dahl/plan/best"
	"dahl/plan/problem"
	"dahl/plan/tiling"
	"dahl/platform"
)

// Explained prints what a search chose and why, in words.
type Explained struct {
	*best.Explanation
	Objective problem.Objective
	Covered   best.Covered
	Machine   *platform.Platform
	Out       io.Writer
	More      string // the file with everything that is not printed
}

// lineColumns is how wide a line of words may be.
const lineColumns = 100

// PrintClauses prints clauses under a label, in as many lines as they need.
func PrintClauses(out io.Writer, label string, clauses ...string) {
	line := fmt.Sprintf("%-9s", label)
	for word := range strings.FieldsSeq(strings.Join(slices.DeleteFunc(clauses, func(c string) bool { return c == "" }), "; ")) {
		if len([]rune(line))+1+len([]rune(word)) > lineColumns {
			fmt.Fprintln(out, line)
			line = strings.Repeat(" ", 9)
		}
		line += " " + word
	}
	fmt.Fprintln(out, line)
}

func (e *Explained) printClauses(label string, clauses ...string) {
	PrintClauses(e.Out, label, clauses...)
}

// PrintChosen says what the plan is.
func (e *Explained) PrintChosen() {
	c := &e.Chosen
	e.printClauses("chosen", Choice(c.Devices, c.Tiles, c.Strategy)+", planned by "+policyText(c.Policy))
	var clauses, none []string
	active := 0
	for _, u := range c.Use {
		if u.Tasks > 0 {
			clauses = append(clauses, useText(&u))
			active++
		} else if !u.Placed {
			none = append(none, u.Device)
		}
	}
	if len(none) > 0 {
		clauses = append(clauses, "no task on "+strings.Join(none, ", "))
	}
	e.printClauses("", clauses...)
	if active > 1 && len(c.Layers) > 0 {
		e.printClauses("", "layers: "+layersText(c.Layers))
	}
}

// Print says why, what else there was, and how sure it is.
func (e *Explained) Print() {
	e.printClauses("why", e.whyText()...)
	if n := e.Next; n != nil {
		e.printClauses("next", Choice(n.Devices, n.Tiles, n.Strategy)+": "+e.figuresText(n), e.nextWhyText())
	}
	e.printOptions("spare", e.Spare, func(o *best.Option) string { return e.changeText("more of", o.Of, "with", o.Devices) })
	e.printOptions("leave out", e.Without, func(o *best.Option) string { return e.changeText("less of", o.Of, "without", e.Chosen.Devices) })
	e.printClauses("spread", e.spreadText())
}

// printOptions prints the best of some options.
func (e *Explained) printOptions(label string, options []best.Option, of func(*best.Option) string) {
	const most = 3
	sorted := slices.Clone(options)
	order := func(o *best.Option) (known int, least float64) {
		if o.Figures != nil {
			return 0, o.Figures.Relative
		}
		return 1, o.AtLeast
	}
	slices.SortStableFunc(sorted, func(a, b best.Option) int {
		knownA, leastA := order(&a)
		knownB, leastB := order(&b)
		return cmp.Or(knownA-knownB, cmp.Compare(leastA, leastB))
	})
	for i := range sorted {
		if i == most {
			e.printClauses("", fmt.Sprintf("%d more in %s", len(sorted)-most, e.More))
			return
		}
		e.printClauses(label, of(&sorted[i])+e.optionText(&sorted[i]))
		label = ""
	}
}

// changeText says which devices change: those that a list has as a whole, or units of them.
func (e *Explained) changeText(units, of, whole, list string) string {
	if slices.Contains(strings.Split(list, ","), of) {
		units = whole
	}
	return units + " " + e.Machine.ListName(of) + ": "
}

// Choice names devices and tiles, or a strategy.
func Choice(devices string, tiles tiling.Tiling, strategy string) string {
	switch {
	case strategy != "":
		return devices + " with strategy " + strategy
	case tiles == (tiling.Tiling{}):
		return devices
	}
	return devices + " with tiles " + tiles.String()
}

// useText says what a device does.
func useText(u *best.Use) string {
	text := fmt.Sprintf("%s: %d of the tasks", u.Device, u.Tasks)
	switch {
	case u.Placed:
		text += " that only it can run"
	case u.Units > 1:
		text += fmt.Sprintf(" on %d of the %d units chosen", u.Used, u.Units)
	}
	text += fmt.Sprintf(", busy %s", percent(u.Busy))
	var clocks []string
	for _, c := range u.Clocks {
		clocks = append(clocks, fmt.Sprintf("%d at %s", c.Tasks, c.Clock))
	}
	if len(clocks) > 0 {
		text += ", clocks " + strings.Join(clocks, " and ")
	}
	for _, s := range u.Sleeps {
		text += fmt.Sprintf(", asleep %s in %s", percent(s.Time), s.State)
		if s.Tasks > 0 {
			text += fmt.Sprintf(" (at once after %d of the tasks)", s.Tasks)
		}
	}
	return text + variantsText(u.Variants)
}

// variantsText says which operations run by another variant than the fastest.
func variantsText(all []best.Variant) string {
	var sums []best.Variant // of all calls of an operation
	for _, v := range all {
		at := slices.IndexFunc(sums, func(s best.Variant) bool { return s.Op == v.Op && s.Variant == v.Variant && s.Fastest == v.Fastest })
		if at < 0 {
			sums = append(sums, v)
		} else {
			sums[at].Tasks += v.Tasks
		}
	}
	text := ""
	for _, v := range sums {
		text += fmt.Sprintf(", %d %s by %s (%s is the fastest by itself)", v.Tasks, cmp.Or(v.Op, "calls"), v.Variant, v.Fastest)
	}
	return text
}

// layersText says where layers run; those that follow each other at one place are one.
func layersText(layers []best.Layer) string {
	const most = 8
	var parts []string
	for i := 0; i < len(layers); {
		where, last := sharesText(layers[i].Devices), i
		for last+1 < len(layers) && sharesText(layers[last+1].Devices) == where {
			last++
		}
		if len(parts) == most {
			return strings.Join(append(parts, "…"), "; ")
		}
		name := layers[i].Layer
		if last > i {
			name += " to " + layers[last].Layer
		}
		parts = append(parts, name+" on "+where)
		i = last + 1
	}
	return strings.Join(parts, "; ")
}

// sharesText names devices by their shares of the time, the largest first.
func sharesText(shares []best.Share) string {
	sorted := slices.DeleteFunc(slices.Clone(shares), func(s best.Share) bool { return s.Time < 0.005 && s.Tasks < 0.5 })
	slices.SortStableFunc(sorted, func(a, b best.Share) int { return cmp.Compare(b.Time, a.Time) })
	if len(sorted) == 1 {
		return sorted[0].Device
	}
	return strings.Join(cli.Texts(sorted, func(s best.Share) string { return fmt.Sprintf("%s %s", s.Device, percent(s.Time)) }), ", ")
}

// part is a part of the joules of a step, in words.
type part struct {
	name   string
	joules float64
}

// parts of a step, none where the watts are not known.
func parts(w *best.Why) []part {
	if w.Basis == energy.Unavailable {
		return nil
	}
	return []part{{"base power", w.BaseJ}, {"units left out", w.LeftOutJ}, {"waiting", w.IdleJ}, {"work", w.BusyJ}, {"copies", w.TransferJ}, {"sleep and changes", w.StatesJ}}
}

// whyText says what a step is made of.
func (e *Explained) whyText() (clauses []string) {
	w, f := &e.Chosen.Why, &e.Chosen.Figures
	if e.Objective != problem.Energy {
		clauses = append(clauses, fmt.Sprintf("the critical path of the %s is %s tasks, %s copies, %s waits%s", cli.ShowTime(f.StepS), percent(w.PathTasks), percent(w.PathCopies), percent(w.PathWaits), statesText(w)),
			fmt.Sprintf("%s works most, %s of a step", w.Busiest, percent(w.BusyShare)))
	}
	all := parts(w)
	if e.Objective == problem.Time || all == nil {
		return clauses
	}
	slices.SortStableFunc(all, func(a, b part) int { return cmp.Compare(b.joules, a.joules) })
	text := fmt.Sprintf("%s in %s, %s W:", cli.ShortJoules(f.StepJ), cli.ShowTime(f.StepS), cli.ThreeDigits(w.Watts))
	for i, p := range all {
		if p.joules < 0.005*f.StepJ && i > 0 {
			break
		}
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s %s", cli.ShortJoules(p.joules), p.name)
	}
	return append(clauses, text)
}

func statesText(w *best.Why) string {
	if w.PathStates == 0 {
		return ""
	}
	return ", " + percent(w.PathStates) + " changes of states"
}

// nextWhyText says what makes most of the difference between the next best plan and the chosen one.
func (e *Explained) nextWhyText() string {
	chosen, next := &e.Chosen.Why, e.Next.Why
	if e.Objective == problem.Time {
		return fmt.Sprintf("its critical path is %s tasks, %s copies, %s waits%s", percent(next.PathTasks), percent(next.PathCopies), percent(next.PathWaits), statesText(next))
	}
	of, differ := parts(chosen), parts(next)
	if of == nil || differ == nil {
		return ""
	}
	total := 0.0
	for i := range differ {
		total += of[i].joules
		differ[i].joules -= of[i].joules
	}
	differ = slices.DeleteFunc(differ, func(p part) bool { return math.Abs(p.joules) < smallestPart*total })
	slices.SortStableFunc(differ, func(a, b part) int { return cmp.Compare(math.Abs(b.joules), math.Abs(a.joules)) })
	var most []string
	for _, p := range differ[:min(len(differ), 2)] {
		most = append(most, p.name+" "+Signed(cli.ShortJoules(p.joules)))
	}
	if len(most) == 0 {
		return ""
	}
	return "mostly " + strings.Join(most, ", ")
}

// smallestPart is the least difference of a part, relative to the whole, that is printed.
const smallestPart = 1e-4

// Signed gives what is not negative a sign.
func Signed(text string) string {
	if strings.HasPrefix(text, "-") {
		return text
	}
	return "+" + text
}

// optionText says what a group of choices costs.
func (e *Explained) optionText(o *best.Option) string {
	tiles := o.Tiles
	if tiles == e.Chosen.Tiles {
		tiles = tiling.Tiling{}
	}
	text := Choice(o.Devices, tiles, o.Strategy) + ": "
	switch {
	case o.Figures == nil:
		return text + e.atLeastText(o)
	case *o.Figures != e.Chosen.Figures && o.AtLeast >= o.Figures.Relative-1e-9:
		return text + e.figuresText(o) + "; proven"
	case *o.Figures != e.Chosen.Figures && o.AtLeast >= leastShown:
		return text + e.figuresText(o) + "; " + e.atLeastText(o)
	}
	return text + e.figuresText(o)
}

// leastShown is the least relative difference that two digits of percents show.
const leastShown = 5e-5

// atLeastText says how much worse any plan of an option is.
func (e *Explained) atLeastText(o *best.Option) string {
	if o.AtLeast < leastShown {
		return "no plan" + e.ofTilings() + " there is better"
	}
	return "no plan" + e.ofTilings() + " there is below " + relative(o.AtLeast)
}

// ofTilings names the plans under a bound, where they are not all plans.
func (e *Explained) ofTilings() string {
	switch {
	case e.Covered.Tiles:
		return " of these tiles"
	case e.Covered.Tilings > 1:
		return " of these tilings"
	}
	return ""
}

// figuresText says how a plan compares with the chosen one.
func (e *Explained) figuresText(o *best.Option) string {
	f, chosen := o.Figures, &e.Chosen.Figures
	if *f == *chosen {
		return "the same"
	}
	text := e.value(f.Value) + " by " + policyText(o.Policy) + ", " + relative(f.Relative)
	var beside []string
	if e.Objective != problem.Time && chosen.StepS > 0 {
		beside = append(beside, "step "+relative(f.StepS/chosen.StepS-1))
	}
	if e.Chosen.Why.Basis != energy.Unavailable && f.StepS > 0 {
		beside = append(beside, Signed(cli.ThreeDigits(f.StepJ/f.StepS-e.Chosen.Why.Watts))+" W")
	}
	if f.Late {
		beside = append(beside, "too late for the deadline")
	}
	if len(beside) > 0 {
		text += " (" + strings.Join(beside, ", ") + ")"
	}
	return text
}

// spreadText says where the objective lies when durations are drawn.
func (e *Explained) spreadText() string {
	s := &e.Spread
	if s.Missing != "" {
		return "not known: " + s.Missing
	}
	text := fmt.Sprintf("%s to %s from 5 to 95 %% of %d draws of all durations", e.value(s.Chosen.Low), e.value(s.Chosen.High), s.Draws)
	if s.Next == nil {
		return text
	}
	return text + fmt.Sprintf("; the next best %s to %s, and it wins in %s of them", e.value(s.Next.Low), e.value(s.Next.High), percent(*s.NextWins))
}

// policyText names what planned. [exact.Search] writes "exact" into its plans.
func policyText(policy string) string {
	if by, ok := strings.CutPrefix(policy, "exact"); ok {
		return "branch and bound" + by
	}
	return policy
}

// value prints a value of the objective with three digits.
func (e *Explained) value(v float64) string {
	switch e.Objective {
	case problem.Time:
		return cli.ShowTime(v)
	case problem.Energy:
		return cli.ShortJoules(v)
	}
	return cli.ThreeDigits(v) + " J·s"
}

// percent prints a share.
func percent(share float64) string {
	if share > 0 && share < 0.005 {
		return "under 1 %"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

// relative prints how far a value is above another.
func relative(r float64) string {
	if r >= 9.995 {
		return cli.ThreeDigits(r+1) + " times as much"
	}
	return Signed(cli.ThreeDigits(math.Round(1e4*r)/100)) + " %"
}
