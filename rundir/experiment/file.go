package experiment

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dahl/platform/tomlfile"
)

// File is an experiment file.
type File struct {
	Path           string // for errors
	Name, Sentence string
	Command        string    // of all cells
	CommandLine    int       // where it stands
	Repeats        int       // at least 1
	Settings       []Setting // of all cells
	Axes           []Axis    // the outermost loop first
	Figures        []Figure  // none: those that fit the axes
}

// Setting is a key with its value and the line where it stands.
type Setting struct {
	Key, Value string
	Line       int
}

// Axis is a list of alternatives.
type Axis struct {
	Name   string // its key, or CaseAxis
	Values []Value
}

// Value is one of the alternatives: a key with a value, or a case that sets several.
type Value struct {
	Label    string
	Settings []Setting
}

// Axes with a meaning of their own.
const (
	CaseAxis       = "case"       // of values that set several keys
	SeedAxis       = "seed"       // whose values are repetitions
	ContestantAxis = "contestant" // what runs the cell
)

// fileSafe matches names of experiments.
var fileSafe = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

// Bounds of a file.
const (
	maxCells   = 10_000 // with repeats
	maxRepeats = 1_000
)

// Parse reads an experiment file, whose name is for errors. With small it is the file with what
// its table [small] has otherwise.
func Parse(src []byte, name string, small bool) (*File, error) {
	toml, top, err := tomlfile.Parse(src, name)
	if err != nil {
		return nil, err
	}
	r := &reader{toml: toml, file: &File{Path: name}, grid: map[string]bool{}}
	r.read(top, small)
	if toml.Err == nil {
		r.check()
	}
	return r.file, toml.Err
}

// reader reads the tables of a file.
type reader struct {
	toml *tomlfile.File
	file *File
	axes []placedAxis
	grid map[string]bool // the keys of [grid], which keep their place in [small]
}

// placedAxis is an axis and the path of its key in the file.
type placedAxis struct {
	Axis
	path string
}

func (r *reader) read(top *tomlfile.Table, small bool) {
	f := r.file
	top.Need("name", `"batches"`)
	f.Name, f.Sentence = top.Text("name"), top.Text("sentence")
	if !fileSafe.MatchString(f.Name) {
		top.Fail("name", f.Name, "want letters, digits, - and _, at most 40: it names a directory")
	}
	run, grid, otherwise := top.Table("run"), top.Table("grid"), top.Table("small")
	cases, figures := top.Tables(CaseAxis), top.Tables("figure")
	top.Done("name, sentence, run, grid, case, small, figure")
	if run == nil {
		r.toml.FailAt("", "", `[run] is missing; write [run] with command = "simulate", "plan" or "execute"`)
		return
	}
	if small && otherwise == nil {
		r.toml.FailAt("", "", "[small] is missing, which says what the small version has otherwise; write one, or run the whole")
		return
	}
	if smallCases := r.keys(otherwise).Tables(CaseAxis); small && len(smallCases) > 0 {
		cases = smallCases
	}
	f.Repeats = 1
	replaced := map[string]bool{}
	if small {
		for key := range r.keys(otherwise).Keys {
			replaced[key] = true
		}
	}
	r.settings(run, replaced)
	r.lists(grid, replaced)
	if small {
		r.settings(otherwise, nil)
	}
	r.cases(cases)
	for _, t := range figures {
		f.Figures = append(f.Figures, figureOf(t))
	}
}

// keys is a table, or one without keys in the place of none.
func (r *reader) keys(t *tomlfile.Table) *tomlfile.Table {
	if t == nil {
		return &tomlfile.Table{File: r.toml}
	}
	return t
}

// settings reads a table of settings but for those that are replaced. Lists among them are axes.
func (r *reader) settings(t *tomlfile.Table, replaced map[string]bool) {
	f := r.file
	if _, ok := t.Keys["command"]; ok && !replaced["command"] {
		f.CommandLine = r.toml.Line(t.Join("command"))
		f.Command = t.Text("command")
	}
	if _, ok := t.Keys["repeats"]; ok && !replaced["repeats"] {
		f.Repeats = t.Count("repeats", 1, maxRepeats, 1)
	}
	for _, key := range slices.Sorted(maps.Keys(t.Keys)) {
		v, _ := t.Take(key)
		if replaced[key] {
			continue
		}
		if list, ok := v.([]any); ok {
			r.axis(t, key, list)
		} else if text, ok := textOf(v); ok {
			f.Settings = append(f.Settings, Setting{key, text, r.toml.Line(t.Join(key))})
		} else {
			t.Fail(key, v, "want a text, a number, true or false, or a list of them")
		}
	}
}

// lists reads a table of axes but for those that are replaced.
func (r *reader) lists(t *tomlfile.Table, replaced map[string]bool) {
	t = r.keys(t)
	for _, key := range slices.Sorted(maps.Keys(t.Keys)) {
		v, _ := t.Take(key)
		list, ok := v.([]any)
		if !ok {
			t.Fail(key, v, "want a list; what is the same in all cells stands in [run]")
		}
		if r.grid[key] = true; !replaced[key] {
			r.axis(t, key, list)
		}
	}
}

// axis adds an axis of the values of one key.
func (r *reader) axis(t *tomlfile.Table, key string, list []any) {
	a := Axis{Name: key}
	line := r.toml.Line(t.Join(key))
	for _, v := range matching(list) {
		text, ok := textOf(v)
		switch {
		case !ok:
			t.Fail(key, list, "want a list of texts, of numbers, or of true and false")
		case slices.ContainsFunc(a.Values, func(v Value) bool { return v.Label == text }):
			t.Fail(key, list, text+" stands there twice")
		}
		a.Values = append(a.Values, Value{text, []Setting{{key, text, line}}})
	}
	switch {
	case len(list) == 0:
		t.Fail(key, list, "want at least one value")
	case key == CaseAxis || key == repeatKey:
		t.Fail(key, list, "cases are tables, [[case]], and repeats a number in [run]")
	}
	path := t.Join(key)
	if r.grid[key] {
		path = "grid." + key
	}
	r.axes = append(r.axes, placedAxis{a, path})
}

// matching is a list of values with files, sorted by name, in the place of each pattern that some match.
func matching(list []any) (all []any) {
	for _, v := range list {
		pattern, ok := v.(string)
		files, err := filepath.Glob(pattern)
		if !ok || !strings.ContainsRune(pattern, '*') || err != nil || files == nil {
			all = append(all, v)
			continue
		}
		for _, file := range files {
			all = append(all, file)
		}
	}
	return all
}

// textOf is a value as a flag takes it.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, v != ""
	case int64, bool:
		return fmt.Sprint(v), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

// cases adds the axis of the cases, if there are some.
func (r *reader) cases(tables []*tomlfile.Table) {
	a := Axis{Name: CaseAxis}
	for _, t := range tables {
		t.Need("name", `"digits"`)
		v := Value{Label: t.Text("name")}
		if slices.ContainsFunc(a.Values, func(other Value) bool { return other.Label == v.Label }) {
			t.Fail("name", v.Label, "another case has this name")
		}
		for _, key := range slices.Sorted(maps.Keys(t.Keys)) {
			x, _ := t.Take(key)
			text, ok := textOf(x)
			if !ok {
				t.Fail(key, x, "want a text, a number, true or false")
			}
			v.Settings = append(v.Settings, Setting{key, text, r.toml.Line(t.Join(key))})
		}
		a.Values = append(a.Values, v)
	}
	if len(tables) > 0 {
		r.axes = append(r.axes, placedAxis{a, tables[0].Path})
	}
}

// check orders the axes and refuses what contradicts itself.
func (r *reader) check() {
	f := r.file
	slices.SortStableFunc(r.axes, func(a, b placedAxis) int {
		return cmp.Or(cmp.Compare(rank(a.Name), rank(b.Name)), cmp.Compare(r.toml.Line(a.path), r.toml.Line(b.path)), cmp.Compare(a.Name, b.Name))
	})
	if f.Command == "" {
		r.toml.FailAt("run", "", `command is missing; write command = "simulate", "plan" or "execute"`)
	}
	cells, by := f.Repeats, map[string]string{} // by whom a key is set
	claim := func(s Setting, whose string) {
		if other, taken := by[s.Key]; taken && other != whose {
			r.fail(s.Line, fmt.Sprintf("%s is set by %s, too; leave one of them out", s.Key, other))
		}
		by[s.Key] = whose
	}
	for _, s := range f.Settings {
		claim(s, "[run]")
	}
	for _, a := range r.axes {
		f.Axes = append(f.Axes, a.Axis)
		if cells *= len(a.Values); cells > maxCells {
			r.toml.FailAt(a.path, "", fmt.Sprintf("with %s the grid has more than %d cells; write fewer values", a.Name, maxCells))
			return
		}
		for _, v := range a.Values {
			for _, s := range v.Settings {
				claim(s, "the axis "+a.Name)
			}
		}
	}
	for i := range f.Figures {
		f.Figures[i].check(f, r.toml, fmt.Sprintf("figure[%d]", i))
	}
}

func (r *reader) fail(line int, text string) {
	if r.toml.Err == nil {
		r.toml.Err = fmt.Errorf("%s:%d: %s", r.file.Path, line, text)
	}
}

// rank orders axes before their lines do.
func rank(axis string) int {
	switch axis {
	case SeedAxis:
		return 0
	case ContestantAxis:
		return 2
	}
	return 1
}

// Axis finds an axis by its name; nil means none.
func (f *File) Axis(name string) *Axis {
	for i := range f.Axes {
		if f.Axes[i].Name == name {
			return &f.Axes[i]
		}
	}
	return nil
}

// SetData gives a case other data. Its error names the cases with data.
func (f *File) SetData(of, data string) error {
	var names []string
	if cases := f.Axis(CaseAxis); cases != nil {
		for i := range cases.Values {
			v := &cases.Values[i]
			for k := range v.Settings {
				if v.Settings[k].Key != "data" {
					continue
				}
				if names = append(names, v.Label); v.Label == of {
					v.Settings[k].Value = data
					return nil
				}
			}
		}
	}
	if names == nil {
		return fmt.Errorf("%s has no case with data that could be others", f.Path)
	}
	return fmt.Errorf("%s has no case %q with data; it has %s", f.Path, of, strings.Join(names, ", "))
}
