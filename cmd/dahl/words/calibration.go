package words

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"dahl/cmd/cli"
	"dahl/execute/calibrate"
	"dahl/platform"
	"dahl/platform/fit"
	"dahl/train"
)

func printProcessorPower(out io.Writer, m *calibrate.Power) {
	name, note := m.Device, ""
	if m.Clock != "" {
		name += " at clock " + m.Clock
	}
	if m.Disturbed {
		note = "; other processes ran meanwhile"
	}
	fmt.Fprintf(out, "%s: idle %s W, a product on one core %s W, on all %s W, by %s; %d repeats within %.1f %%%s\n", name,
		cli.ThreeDigits(m.IdleWatts), cli.ThreeDigits(m.OneWatts), cli.ThreeDigits(m.AllWatts), m.Meter, calibrate.PowerRepeats, 100*m.Spread, note)
}

// PrintDevice says what was found of a device with a memory of its own.
func PrintDevice(out io.Writer, p *platform.Platform, d *calibrate.Device, meters train.GPUMeters) {
	id, ok := p.DeviceByName(d.Device)
	if !ok {
		panic("dahl: a device was measured that the platform does not have")
	}
	capacity := "memory not limited"
	if d.CapacityBytes > 0 {
		capacity = fmt.Sprintf("%s, %s free", cli.ShortBytes(d.CapacityBytes), cli.ShortBytes(d.FreeBytes))
	}
	fmt.Fprintf(out, "\n%s: %s, %s\n", d.Device, d.Name, capacity)
	fmt.Fprintf(out, "  first use  opened in %s, kernels loaded and called for the first time in %s, memory reserved and written at %sB/s; in no other time\n",
		cli.ShortTime(d.FirstUse.Context), cli.ShortTime(d.FirstUse.Kernels), cli.ShortCount(d.FirstUse.MemoryBytesPerSec))
	l := &d.Launches
	fmt.Fprintf(out, "  launches   %s apart with events, %s each in a row; to a copy engine or back %s; from a core %s, to a core %s; there and back for the host %s\n",
		cli.ShortTime(l.Gap), cli.ShortTime(l.Chain), cli.ShortTime(l.Hop), cli.ShortTime(l.ToDevice), cli.ShortTime(l.ToHost), cli.ShortTime(l.RoundTrip))
	if timing := p.Devices[id].Timing; timing > 0 {
		fmt.Fprintf(out, "  timing     being timed adds %s to a task in steps\n", cli.ShortTime(timing))
	}
	printCopies(out, d)
	fmt.Fprintf(out, "  speed      memory %sB/s", cli.ShortCount(d.BytesPerSec))
	for _, elem := range slices.Sorted(maps.Keys(d.FlopsPerSec)) {
		fmt.Fprintf(out, ", %s %sF/s", elem, cli.ShortCount(d.FlopsPerSec[elem]))
	}
	fmt.Fprintln(out, " (largest product)")
	if p.Devices[id].IsEmulated() {
		fmt.Fprintln(out, "  kept       speed, memory and links of the file: they say what an emulated device is")
	} else if d.LinksKept {
		fmt.Fprintln(out, "  kept       the links of the file: several in a row cannot be told apart from their ends")
	}
	printPower(out, &p.Devices[id], d, meters)
}

// FitText is the line through the times of copies, with its errors.
func FitText(f *fit.Copies) string {
	return fmt.Sprintf("%s + bytes/%sB/s (±%.0f %%, at most %.0f %%)", cli.ShortTime(f.Latency), cli.ShortCount(f.BytesPerSec), 100*f.RelError, 100*f.MaxError)
}

func printCopies(out io.Writer, d *calibrate.Device) {
	c := &d.Copies
	fmt.Fprintf(out, "  copies     %s to %s: in %s, out %s, both %s\n", cli.ShortBytes(c.Sizes[0]), cli.ShortBytes(c.Sizes[len(c.Sizes)-1]), FitText(&c.InFit), FitText(&c.OutFit), FitText(&c.Fit))
	parts := []string{fmt.Sprintf("both directions at once take %.2f times as long: %s", c.BothWays, c.Sharing())}
	if c.Strided > 0 {
		parts = append(parts, fmt.Sprintf("rows of 4 KiB %.2f times", c.Strided))
	}
	if d.Crowded > 0 {
		parts = append(parts, fmt.Sprintf("beside the other devices %.2f times", d.Crowded))
	}
	fmt.Fprintf(out, "             %s\n", strings.Join(parts, ", "))
}

// printPower prints the measured power, or that it was not measured.
func printPower(out io.Writer, dev *platform.Device, d *calibrate.Device, meters train.GPUMeters) {
	if d.Energy == nil {
		source := "the platform has none"
		if dev.PowerSource != "" {
			source = fmt.Sprintf("those of the platform stay (%s)", dev.PowerSource)
		}
		fmt.Fprintf(out, "  power      no meter; powers: %s\n", source)
		return
	}
	fmt.Fprintf(out, "  power      idle %s W, largest product %s W (%s ± %s J) by %s; joules of kernels by class", cli.ThreeDigits(d.Energy.IdleWatts), cli.ThreeDigits(d.Energy.Watts),
		cli.ThreeDigits(d.Energy.Joules), cli.ThreeDigits(d.Energy.ErrorJoules), d.Energy.Meter)
	if g := meters.Of(dev); g != nil {
		fmt.Fprintf(out, "; clock %d MHz of %d, limit %g W, %d °C, as found", g.GPU.SMClockMHz, g.GPU.MaxSMClockMHz, g.GPU.PowerLimitWatts, g.GPU.TemperatureCelsius)
	}
	fmt.Fprintln(out)
}

// PrintPowers says what the meter showed of processors with measured units, or why their powers stay. noMeter says
// that it could not be read.
func PrintPowers(out io.Writer, r *calibrate.Result, units map[string]int, noMeter error) {
	p := r.Platform
	for i := range p.Devices {
		d := &p.Devices[i]
		if !d.IsProcessor() || units[d.Name] == 0 {
			continue
		}
		shown := false
		for j := range r.Powers {
			if m := &r.Powers[j]; m.Device == d.Name {
				shown = true
				printProcessorPower(out, m)
			}
		}
		switch {
		case shown:
		case noMeter != nil:
			fmt.Fprintf(out, "%s: its power stays (%s): %s\n", d.Name, cmp.Or(string(d.PowerSource), "not known"), cli.OneLine(noMeter))
		case d.PowerSource != platform.Measured:
			fmt.Fprintf(out, "%s: its power stays (%s): the meter counts all cores, so that none may be left out, and must show more when they are busy\n", d.Name, cmp.Or(string(d.PowerSource), "not known"))
		}
	}
}
