package experiment

import (
	"slices"
	"strconv"
	"strings"

	"dahl/platform/tomlfile"
)

// Figure is a request to draw something over the grid.
type Figure struct {
	Kind  Kind
	X, By string // axes: along the page, and by colour or upwards; empty means none
	Y     Column
}

// Kind is a kind of figures.
type Kind string

// The kinds.
const (
	Bars    Kind = "bars"
	Curves  Kind = "curves"
	Speedup Kind = "speedup"
	Front   Kind = "front"
	Heat    Kind = "heat"
)

// KindInfo describes a kind.
type KindInfo struct {
	Kind     Kind
	Sentence string
	NeedsBy  bool
	Numbers  bool // the x axis has numbers
}

// Kinds is the table of kinds.
func Kinds() []KindInfo {
	return []KindInfo{
		{Bars, "a column over the values of an axis, as bars with intervals", false, false},
		{Curves, "a column over an axis of numbers", false, true},
		{Speedup, "how many times as fast as at the least of an axis of numbers, such as workers", false, true},
		{Front, "time per sample against joules per sample, and which no other beats in both", false, false},
		{Heat, "a column over two axes, as colours", true, false},
	}
}

// figureOf reads a figure. Axes are checked when all are known.
func figureOf(t *tomlfile.Table) (f Figure) {
	f.Y = Rate
	t.Need("kind", `"bars"`)
	kind := t.Text("kind")
	f.Kind, f.X, f.By = Kind(kind), t.Text("x"), t.Text("by")
	var kinds []string
	for _, k := range Kinds() {
		kinds = append(kinds, string(k.Kind))
	}
	if !slices.Contains(kinds, kind) {
		t.Fail("kind", kind, "want one of "+strings.Join(kinds, ", "))
	}
	if y := t.Text("y"); y != "" {
		column, ok := columnByName(y)
		if !ok {
			t.Fail("y", y, "want one of "+strings.Join(ColumnNames(), ", "))
		}
		f.Y = column
	}
	t.Done("kind, x, by, y")
	return f
}

// check refuses axes that there are not.
func (of *Figure) check(f *File, toml *tomlfile.File, path string) {
	var axes []string
	for _, a := range f.Axes {
		if a.Name != SeedAxis {
			axes = append(axes, a.Name)
		}
	}
	list := strings.Join(axes, ", ")
	for _, key := range []struct{ name, axis string }{{"x", of.X}, {"by", of.By}} {
		if key.axis != "" && !slices.Contains(axes, key.axis) {
			toml.FailAt(path+"."+key.name, "", key.name+" = "+strconv.Quote(tomlfile.Clip(key.axis))+": want an axis of the grid: "+list)
		}
	}
	for _, k := range Kinds() {
		switch {
		case k.Kind != of.Kind:
		case of.Kind != Front && of.X == "":
			toml.FailAt(path, "", "x is missing; write an axis of the grid: "+list)
		case k.NeedsBy && of.By == "":
			toml.FailAt(path, "", "by is missing; write an axis of the grid: "+list)
		case of.X != "" && of.X == of.By:
			toml.FailAt(path+".by", "", "x and by are the same axis; write another")
		case k.Numbers && !f.Axis(of.X).numbers():
			toml.FailAt(path+".x", "", "x = "+strconv.Quote(of.X)+": want an axis of numbers above 0")
		}
	}
}

// numbers reports whether all values of an axis are numbers above 0. There may be no axis.
func (a *Axis) numbers() bool {
	return a != nil && !slices.ContainsFunc(a.Values, func(v Value) bool { x, err := strconv.ParseFloat(v.Label, 64); return err != nil || !(x > 0) })
}

// workAxes are those whose values are other work, so that their times are not to be compared.
var workAxes = [...]string{CaseAxis, "model", "data", "graph"}

func isWork(axis string) bool { return slices.Contains(workAxes[:], axis) }

// Suggested are the figures that fit the axes of a file.
func (f *File) Suggested(haveJoules bool) (figures []Figure) {
	var numbers, others []string // axes with several values
	for i := range f.Axes {
		switch a := &f.Axes[i]; {
		case len(a.Values) < 2 || a.Name == SeedAxis:
		case a.numbers():
			numbers = append(numbers, a.Name)
		default:
			others = append(others, a.Name)
		}
	}
	by := ""
	for _, axis := range others { // the innermost that is not other work, else the innermost
		if by == "" || !isWork(axis) || isWork(by) {
			by = axis
		}
	}
	for _, x := range numbers {
		if kind := Curves; x != "workers" {
			figures = append(figures, Figure{kind, x, by, Rate})
		} else {
			figures = append(figures, Figure{Speedup, x, by, Rate})
		}
	}
	if len(numbers) > 1 {
		figures = append(figures, Figure{Heat, numbers[0], numbers[1], Rate})
	}
	if n := len(others); n > 0 && len(numbers) == 0 {
		x := others[0]
		if n > 1 && x == by {
			x = others[1]
		}
		for _, axis := range others {
			if axis != by && !isWork(axis) {
				x = axis
			}
		}
		if x == by {
			by = ""
		}
		figures = append(figures, Figure{Bars, x, by, Rate})
		if haveJoules {
			figures = append(figures, Figure{Bars, x, by, JoulesPerSample})
		}
	}
	if haveJoules && len(numbers)+len(others) > 0 {
		figures = append(figures, Figure{Kind: Front})
	}
	return figures
}
