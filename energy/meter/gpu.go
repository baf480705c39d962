package meter

import "fmt"

// GPU describes one GPU at a moment, by the management library. A value that the board does not
// tell is zero.
type GPU struct {
	Name               string  `json:"name"`
	UUID               string  `json:"uuid"`
	Driver             string  `json:"driver"`
	PCIBus             string  `json:"pci_bus"` // domain:bus:device.function
	SMClockMHz         int     `json:"sm_clock_mhz"`
	MaxSMClockMHz      int     `json:"max_sm_clock_mhz"`
	MemoryClockMHz     int     `json:"memory_clock_mhz"`
	PowerLimitWatts    float64 `json:"power_limit_watts"`
	PowerWatts         float64 `json:"power_watts"`
	TemperatureCelsius int     `json:"temperature_celsius"`
}

// GPUMeters are the two ways to read the joules of one GPU: the counter of energy, which boards
// have since Volta, and the integral of their power. They can differ by tens of percent, since
// some boards sample their power only part of the time (Z. Yang, K. Adamek, W. Armour, Accurate
// and convenient energy measurements for GPUs, SC 2024, arXiv 2312.02741). One of them may be
// nil.
type GPUMeters struct {
	GPU     GPU   // when it was opened
	Err     error // of a board without a meter; nil means that it has one
	Counter Meter
	Power   Meter
	Celsius func() (float64, error) // the present temperature; nil without a sensor
}

// Metered orders the two ways for a Recorder, for the named consumer. The counter comes first,
// since it misses nothing between two reads.
func (g *GPUMeters) Metered(of string) Metered {
	m := Metered{Of: of, Meter: g.Counter, Second: g.Power, Every: GPUSampleInterval, Celsius: g.Celsius, Err: g.Err}
	if m.Meter == nil {
		m.Meter, m.Second = g.Power, nil
	}
	return m
}

// Library manages boards: it reads their meters and sets their clocks.
type Library struct {
	// Open opens the meters of all boards that the library shows. Without a driver or a board the
	// error says why there are none. Close closes what one call has opened.
	Open  func() ([]GPUMeters, error)
	Close func() error

	// ClockRange is the least and the greatest clock, in MHz, of a board at full power.
	ClockRange func(uuid string) (leastMHz, mostMHz int, err error)
	// LockClock holds the clock of a board at the supported one that is nearest, until UnlockClock
	// or the end of the driver. A library need not tell what was locked before.
	LockClock func(uuid string, mhz int) error
	// UnlockClock leaves the clock of a board to its driver.
	UnlockClock func(uuid string) error
}

// openBoards opens the meters of n GPUs. A GPU without a meter, or with a meter that may not be opened,
// keeps its place, with the error.
func openBoards(n int, open func(i int) (GPUMeters, error)) []GPUMeters {
	gpus := make([]GPUMeters, n)
	for i := range gpus {
		var err error
		if gpus[i], err = open(i); err != nil {
			gpus[i] = GPUMeters{GPU: gpus[i].GPU, Err: fmt.Errorf("GPU %d: %w", i, err)}
		}
	}
	return gpus
}

// boardTDPWatts is the designed power of a board that does not say it: as much as any has.
const boardTDPWatts = 1200

// designedPower is the power to which a board is limited.
func (g *GPU) designedPower() (watts float64, from string) {
	if g.PowerLimitWatts > 0 {
		return g.PowerLimitWatts, "its power limit"
	}
	return boardTDPWatts, "taken for a board that does not say it"
}
