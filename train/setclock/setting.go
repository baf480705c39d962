package setclock

import (
	"fmt"

	"dahl/platform"
)

// Setting is one clock of a device of a platform, as an index of its Clocks.
type Setting struct {
	Device platform.DeviceID
	Clock  platform.ClockID
}

// InForce lists the settings that a platform wants for a whole run, see [Used].
func InForce(p *platform.Platform) []Setting { return Used(p, p.ClocksUsed()) }

// Used lists the settings at which devices run, from their clocks. Emulated devices, and first clocks
// without a frequency, are left out.
func Used(p *platform.Platform, clocks [][]platform.ClockID) (all []Setting) {
	for id := range p.Devices {
		d := &p.Devices[id]
		for _, clock := range clocks[id] {
			if !d.IsEmulated() && (clock > 0 || d.ClockAt(clock).FrequencyHz > 0) {
				all = append(all, Setting{platform.DeviceID(id), clock})
			}
		}
	}
	return all
}

// Name names a setting: "cpu=slow".
func (s Setting) Name(p *platform.Platform) string {
	d := &p.Devices[s.Device]
	return d.Name + "=" + d.Clocks[s.Clock].Name
}

// Text is its name and frequency: "cpu=slow at 1.2 GHz".
func (s Setting) Text(p *platform.Platform) string {
	return s.Name(p) + " at " + ghz(p.Devices[s.Device].Clocks[s.Clock].FrequencyHz)
}

func ghz(hz float64) string { return fmt.Sprintf("%g GHz", hz/1e9) }

// check refuses settings that nobody can set: a clock without a frequency, and two of one device.
func check(p *platform.Platform, settings []Setting) error {
	of := map[platform.DeviceID]platform.ClockID{}
	for _, s := range settings {
		d := &p.Devices[s.Device]
		if d.IsEmulated() {
			continue
		}
		if other, given := of[s.Device]; given && other != s.Clock {
			return fmt.Errorf("device %q is to change between its clocks %q and %q within the run, and is set to one for all of it", d.Name, d.Clocks[other].Name, d.Clocks[s.Clock].Name)
		}
		of[s.Device] = s.Clock
		if d.Clocks[s.Clock].FrequencyHz == 0 {
			key := "frequency"
			if s.Clock == 0 {
				key = "clock_frequency"
			}
			return fmt.Errorf("clock %q of device %q says no frequency to be set to; write %s = \"1.2 GHz\" there", d.Clocks[s.Clock].Name, d.Name, key)
		}
	}
	return nil
}
