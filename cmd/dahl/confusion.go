package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"dahl/naming"
	"dahl/nn"
	"dahl/train"
)

// confusion counts how often each class was predicted for each label. Of many classes few pairs ever occur.
type confusion struct {
	classes int
	times   map[pairOfClasses]int
}

type pairOfClasses struct{ label, predicted int }

const (
	// mostClassesPrinted bounds a table that can be read.
	mostClassesPrinted = 16
	// mostMistakes is how many of the most frequent mistakes are named for more classes.
	mostMistakes = 10
)

func newConfusion(m *nn.Model, said []train.Prediction) confusion {
	c := confusion{m.Classes(), map[pairOfClasses]int{}}
	for _, p := range said {
		if p.Label >= 0 {
			c.times[pairOfClasses{int(p.Label), int(p.Predicted)}]++
		}
	}
	return c
}

// row is how often each class was predicted for a label.
func (c confusion) row(label int) []int {
	row := make([]int, c.classes)
	for predicted := range row {
		row[predicted] = c.times[pairOfClasses{label, predicted}]
	}
	return row
}

func (c confusion) correct() (n int) {
	for p, times := range c.times {
		if p.label == p.predicted {
			n += times
		}
	}
	return n
}

// print writes the table, or the most frequent mistakes of many classes.
func (c confusion) print(out io.Writer) {
	if c.classes > mostClassesPrinted {
		c.printMistakes(out)
		return
	}
	wide := 1
	for _, times := range c.times {
		wide = max(wide, len(fmt.Sprint(times)))
	}
	wide = max(wide, len(fmt.Sprint(c.classes-1)))
	line := func(head string, cells []int) {
		fmt.Fprint(out, head)
		for _, n := range cells {
			fmt.Fprintf(out, " %*d", wide, n)
		}
		fmt.Fprintln(out)
	}
	classes := make([]int, c.classes)
	for i := range classes {
		classes[i] = i
	}
	line("predicted   ", classes)
	for label := range c.classes {
		head := strings.Repeat(" ", 6)
		if label == 0 {
			head = "label "
		}
		line(fmt.Sprintf("%s%5d ", head, label), c.row(label))
	}
}

func (c confusion) printMistakes(out io.Writer) {
	var all []pairOfClasses
	for p := range c.times {
		if p.label != p.predicted {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b pairOfClasses) int {
		return cmp.Or(cmp.Compare(c.times[b], c.times[a]), cmp.Compare(a.label, b.label), cmp.Compare(a.predicted, b.predicted))
	})
	for _, p := range all[:min(len(all), mostMistakes)] {
		fmt.Fprintf(out, "mistaken  label %d for %d: %s\n", p.label, p.predicted, naming.Count(c.times[p], "time"))
	}
}
