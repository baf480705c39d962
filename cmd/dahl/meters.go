package main

import (
	"fmt"
	"log/slog"
	"strings"

	"dahl/energy"
	"dahl/platform"
)

// processorsMeter names what RAPL covers: the packages of all processors.
const processorsMeter = "processors"

// metering is the meters of a platform's devices, which run beside a training;
// without a meter it does nothing.
type metering struct {
	recorder *energy.Recorder
	states   []deviceState
	gpus     *gpuMeters // nil: none
}

// deviceState is what the driver of a device says of it while it is used.
type deviceState struct {
	Device string `json:"device"`
	energy.GPU
}

// startMeters opens the meters of this machine that may be read, of its processors and
// of the platform's GPUs, and begins to read them.
func startMeters(p *platform.Platform) *metering {
	m := &metering{gpus: openGPUs(p)}
	var metered []energy.Metered
	if rapl, err := energy.OpenRAPL(energy.PowercapRoot); err == nil {
		metered = append(metered, energy.Metered{Of: processorsMeter, Meter: rapl})
	}
	if m.gpus != nil {
		for i := range p.Devices {
			d := &p.Devices[i]
			if g := m.gpus.of(d); g != nil {
				metered = append(metered, g.Metered(d.Name))
				m.states = append(m.states, deviceState{d.Name, g.GPU})
			} else if d.Kind == "cuda" {
				slog.Warn("no meter is at the bus address of " + d.Name)
			}
		}
	}
	m.recorder = energy.Record(metered)
	return m
}

// stop ends the metering; with an error what still was counted is in the outcome.
func (m *metering) stop(o *outcome) error {
	var err error
	o.Readings, err = m.recorder.Stop()
	o.GPUs = m.states
	m.gpus.close()
	return err
}

// covers reports whether there is a reading for every device that runs layers, so that
// their sum stands for the run.
func covers(readings []energy.Reading, p *platform.Platform) bool {
	read := map[string]bool{}
	for _, r := range readings {
		read[r.Of] = true
	}
	for i := range p.Devices {
		of := p.Devices[i].Name
		if p.Devices[i].Kind == "cpu" {
			of = processorsMeter
		}
		if !p.Devices[i].PlacedOnly && !read[of] {
			return false
		}
	}
	return len(readings) > 0
}

// readingsText prints what each meter counted: "12.1 J of processors by RAPL, 40 J of
// gpu0 by … (38 J by …: 5 % apart)".
func readingsText(readings []energy.Reading) string {
	var parts []string
	for _, r := range readings {
		text := fmt.Sprintf("%s ± %s J of %s by %s", threeDigits(r.Joules), threeDigits(r.ErrorJoules), r.Of, r.Meter)
		if s := r.Second; s != nil {
			text += fmt.Sprintf(" (%s J by %s: %+.1f %%)", threeDigits(s.Joules), s.Meter, s.DisagreementPercent)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// warn tells the user what goes on all the same, and why not as it should.
func warn(what string, reason error) { slog.Warn(what, "reason", oneLine(reason)) }
