package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/kernels"
)

// variantRow is a call on a device, one unit of which is busy, with its median time in
// seconds by variant.
type variantRow struct {
	op, elem, shape string
	medians         map[string]float64
}

// printByVariant writes a Markdown table for each device: calls by variants, as far as
// these were calibrated, in microseconds, the fastest marked.
func printByVariant(out io.Writer, title string, times []kernelTime) {
	fmt.Fprintln(out, title)
	var devices []string
	for i := range times {
		if !slices.Contains(devices, times[i].Device) {
			devices = append(devices, times[i].Device)
		}
	}
	for _, device := range devices {
		rows, variants := byVariant(times, device)
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(out, "\n## %s, us\n\n| kernel | type | shape | %s | fastest |\n| --- | --- | --- |%s --- |\n",
			device, strings.Join(variants, " | "), strings.Repeat(" ---: |", len(variants)))
		for _, r := range rows {
			fmt.Fprintf(out, "| %s | %s | %s |", r.op, r.elem, r.shape)
			fastest := ""
			for _, v := range variants {
				median, ok := r.medians[v]
				if !ok {
					fmt.Fprint(out, " |")
					continue
				}
				fmt.Fprintf(out, " %s |", cli.ThreeDigits(1e6*median))
				if fastest == "" || median < r.medians[fastest] {
					fastest = v
				}
			}
			fmt.Fprintf(out, " %s |\n", fastest)
		}
	}
}

// byVariant puts the times of calls together, and lists the variants that any of them has,
// in the order of the operations' own lists. Times without one, such as those of the host's
// operations, are left out.
func byVariant(times []kernelTime, device string) (rows []*variantRow, variants []string) {
	seen := map[string]bool{}
	for i := range times {
		t := &times[i]
		if t.Device != device || t.Active > 1 || t.Clock != "" || t.Variant == "" || t.MedianS == 0 {
			continue
		}
		seen[t.Variant] = true
		at := slices.IndexFunc(rows, func(r *variantRow) bool { return r.op == t.Op && r.elem == t.Type && r.shape == t.Shape })
		if at < 0 {
			at = len(rows)
			rows = append(rows, &variantRow{t.Op, t.Type, t.Shape, map[string]float64{}})
		}
		rows[at].medians[t.Variant] = t.MedianS
	}
	for _, k := range kernels.Kernels() {
		for _, v := range k.Variants {
			if seen[v.Name] {
				variants, seen[v.Name] = append(variants, v.Name), false
			}
		}
	}
	return rows, variants
}
