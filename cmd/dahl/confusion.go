package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"dahl/naming"
)

// confusion counts how often each class was predicted for each label: labels are rows.
type confusion [][]int

const (
	// mostClassesPrinted bounds a table that can be read.
	mostClassesPrinted = 16
	// mostMistakes is how many of the most frequent mistakes are named for more classes.
	mostMistakes = 10
)

// print writes the table, or the most frequent mistakes of many classes.
func (c confusion) print(out io.Writer) {
	if len(c) > mostClassesPrinted {
		c.printMistakes(out)
		return
	}
	wide := 1
	for _, row := range c {
		wide = max(wide, len(fmt.Sprint(slices.Max(row))))
	}
	wide = max(wide, len(fmt.Sprint(len(c)-1)))
	line := func(head string, cells []int) {
		fmt.Fprint(out, head)
		for _, n := range cells {
			fmt.Fprintf(out, " %*d", wide, n)
		}
		fmt.Fprintln(out)
	}
	classes := make([]int, len(c))
	for i := range classes {
		classes[i] = i
	}
	line("predicted   ", classes)
	for label, row := range c {
		head := strings.Repeat(" ", 6)
		if label == 0 {
			head = "label "
		}
		line(fmt.Sprintf("%s%5d ", head, label), row)
	}
}

func (c confusion) printMistakes(out io.Writer) {
	type mistake struct{ label, predicted, times int }
	var all []mistake
	for label, row := range c {
		for predicted, times := range row {
			if label != predicted && times > 0 {
				all = append(all, mistake{label, predicted, times})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b mistake) int { return cmp.Compare(b.times, a.times) })
	for _, m := range all[:min(len(all), mostMistakes)] {
		fmt.Fprintf(out, "mistaken  label %d for %d: %s\n", m.label, m.predicted, naming.Count(m.times, "time"))
	}
}
