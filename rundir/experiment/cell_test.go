package experiment

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// The loops: repeats outside, then seeds, then axes as they are written, contestants inside. 2 repeats ×
// 2 seeds × 2 numbers of workers × 1 rate × 2 cases × 2 contestants are 32 cells.
func TestCells(t *testing.T) {
	cells := parse(t, grid, false).Cells()
	if len(cells) != 32 {
		t.Fatalf("%d cells, want 32", len(cells))
	}
	var got []string
	for _, i := range []int{0, 1, 2, 4, 8, 16} { // each the first with the second value of one more loop
		c := &cells[i]
		got = append(got, strings.Join([]string{c.at(ContestantAxis), c.at(CaseAxis), c.at("workers"), c.at(SeedAxis)}, " "))
	}
	want := []string{"dahl a 1 5", "other a 1 5", "dahl b 1 5", "dahl a 2 5", "dahl a 1 7", "dahl a 1 5"}
	if !slices.Equal(got, want) || cells[15].Repeat != 1 || cells[16].Repeat != 2 {
		t.Errorf("%q, want %q; repeats %d, %d", got, want, cells[15].Repeat, cells[16].Repeat)
	}
	if got, want := cells[19].Name(), "case=b,contestant=other,lr=0.1,seed=5,workers=1,repeat=2"; got != want {
		t.Errorf("name %s, want %s", got, want)
	}
	if got, want := strings.Join(cells[19].Args(), " "), "--epochs=3 --lr=0.1 --model=lenet5 --seed=5 --workers=1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := (&Cell{Repeat: 1}).Name(); got != "run" {
		t.Errorf("the only cell is called %q", got)
	}
}

// TestNames: a name is a function of the coordinates alone, whatever their order, and different
// coordinates have different names, also where labels hold what separates and where names are cut.
func TestNames(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	pieces := []string{"a", "b", "=", ",", "%2C", "/", ".", "..", "repeat=2", " ", "+", "ä", strings.Repeat("long", 40)}
	word := func() (w string) {
		for range 1 + r.IntN(3) {
			w += pieces[r.IntN(len(pieces))]
		}
		return w
	}
	of := map[string]string{}
	for range 20_000 {
		c := Cell{Repeat: 1 + r.IntN(2)}
		for _, axis := range []string{"x", "y" + word()}[:1+r.IntN(2)] {
			c.Coordinates = append(c.Coordinates, Coordinate{axis, word()})
		}
		name := c.Name()
		slices.Reverse(c.Coordinates)
		if again := c.Name(); again != name {
			t.Fatalf("%q in one order and %q in the other", name, again)
		}
		slices.SortFunc(c.Coordinates, func(a, b Coordinate) int { return strings.Compare(a.Axis, b.Axis) })
		key := strings.Join([]string{c.Coordinates[0].Axis, c.Coordinates[0].Label, "\x00", c.Coordinates[len(c.Coordinates)-1].Axis, c.Coordinates[len(c.Coordinates)-1].Label, string(rune('0' + c.Repeat))}, "\x00")
		if other, ok := of[name]; ok && other != key {
			t.Fatalf("%q is the name of %q and of %q", name, other, key)
		}
		if of[name] = key; len(name) > maxName || strings.ContainsAny(name, "/\\ ") {
			t.Fatalf("%q names no directory", name)
		}
	}
}

// at is the label of the cell on an axis; empty: there is no such axis.
func (c *Cell) at(axis string) string {
	for _, is := range c.Coordinates {
		if is.Axis == axis {
			return is.Label
		}
	}
	return ""
}
