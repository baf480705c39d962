package inspect

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/dag"
	"dahl/execute/hardware"
	"dahl/kernels"
	"dahl/naming"
	"dahl/plan"
	"dahl/platform"
	"dahl/rundir"
	"dahl/rundir/tables"
	"dahl/schedule"
	"dahl/stats"
)

// NewKernels is the command kernels.
func NewKernels([]string) *cobra.Command {
	var asJSON, variants bool
	cmd := &cobra.Command{
		Use:   "kernels [DIR | PLATFORM]",
		Short: "list the operations, or how long kernels took in a run or a calibration",
		Long: `kernels lists the operations, their operands and variants. With a run directory it
prints how long each kernel took there, by variant and shape; with a platform file,
what its calibration measured, alone (active 1) and with several units busy; with
--by-variant that is a table of calls by variants.

On devices of the kinds cpu and emulated, ref is the plain reference; go, avx2 and avx512
are the fast ones for machines that have those instructions. On devices of the kind cuda,
cuda is the default; tiled has tiles of queries and keys in shared memory; tf32 and bf16
multiply on tensor cores, with factors rounded to 11 and 8 bits; cublas, cublaslt, cudnn
and these with -tf32 are by NVIDIA's libraries where they are installed. All of these are
taken where --variant asks for them or a calibration finds them fastest; what rounds
factors, only where --precision allows it.
Operations of the kind host are done by dahl itself.`,
		Example: "  dahl kernels\n  dahl kernels dahl-demo\n  dahl kernels here.toml --json",
		Args:    cli.WantArgs(0, 1, "one platform or run at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if variants && (len(args) == 0 || asJSON) {
				return cli.InputErrorf("--by-variant wants a run directory or a platform file, and no --json")
			}
			if len(args) == 0 {
				return listKernels(cmd.OutOrStdout(), asJSON)
			}
			rows, title, err := timesOf(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(cmd.OutOrStdout(), struct {
					Source  string       `json:"source"`
					Kernels []KernelTime `json:"kernels"`
				}{title, rows})
			}
			print := printKernelTimes
			if variants {
				print = printByVariant
			}
			print(cmd.OutOrStdout(), title, rows)
			return nil
		},
	}
	cmd.Flags().BoolVar(&variants, "by-variant", false, "compare the variants of each call in a Markdown table for each device")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of text")
	return cmd
}

// KernelLine is one operation of the table.
type KernelLine struct {
	Op       string   `json:"op"`
	Operands []string `json:"operands"`
	Params   []string `json:"params,omitempty"`
	Variants []string `json:"variants"`
	// Devices are the variants by the kind of device that runs them; a host operation
	// has none.
	Devices map[string][]string `json:"devices"`
	Doc     string              `json:"doc"`
}

func listKernels(out io.Writer, asJSON bool) error {
	var lines []KernelLine
	for _, k := range kernels.Kernels() {
		line := KernelLine{Op: k.Op, Operands: cli.Texts(k.Operands, operandText), Params: k.Params, Variants: []string{}, Devices: map[string][]string{}, Doc: k.Doc}
		for j := range k.Variants {
			v := &k.Variants[j]
			line.Variants = append(line.Variants, v.Name)
			for _, kind := range platform.Kinds() {
				if v.RunsOn(kind.Code) && !kind.Emulated {
					line.Devices[kind.Name] = append(line.Devices[kind.Name], v.Name)
				}
			}
		}
		lines = append(lines, line)
	}
	if asJSON {
		return cli.PrintJSON(out, struct {
			Kernels []KernelLine `json:"kernels"`
		}{lines})
	}
	for i := range lines {
		lines[i].print(out)
	}
	listLibraries(out)
	return nil
}

// listLibraries says which libraries of variants are here, or why not.
func listLibraries(out io.Writer) {
	said := map[string]bool{}
	for _, k := range kernels.Kernels() {
		for _, v := range k.Variants {
			if v.Library == "" || said[v.Library] {
				continue
			}
			said[v.Library] = true
			is := "found"
			if err := hardware.CheckVariant(v.Name); err != nil {
				is = err.Error()
			}
			fmt.Fprintf(out, "library %s: %s\n", v.Library, is)
		}
	}
}

// print writes what the operation computes, its operands, and a line of variants for each
// kind of device.
func (l *KernelLine) print(out io.Writer) {
	const format = "%-18s %s\n"
	fmt.Fprintf(out, format, l.Op, l.Doc)
	operands := strings.Join(l.Operands, ", ")
	if len(l.Params) > 0 {
		operands += "; " + strings.Join(l.Params, ", ")
	}
	fmt.Fprintf(out, format, "", operands)
	for _, kind := range platform.Kinds() {
		if names := l.Devices[kind.Name]; len(names) > 0 {
			fmt.Fprintf(out, format, "  "+kind.Name, strings.Join(names, " "))
		}
	}
	if len(l.Variants) == 0 {
		fmt.Fprintf(out, format, "  host", "")
	}
}

// operandText prints an operand as in "y[n f oh ow] write", in brackets if it may
// be left out.
func operandText(o kernels.Operand) string {
	text := fmt.Sprintf("%s[%s] %s", o.Name, o.Dims, strings.Join(cli.Texts(o.Modes, dag.Mode.String), "|"))
	if o.Optional {
		return "(" + text + ")"
	}
	return text
}

// KernelTime is how long one kernel took, by variant, shape and place.
type KernelTime struct {
	Op      string `json:"op"`
	Variant string `json:"variant"`
	Type    string `json:"type"`
	Shape   string `json:"shape"`
	Device  string `json:"device"`
	Clock   string `json:"clock,omitempty"`
	Active  int    `json:"active,omitempty"` // busy units of a calibration

	Count   int     `json:"count"`
	MeanS   float64 `json:"mean_s,omitempty"` // 0 means a calibration does not keep it
	MedianS float64 `json:"median_s"`
	P95S    float64 `json:"p95_s"`

	GFlopsPerSec float64 `json:"gflop_per_s"` // at the median
	GBPerSec     float64 `json:"gb_per_s"`

	total float64 // seconds, by which the rows are ordered
}

func (k *KernelTime) setRates(flops float64, bytes int64) {
	k.GFlopsPerSec = cli.Ratio(flops, k.MedianS) / 1e9
	k.GBPerSec = cli.Ratio(float64(bytes), k.MedianS) / 1e9
	k.total = k.MedianS * float64(k.Count)
}

// timesOf reads a run directory or a platform file.
func timesOf(path string) (rows []KernelTime, title string, err error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		r, err := record.LoadRun(path)
		if err != nil {
			return nil, "", err
		}
		return timesIn(r.Loaded), fmt.Sprintf("%s: %s on %s, %s", path, r.Schedule.World, r.Problem.Platform.Name, naming.Count(r.Schedule.Steps, "step")), nil
	}
	p, err := cli.LoadPlatform(path)
	if err != nil {
		return nil, "", err
	}
	if len(p.Models) == 0 {
		return nil, "", cli.InputErrorf("%s holds no measured kernels; dahl calibrate writes a file that does", path)
	}
	for _, m := range p.Models {
		k := KernelTime{Op: m.Op, Variant: m.Variant, Type: m.Type, Shape: m.Shape, Device: m.Device, Clock: m.Clock, Active: m.Active,
			Count: m.Count, MedianS: m.MedianNs / 1e9, P95S: m.P95Ns / 1e9}
		k.setRates(m.Flops, m.MovedBytes)
		rows = append(rows, k)
	}
	slices.SortStableFunc(rows, func(a, b KernelTime) int {
		return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.Type, b.Type),
			cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Active, b.Active))
	})
	return rows, fmt.Sprintf("%s: calibration of %s", path, p.Name), nil
}

// timesIn are the times of a schedule's spans, the most costly kernel first.
func timesIn(r *rundir.Loaded) []KernelTime {
	type key struct {
		op, typ, shape string
		device         platform.DeviceID
	}
	g, p := r.Problem.Graph, r.Problem.Platform
	first := map[key]dag.TaskID{}
	times, _ := plan.TimesOf(r.Schedule.Spans, func(s *schedule.Span) (key, time.Duration) {
		task := &g.Tasks[s.Task]
		k := key{task.Op, task.Type.String(), task.Shape, p.Workers[s.Worker].Device}
		if _, ok := first[k]; !ok {
			first[k] = s.Task
		}
		return k, s.End - s.Start
	})
	var rows []KernelTime
	for k, durations := range times {
		row := KernelTime{Op: k.op, Type: k.typ, Shape: k.shape, Device: p.Devices[k.device].Name,
			Count: len(durations), MedianS: stats.Median(durations), P95S: stats.Quantile(durations, 0.95)}
		if c, ok := r.Problem.Costs.Of(first[k], k.device); ok {
			row.Variant = c.Variant
		}
		task := &g.Tasks[first[k]]
		row.setRates(task.Flops, task.MovedBytes)
		row.total = plan.Total(durations)
		row.MeanS = row.total / float64(len(durations))
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b KernelTime) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.Op, b.Op), cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Device, b.Device))
	})
	return rows
}

func printKernelTimes(out io.Writer, title string, rows []KernelTime) {
	fmt.Fprintln(out, title)
	shape := len("shape")
	for i := range rows {
		shape = max(shape, len(rows[i].Shape))
	}
	format := "%-18s %-7s %-7s %-*s %-8s %6s %7s %10s %10s %10s %9s %8s\n"
	fmt.Fprintf(out, format, "kernel", "variant", "type", shape, "shape", "device", "active", "count", "mean", "median", "p95", "GFLOP/s", "GB/s")
	for i := range rows {
		k := &rows[i]
		active, mean := "-", "-"
		if k.Active > 0 {
			active = fmt.Sprint(k.Active)
		}
		if k.MeanS > 0 {
			mean = cli.ShortTime(cli.Seconds(k.MeanS))
		}
		fmt.Fprintf(out, format, k.Op, cmp.Or(k.Variant, "-"), k.Type, shape, k.Shape, k.Device, active, fmt.Sprint(k.Count), mean,
			cli.ShortTime(cli.Seconds(k.MedianS)), cli.ShortTime(cli.Seconds(k.P95S)), cli.ThreeDigits(k.GFlopsPerSec), cli.ThreeDigits(k.GBPerSec))
	}
}

// variantRow is a call on a device, one unit of which is busy, with its median time in
// seconds by variant.
type variantRow struct {
	op, elem, shape string
	medians         map[string]float64
}

// printByVariant writes a Markdown table for each device: calls by variants, as far as
// these were calibrated, in microseconds, the fastest marked.
func printByVariant(out io.Writer, title string, times []KernelTime) {
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
			tables.Markdown(device), strings.Join(variants, " | "), strings.Repeat(" ---: |", len(variants)))
		for _, r := range rows {
			fmt.Fprintf(out, "| %s | %s | %s |", tables.Markdown(r.op), r.elem, tables.Markdown(r.shape))
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
// in the order of the operations' own lists. Times without a variant, as of the host's operations,
// are left out.
func byVariant(times []KernelTime, device string) (rows []*variantRow, variants []string) {
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
