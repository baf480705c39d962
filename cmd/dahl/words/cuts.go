package words

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/plan"
	"dahl/rundir/tables"
)

// CutsFile is the table of what cuts of layers cost.
const CutsFile = "cuts.csv"

// WriteCuts writes the table.
func WriteCuts(out io.Writer, cuts []plan.CutCost) error {
	rows := [][]string{{"layer", "device", "cut", "tasks", "bytes", "forward_s", "backward_s", "sums_s", "joules"}}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	for _, c := range cuts {
		rows = append(rows, []string{c.Layer, c.Device, c.Cut, strconv.Itoa(c.Tasks), strconv.FormatInt(c.Bytes, 10),
			number(c.Forward.Seconds()), number(c.Backward.Seconds()), number(c.Sums.Seconds()), number(c.Joules)})
	}
	return tables.WriteCSV(out, rows)
}

// shownLayers bounds the layers of the table that is printed.
const shownLayers = 8

// PrintCuts prints the time and joules of the longest layers when they are whole, and the additional
// percentage when they are cut.
func PrintCuts(out io.Writer, cuts []plan.CutCost) {
	if len(cuts) == 0 {
		return
	}
	fmt.Fprintln(out, "cuts      one layer in two, the others whole, on one unit: how much more time, and how many more joules above idle")
	shown, more := longestLayers(cuts)
	layer, on, cell := 12, 10, 17 // columns at least
	for i := range shown {
		layer, on = max(layer, len(shown[i].Layer)), max(on, len(shown[i].Device))
	}
	for i, whole := 0, 0; i < len(shown); i++ {
		if shown[i].Cut == plan.Uncut {
			whole = i
		} else {
			cell = max(cell, len(moreText(&shown[whole], &shown[i])))
		}
	}
	fmt.Fprintf(out, "%-*s %-*s %9s %9s", layer, "layer", on, "on", "time", "joules")
	for along := range dag.NumDimensions {
		fmt.Fprintf(out, " %*s", cell, along)
	}
	for i := 0; i < len(shown); {
		whole, cells := shown[i], map[string]string{}
		for i++; i < len(shown) && shown[i].Cut != plan.Uncut; i++ {
			cells[shown[i].Cut] = moreText(&whole, &shown[i])
		}
		fmt.Fprintf(out, "\n%-*s %-*s %9s %9s", layer, whole.Layer, on, whole.Device, cli.ShortTime(whole.Time()), cli.ShortJoules(whole.Joules))
		for along := range dag.NumDimensions {
			fmt.Fprintf(out, " %*s", cell, cmp.Or(cells[along.String()], "-"))
		}
	}
	fmt.Fprintln(out)
	if more > 0 {
		fmt.Fprintf(out, "%d more layers in %s\n", more, CutsFile)
	}
}

// longestLayers returns the rows of the longest layers, by their time when whole, and the number of the other
// layers.
func longestLayers(cuts []plan.CutCost) (shown []plan.CutCost, more int) {
	takes := map[string]time.Duration{}
	for _, c := range cuts {
		if c.Cut == plan.Uncut {
			takes[c.Layer] += c.Time()
		}
	}
	layers := slices.SortedFunc(maps.Keys(takes), func(a, b string) int {
		return cmp.Or(cmp.Compare(takes[b], takes[a]), strings.Compare(a, b))
	})
	layers = layers[:min(len(layers), shownLayers)]
	for _, c := range cuts {
		if slices.Contains(layers, c.Layer) {
			shown = append(shown, c)
		}
	}
	return shown, len(takes) - len(layers)
}

// moreText gives the percentage by which time and joules of a cut layer exceed the whole layer's.
func moreText(whole, cut *plan.CutCost) string {
	percent := func(is, was float64) string {
		return Signed(cli.ThreeDigits(math.Round(1000*cli.Ratio(is-was, was))/10+0)) + " %" // no -0
	}
	return percent(cut.Time().Seconds(), whole.Time().Seconds()) + ", " + percent(cut.Joules, whole.Joules)
}
