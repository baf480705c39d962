package runs

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/naming"
	"dahl/nn/npz"
)

// weightsSuffix ends the names of files of weights.
const weightsSuffix = ".npz"

func isWeights(path string) bool { return strings.HasSuffix(path, weightsSuffix) }

// compareWeights compares two files of weights.
func compareWeights(stdout io.Writer, files []string, numbers int, out *flags.Output) error {
	switch {
	case len(files) != 2 || !isWeights(files[0]) || !isWeights(files[1]):
		return cli.InputErrorf("compare %s: two files of weights are compared, and no others; name both with their %s", strings.Join(files, " "), weightsSuffix)
	case out.Dir != "":
		return cli.InputErrorf("--out %s: of weights there is no picture; leave it out", out.Dir)
	}
	var arrays [2][]npz.Array
	for i, file := range files {
		var err error
		if arrays[i], err = npz.Read(file, nil); err != nil {
			return cli.AsInput(err)
		}
	}
	d := npz.Compare(arrays[0], arrays[1], numbers)
	if out.JSON {
		return cli.PrintJSON(stdout, d)
	}
	return printDifference(stdout, d)
}

// printDifference writes counts, the arrays that differ, and the numbers.
func printDifference(out io.Writer, d *npz.Difference) error {
	of := fmt.Sprintf("%s of %s in both", naming.Count(d.Numbers, "number"), naming.Count(d.Arrays, "array"))
	if d.Differ == 0 {
		fmt.Fprintf(out, "equal     %s, to the last bit\n", of)
	} else {
		fmt.Fprintf(out, "differ    %s of %s, in %s\n", naming.Thousands(d.Differ), of, naming.Count(len(d.Each), "array"))
	}
	for _, list := range []struct {
		word  string
		names []string
	}{{"only first", d.OnlyA}, {"only second", d.OnlyB}, {"other shape", d.Shapes}} {
		if list.names != nil {
			fmt.Fprintf(out, "%s: %s\n", list.word, strings.Join(list.names, ", "))
		}
	}
	if d.Differ == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(cells ...any) {
		fmt.Fprintln(w, strings.Join(cli.Texts(cells, func(c any) string { return fmt.Sprint(c) }), "\t"))
	}
	row("\narray", "type", "shape", "numbers", "differ", "max ulp", "max relative")
	for i := range d.Each {
		a := &d.Each[i]
		row(a.Name, a.Type, naming.JoinInts(a.Shape, "x"), naming.Thousands(a.Numbers), naming.Thousands(a.Differ), ulpText(a.MaxULP), cli.ThreeDigits(a.MaxRelative))
	}
	for _, list := range []struct {
		word  string
		pairs []npz.NumberPair
	}{{"first", d.First}, {"worst", d.Worst}} {
		if list.pairs == nil {
			continue
		}
		row(fmt.Sprintf("\n%s %d", list.word, len(list.pairs)), "first file", "second file", "ulp", "relative")
		for i := range list.pairs {
			p := &list.pairs[i]
			row(fmt.Sprintf("%s[%s]", p.Array, naming.JoinInts(p.Index, ",")), p.A, p.B, ulpText(p.ULP), cli.ThreeDigits(p.Rel))
		}
	}
	return w.Flush()
}

// ulpText is a number of ULPs. From a NaN there are none.
func ulpText(ulp float64) string {
	switch {
	case ulp == math.MaxUint64:
		return "-"
	case ulp < 1e15:
		return naming.Thousands(int(ulp))
	}
	return cli.ThreeDigits(ulp)
}
