package words

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"dahl/cmd/dahl/record"
	"dahl/naming"
	"dahl/train"
)

const (
	// mostClassesPrinted bounds a table that can be read.
	mostClassesPrinted = 16
	// mostMistakes is how many of the most frequent mistakes are named for more classes.
	mostMistakes = 10
)

// PrintConfusion writes how often each class was predicted for each label, or the most frequent mistakes of many classes.
func PrintConfusion(out io.Writer, classes int, said []train.Prediction) {
	if classes > mostClassesPrinted {
		printMistakes(out, said)
		return
	}
	counts, wide := record.Counted(classes, said), len(fmt.Sprint(classes-1))
	for _, row := range counts {
		wide = max(wide, len(fmt.Sprint(slices.Max(row))))
	}
	line := func(head string, cells []int) {
		fmt.Fprint(out, head)
		for _, n := range cells {
			fmt.Fprintf(out, " %*d", wide, n)
		}
		fmt.Fprintln(out)
	}
	numbers := make([]int, classes)
	for i := range numbers {
		numbers[i] = i
	}
	line("predicted   ", numbers)
	for label, row := range counts {
		head := strings.Repeat(" ", 6)
		if label == 0 {
			head = "label "
		}
		line(fmt.Sprintf("%s%5d ", head, label), row)
	}
}

// printMistakes names the most frequent mistakes. Of many classes few pairs ever occur.
func printMistakes(out io.Writer, said []train.Prediction) {
	type mistake struct{ label, predicted int32 }
	times := map[mistake]int{}
	for _, p := range said {
		if p.Label >= 0 && p.Label != p.Predicted {
			times[mistake{p.Label, p.Predicted}]++
		}
	}
	all := slices.SortedFunc(maps.Keys(times), func(a, b mistake) int {
		return cmp.Or(cmp.Compare(times[b], times[a]), cmp.Compare(a.label, b.label), cmp.Compare(a.predicted, b.predicted))
	})
	for _, m := range all[:min(len(all), mostMistakes)] {
		fmt.Fprintf(out, "mistaken  label %d for %d: %s\n", m.label, m.predicted, naming.Count(times[m], "time"))
	}
}
