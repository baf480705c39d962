package energy

import (
	"slices"

	"dahl/energy/meter"
	"dahl/platform"
)

// ProcessorsMeter names what RAPL covers: the packages of all processors.
const ProcessorsMeter = "processors"

// MeterOf names the meter that reads a device: for processors the meter of all packages.
func MeterOf(d *platform.Device) string {
	if d.IsProcessor() {
		return ProcessorsMeter
	}
	return d.Name
}

// MeterError compares a meter with the model of the same span: the mean power of the consumers that
// the meter covers, by the platform's powers over the schedule, times the seconds of the reading.
// So the schedule stands for all that ran meanwhile.
type MeterError struct {
	Of           string  `json:"of"`
	Meter        string  `json:"meter"`
	Seconds      float64 `json:"seconds"`
	MeterJoules  float64 `json:"meter_joules"`
	ModelJoules  float64 `json:"model_joules"`
	ErrorPercent float64 `json:"error_percent"` // of the model, relative to the meter
}

// MeterWatts is the mean power over the schedule of what each meter may cover, by the platform's
// powers. Devices whose power is not known are left out.
func (r *Report) MeterWatts(p *platform.Platform) map[string]float64 {
	watts := map[string]float64{}
	for i, e := range r.ByDevice {
		if e.Basis != Unavailable && r.MakespanSeconds > 0 {
			watts[MeterOf(&p.Devices[i])] += e.Joules / r.MakespanSeconds
		}
	}
	return watts
}

// AddReadings notes the readings of meters, and compares the given consumers with the model. A meter that counts more than the
// model's devices, such as cores outside the platform, is not to be compared.
func (r *Report) AddReadings(p *platform.Platform, readings []meter.Reading, compared []string) {
	r.Readings = append(r.Readings, readings...)
	watts := r.MeterWatts(p)
	for i := range readings {
		m := &readings[i]
		model, ok := watts[m.Of]
		if !ok || m.Joules <= 0 || !slices.Contains(compared, m.Of) {
			continue
		}
		model *= m.Seconds
		r.Metered = append(r.Metered, MeterError{m.Of, m.Meter, m.Seconds, m.Joules, model, 100 * (model/m.Joules - 1)})
	}
}
