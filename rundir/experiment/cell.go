package experiment

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

// Cell is one run of the grid.
type Cell struct {
	Coordinates []Coordinate // in the order of the axes
	Repeat      int          // from 1
	Settings    []Setting    // by key: the settings of all cells, and of the cell's coordinates
}

// Coordinate is the value that a cell has on an axis.
type Coordinate struct{ Axis, Label string }

// repeatKey is how names of cells call the repetition. It is no flag.
const repeatKey = "repeat"

// Cells lists the cells in the order in which they run.
func (f *File) Cells() []Cell {
	var cells []Cell
	for repeat := 1; repeat <= f.Repeats; repeat++ {
		cells = f.span(cells, Cell{Repeat: repeat, Settings: f.Settings}, f.Axes)
	}
	return cells
}

// span adds the cells of some axes to what has the coordinates of the others.
func (f *File) span(cells []Cell, of Cell, axes []Axis) []Cell {
	if len(axes) == 0 {
		of.Coordinates, of.Settings = slices.Clone(of.Coordinates), slices.Clone(of.Settings)
		slices.SortFunc(of.Settings, func(a, b Setting) int { return cmp.Compare(a.Key, b.Key) })
		return append(cells, of)
	}
	for _, v := range axes[0].Values {
		next := of
		next.Coordinates = append(slices.Clip(of.Coordinates), Coordinate{axes[0].Name, v.Label})
		next.Settings = append(slices.Clip(of.Settings), v.Settings...)
		cells = f.span(cells, next, axes[1:])
	}
	return cells
}

// maxName bounds the names of cells, which are names of directories.
const maxName = 120

// Name is the name of the cell, a function of its coordinates alone, which no other cell of any grid
// has: "batch=16,model=mlp", by axes in alphabetical order. What is no letter, digit or one of -_.~
// in a label is escaped as in a URL, so that = and , separate. The first repetition is not named. Of
// a longer name the end is replaced by a hash of all of it.
func (c *Cell) Name() string {
	var parts []string
	for _, at := range c.Coordinates {
		parts = append(parts, url.QueryEscape(at.Axis)+"="+url.QueryEscape(at.Label))
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		parts = []string{"run"}
	}
	if c.Repeat > 1 {
		parts = append(parts, fmt.Sprintf("%s=%d", repeatKey, c.Repeat))
	}
	name := strings.Join(parts, ",")
	if len(name) > maxName {
		sum := fmt.Sprintf(",%x", sha256.Sum256([]byte(name)))[:17]
		name = name[:maxName-len(sum)] + sum
	}
	return name
}

// Title is the name of the cell for readers: "batch=16 devices=cpu:2,gpu". It is for no path.
func (c *Cell) Title() string {
	var parts []string
	for _, at := range c.Coordinates {
		label := at.Label
		if strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsPrint(r) }) {
			label = url.QueryEscape(label)
		}
		parts = append(parts, at.Axis+"="+label)
	}
	if c.Repeat > 1 || parts == nil {
		parts = append(parts, fmt.Sprintf("%s=%d", repeatKey, max(1, c.Repeat)))
	}
	return strings.Join(parts, " ")
}

// Setting is the value of a key; empty means that the cell does not set it.
func (c *Cell) Setting(key string) string {
	for _, s := range c.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// Args are the flags of the cell for its command line, without the contestant and some other keys.
func (c *Cell) Args(without ...string) []string {
	var args []string
	for _, s := range c.Settings {
		if s.Key != ContestantAxis && !slices.Contains(without, s.Key) {
			args = append(args, "--"+s.Key+"="+s.Value)
		}
	}
	return args
}
