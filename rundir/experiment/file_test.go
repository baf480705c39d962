package experiment

import (
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// grid is a file with every kind of table.
const grid = `name = "g"
sentence = "All of it."
[run]
command = "execute"
repeats = 2
epochs = 3
[grid]
contestant = ["dahl", "other"]
workers = [1, 2]
seed = [5, 7]
lr = [0.1]
[[case]]
name = "a"
model = "mlp"
data = "digits"
[[case]]
name = "b"
model = "lenet5"
[small]
repeats = 1
workers = [3]
seed = 11
[[small.case]]
name = "c"
model = "mlp"
data = "synthetic"
[[figure]]
kind = "heat"
x = "workers"
by = "case"
y = "step_s"
`

func parse(t *testing.T, src string, small bool) *File {
	t.Helper()
	return must.Get(Parse([]byte(src), "f", small))(t)
}

// names lists the axes of a file.
func names(f *File) (all []string) {
	for _, a := range f.Axes {
		all = append(all, a.Name)
	}
	return all
}

// Axes follow each other as they are written, but seeds come first and contestants last.
func TestParse(t *testing.T) {
	f := parse(t, grid, false)
	if f.Name != "g" || f.Sentence != "All of it." || f.Command != "execute" || f.CommandLine != 4 || f.Repeats != 2 {
		t.Errorf("%+v", f)
	}
	if got, want := strings.Join(names(f), " "), "seed workers lr case contestant"; got != want {
		t.Errorf("axes %s, want %s", got, want)
	}
	if got, want := f.Settings, []Setting{{"epochs", "3", 6}}; !slices.Equal(got, want) {
		t.Errorf("settings %v, want %v", got, want)
	}
	if b := f.Axis(CaseAxis).Values[1]; b.Label != "b" || !slices.Equal(b.Settings, []Setting{{"model", "lenet5", 18}}) {
		t.Errorf("case %+v", b)
	}
	if got, want := f.Figures, []Figure{{Heat, "workers", "case", StepTime}}; !slices.Equal(got, want) {
		t.Errorf("figures %v, want %v", got, want)
	}
}

// In the small version the seed is a setting and no axis, workers and cases are others, and the
// axes keep their order.
func TestParseSmall(t *testing.T) {
	f := parse(t, grid, true)
	if got, want := strings.Join(names(f), " "), "workers lr case contestant"; got != want || f.Repeats != 1 {
		t.Errorf("axes %s, want %s; %d repeats", got, want, f.Repeats)
	}
	cells := f.Cells()
	if len(cells) != 2 { // 1 worker count × 1 rate × 1 case × 2 contestants
		t.Fatalf("%d cells, want 2", len(cells))
	}
	if _, err := Parse([]byte("name = \"n\"\n[run]\ncommand = \"plan\""), "f", true); err == nil || !strings.HasPrefix(err.Error(), "f:1: [small] is missing") {
		t.Errorf("without [small]: %v", err)
	}
	if got, want := strings.Join(cells[1].Args(), " "), "--data=synthetic --epochs=3 --lr=0.1 --model=mlp --seed=11 --workers=3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSetData(t *testing.T) {
	f := parse(t, grid, false)
	must.Do(t, f.SetData("a", "mnist/"))
	if got := f.Cells()[0].Setting("data"); got != "mnist/" {
		t.Errorf("data %q, want mnist/", got)
	}
	if err := f.SetData("b", "x"); err == nil || err.Error() != `f has no case "b" with data; it has a` {
		t.Errorf("%v", err)
	}
	if err := parse(t, "name = \"n\"\n[run]\ncommand = \"plan\"", false).SetData("b", "x"); err == nil || err.Error() != "f has no case with data that could be others" {
		t.Errorf("%v", err)
	}
}

// TestErrors: each mistake is told with its line and what to write instead.
func TestErrors(t *testing.T) {
	const head = "name = \"n\"\n[run]\ncommand = \"plan\"\n"
	many := "[" + strings.Repeat("0,", 5) + "1]"
	for src, want := range map[string]string{
		"x":                               "f:1: not TOML",
		"[run]":                           `f:1: name is missing; write name = "batches"`,
		"name = \"a b\"\n[run]":           `f:1: name = "a b": want letters, digits, - and _, at most 40: it names a directory`,
		"name = \"n\"":                    `f:1: [run] is missing; write [run] with command = "simulate", "plan" or "execute"`,
		"name = \"n\"\nrun = 5":           "f:2: run = 5: want a table, { … }",
		"name = \"n\"\n[run]\nepochs = 5": `f:2: command is missing; write command = "simulate", "plan" or "execute"`,
		head + "repeats = 0":              "f:4: run: repeats = 0: want a whole number from 1 to 1000",
		head + "a = {}":                   "f:4: run: a = map[]: want a text, a number, true or false, or a list of them",
		head + "a = \"\"":                 `f:4: run: a = "": want a text`,
		head + "[grid]\na = 5":            "f:5: grid: a = 5: want a list; what is the same in all cells stands in [run]",
		head + "[grid]\na = []":           "f:5: grid: a = []: want at least one value",
		head + "[grid]\na = [[1]]":        "f:5: grid: a = [[1]]: want a list of texts, of numbers, or of true and false",
		head + "[grid]\na = " + many:      "f:5: grid: a = [0 0 0 0 0 1]: 0 stands there twice",
		head + "[grid]\ncase = [1]":       "f:5: grid: case = [1]: cases are tables, [[case]], and repeats a number in [run]",
		head + "[grid]\nrepeat = [1]":     "f:5: grid: repeat = [1]: cases are tables",
		head + "a = 1\n[grid]\na = [2]":   "f:6: a is set by [run], too; leave one of them out",
		head + "[[case]]\na = 1":          `f:4: case 1: name is missing; write name = "digits"`,
		head + "[[case]]\nname = 1":       "f:5: case 1: name = 1: want a text in quotes",
		head + "[[case]]\nname = \"x\"\n[[case]]\nname = \"x\"": `f:7: case "x": name = "x": another case has this name`,
		head + "[[case]]\nname = \"x\"\na = [1]":                `f:6: case "x": a = [1]: want a text, a number, true or false`,
		head + "[grid]\na = [1]\n[[case]]\nname = \"x\"\na = 2": "f:8: a is set by the axis a, too; leave one of them out",
		head + "[figures]":                                                   "f:4: figures: unknown key; known are name, sentence, run, grid, case, small, figure",
		head + "[[figure]]":                                                  `f:4: figure 1: kind is missing; write kind = "bars"`,
		head + "[[figure]]\nkind = \"pie\"":                                  `f:5: figure 1: kind = "pie": want one of bars, curves, speedup, front, heat`,
		head + "[[figure]]\nkind = \"bars\"\nz = 1":                          "f:6: figure 1: z: unknown key; known are kind, x, by, y",
		head + "[[figure]]\nkind = \"bars\"\ny = \"z\"":                      `f:6: figure 1: y = "z": want one of step_s, predicted_step_s, run_s`,
		head + "[grid]\na=[1]\n[[figure]]\nkind = \"bars\"":                  "f:6: x is missing; write an axis of the grid: a",
		head + "[grid]\na=[1]\n[[figure]]\nkind=\"bars\"\nx=\"b\"":           `f:8: x = "b": want an axis of the grid: a`,
		head + "[grid]\na=[1]\n[[figure]]\nkind=\"heat\"\nx=\"a\"":           "f:6: by is missing; write an axis of the grid: a",
		head + "[grid]\na=[1]\n[[figure]]\nkind=\"heat\"\nx=\"a\"\nby=\"a\"": "f:9: x and by are the same axis; write another",
		head + "[grid]\na=[\"q\"]\n[[figure]]\nkind=\"speedup\"\nx=\"a\"":    `f:8: x = "a": want an axis of numbers above 0`,
		head + "repeats = 1000\n[grid]\na = [1,2,3]\nb = [1,2,3]\nc = [1,2]": "f:8: with c the grid has more than 10000 cells; write fewer values",
	} {
		_, err := Parse([]byte(src), "f", false)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", src, err, want)
		}
	}
}

// Every experiment that ships can be read, whole and small. Two have the sizes of the grids that they
// stand for: 3 data sets × 3 sets of devices × 6 schedulers, and 3 × 4 batch sizes × 4 numbers of
// cores for each contestant, six times, from which on there are intervals of 95 %.
func TestPresets(t *testing.T) {
	for _, name := range Presets() {
		src := must.Get(Preset(name))(t)
		whole, small := parse(t, string(src), false), parse(t, string(src), true)
		if whole.Name != name || whole.Sentence == "" || len(small.Cells()) > len(whole.Cells()) {
			t.Errorf("%s: named %s, %q, %d cells, %d of them small", name, whole.Name, whole.Sentence, len(whole.Cells()), len(small.Cells()))
		}
		cells := map[string]int{"schedulers": 54, "peers": 6 * 48 * len(whole.contestants())}[name]
		if cells > 0 && len(whole.Cells()) != cells {
			t.Errorf("%s has %d cells, want %d", name, len(whole.Cells()), cells)
		}
	}
	if _, err := Preset("nope"); err == nil || !strings.Contains(err.Error(), "those are batch, granularity, peers, schedulers, strategies") {
		t.Errorf("%v", err)
	}
}

func (f *File) contestants() []Value {
	if a := f.Axis(ContestantAxis); a != nil {
		return a.Values
	}
	return nil
}

// FuzzParse reads any bytes. What is accepted has cells with names that differ, in the whole and in the small
// version, and figures whose axes are there.
func FuzzParse(f *testing.F) {
	f.Add([]byte(grid))
	for _, name := range Presets() {
		src := must.Get(Preset(name))(f)
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		for _, small := range []bool{false, true} {
			file, err := Parse(src, "f", small)
			if err != nil {
				if strings.ContainsRune(err.Error(), '\n') || !strings.HasPrefix(err.Error(), "f:") {
					t.Errorf("an error of several lines, or without one: %q", err)
				}
				continue
			}
			seen := map[string]bool{}
			cells := file.Cells()
			for i := range cells {
				if name := cells[i].Name(); seen[name] || strings.ContainsAny(name, "/\\\x00") || name == "" || len(name) > maxName {
					t.Errorf("cell %q is there twice or names no directory", name)
				} else {
					seen[name] = true
				}
			}
			table := &Table{File: file}
			for i := range cells {
				row := NewRow(&cells[i], OK, "")
				row.Set(Rate, float64(i+1))
				table.Rows = append(table.Rows, row)
			}
			table.Charts()
		}
	})
}
