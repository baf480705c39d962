package main

import (
	"cmp"
	"fmt"
	"io"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/words"
	"dahl/execute"
	"dahl/platform"
)

// checkCores refuses to measure more units of processors than this machine has: all of
// them at once, they would wait for each other.
func checkCores(p *platform.Platform, units map[string]int) error {
	here, err := execute.Detect()
	if err != nil {
		return err
	}
	wanted, most := 0, here.Devices[0].Count
	for i := range p.Devices {
		if d := &p.Devices[i]; d.IsProcessor() {
			wanted += units[d.Name]
		}
	}
	if wanted > most {
		return cli.InputErrorf("%d cores of %q are to be measured, and this machine has %d; choose them with --devices, such as %s:%d", wanted, p.Name, most, here.Devices[0].Name, most)
	}
	return nil
}

// printPowers says what the meter of the processors showed, or why their powers stay; noMeter says
// that it could not be read.
func (f *calibrateFlags) printPowers(out io.Writer, noMeter error) {
	p := f.sum.Platform
	for i := range p.Devices {
		d := &p.Devices[i]
		if !d.IsProcessor() || f.units[d.Name] == 0 {
			continue
		}
		shown := false
		for j := range f.sum.Powers {
			if m := &f.sum.Powers[j]; m.Device == d.Name {
				shown = true
				words.PrintProcessorPower(out, m)
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
