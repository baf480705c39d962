package words

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/energy"
	"dahl/naming"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/place"
	"dahl/train"
	"dahl/train/peer"
)

// PrintSets writes two lines per set, one per world, and which set is best.
func PrintSets(out io.Writer, c *plan.SetComparison) {
	width := len("devices used")
	for i := range c.Rows {
		width = max(width, len(c.Rows[i].Used()))
	}
	fmt.Fprintf(out, "\n%-*s %-10s %10s %9s %10s %10s %10s  %s\n", width, "devices used", "", "step", "error", "samples/s", "per step", "per sample", "energy")
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Error != "" {
			fmt.Fprintf(out, "%-*s cannot run: %s\n", width, r.Devices, r.Error)
			continue
		}
		of := ""
		if r.Used() != r.Devices {
			of = ", of " + r.Devices
		}
		printFigures(out, &r.Predicted, width, r.Used(), "predicted", "", of)
		if r.Measured != nil {
			printFigures(out, r.Measured, width, "", "measured", fmt.Sprintf("%+.1f %%", *r.StepErrorPercent), "")
		}
		if len(r.Metered) > 0 {
			fmt.Fprintf(out, "%-*s %-10s %s\n", width, "", "metered", Metered(r.Metered))
		}
	}
	if c.By != "" {
		fmt.Fprintf(out, "each row is the plan of least %s that one search for all devices came by; with --devices of one kind it looks further there\n", c.By)
	}
	switch c.FrugalBasis {
	case "":
		fmt.Fprintf(out, "fastest on %s (as %s); joules are unknown: the platform names no powers for some device\n\n", c.Fastest, c.Basis)
	case c.Basis:
		fmt.Fprintf(out, "fastest on %s, fewest joules on %s (as %s)\n\n", c.Fastest, c.Frugal, c.Basis)
	default:
		fmt.Fprintf(out, "fastest on %s (as %s), fewest joules on %s (as %s, since not all sets have meters)\n\n", c.Fastest, c.Basis, c.Frugal, c.FrugalBasis)
	}
}

func printFigures(out io.Writer, f *plan.StepFigures, width int, devices, world, off, of string) {
	samples, perStep, perSample := "-", "-", "-"
	if f.SamplesPerS > 0 {
		samples = cli.WholeNumber(f.SamplesPerS)
	}
	if f.Basis != energy.Unavailable {
		perStep = cli.ShortJoules(f.JoulesPerStep)
		if f.JoulesPerSample > 0 {
			perSample = cli.ShortJoules(f.JoulesPerSample)
		}
	}
	fmt.Fprintf(out, "%-*s %-10s %10s %9s %10s %10s %10s  %s%s\n", width, devices, world, cli.ShowTime(f.StepS), off, samples, perStep, perSample, f.Basis, of)
}

// printSamples says where a run lies whose durations are drawn.
func printSamples(out io.Writer, s *plan.Samples) {
	if s.Missing != "" {
		fmt.Fprintf(out, "samples   none: %s\n", s.Missing)
		return
	}
	run, step, joules := &s.Makespan, &s.Step, &s.Energy
	fmt.Fprintf(out, "samples   %d with seed %d: run %s, 5–95 %% %s to %s; step %s, %s to %s; energy %s, %s to %s\n", s.Count, s.Seed,
		cli.ShowTime(run.Median), cli.ShowTime(run.Low), cli.ShowTime(run.High), cli.ShowTime(step.Median), cli.ShowTime(step.Low), cli.ShowTime(step.High),
		cli.ShortJoules(joules.Median), cli.ShortJoules(joules.Low), cli.ShortJoules(joules.High))
}

// ReasonsText says for what bytes moved: " (evict 34 kB, prefetch 1.2 MB)".
func ReasonsText(totals map[place.Reason]plan.TransferTotal) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(totals)) {
		if reason != "" {
			parts = append(parts, fmt.Sprintf("%s %s", reason, cli.ShortBytes(totals[reason].Bytes)))
		}
	}
	if parts == nil {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// ClocksText names the devices that do not run at their first clock: ", clock gpu0=slow".
func ClocksText(p *platform.Platform) string {
	if clocks := p.ClocksInForce(); clocks != nil {
		return ", clock " + strings.Join(clocks, ", ")
	}
	return ""
}

// PrintCompared prints what was compared and drawn.
func PrintCompared(out io.Writer, s *record.Summary) {
	if s.Samples != nil {
		printSamples(out, s.Samples)
	}
	if s.Devices != nil {
		PrintSets(out, s.Devices)
	}
}

// PrintEngines prints what a plan gives to each copy engine.
func PrintEngines(out io.Writer, plan *schedule.Plan) {
	for i, engine := range plan.Transfers {
		if i == 0 {
			fmt.Fprintf(out, "\n%-12s %7s %12s  %s\n", "engine", "copies", "bytes/step", "reasons")
		}
		var bytes int64
		count := map[string]int{}
		for _, c := range engine.Transfers {
			bytes += c.Bytes
			count[string(c.Reason)]++
		}
		fmt.Fprintf(out, "%-12s %7d %12s  %s\n", engine.Engine, len(engine.Transfers), cli.ShortBytes(bytes), MostFrequent(count, len(count)))
	}
}

// MostFrequent names the n most frequent operations and how often each occurs.
func MostFrequent(count map[string]int, n int) string {
	ops := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(count[b]-count[a], strings.Compare(a, b))
	})
	var parts []string
	for _, op := range ops {
		parts = append(parts, fmt.Sprintf("%d %s", count[op], op))
	}
	if len(parts) > n {
		parts = append(parts[:n], "…")
	}
	return strings.Join(parts, ", ")
}

// PrintData describes the training data and the images held out of it.
func PrintData(out io.Writer, data *train.Data) {
	d, held := data.Train, ""
	if d.HeldOut != "" && data.Test != nil {
		held = fmt.Sprintf(", %d held out (%s)", data.Test.Len(), d.HeldOut)
	}
	made := ""
	if d.MadeUp() {
		made = fmt.Sprintf("; random patterns, which teach little in a few epochs, so that an accuracy of %s %% is chance and no fault: write --data DIR for real ones (IDX files as MNIST's, CIFAR-10, pictures, an .npz file)", cli.ThreeDigits(100/float64(d.Classes)))
	}
	fmt.Fprintf(out, "data      %s: %s %s%s%s\n", d.Name, naming.Count(d.Len(), "training sample"), naming.JoinInts(d.Shape, "x"), held, made)
}

// PeerEnergyText prints the joules of a training by another program.
func PeerEnergyText(e *peer.Energy) string {
	if e.Unavailable != "" && len(e.Readings) == 0 {
		return "energy unavailable: " + e.Unavailable
	}
	text := "measured " + Readings(e.Readings)
	if e.Unavailable != "" {
		return text + ", and not of all: " + e.Unavailable
	}
	if above, ok := e.AboveIdle(); ok {
		text += fmt.Sprintf(", %s J above idle", cli.ThreeDigits(above))
	}
	return text
}
