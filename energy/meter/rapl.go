package meter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// PowercapRoot is where Linux shows the energy counters of the processor.
const PowercapRoot = "/sys/class/powercap"

// ErrNoCounter is wrapped by the error of a machine without counters of its packages.
var ErrNoCounter = errors.New("no package counter")

// raplMeter adds up the package domains of RAPL, the running average power limit
// interface of Intel and AMD processors. A package is a processor with its caches
// and memory controller, without the memory modules.
type raplMeter struct {
	packages []raplPackage
	read     readFile
}

// readFile is os.ReadFile, or what a test has in its place.
type readFile func(path string) ([]byte, error)

// raplPackage is the counter of one.
type raplPackage struct {
	Counter
	path string
}

// packageTDPWatts is the designed power of a package that does not say it: as much as any has.
const packageTDPWatts = 500

// OpenRAPL opens the package counters under a powercap directory (PowercapRoot). It takes
// packages only: cores and graphics are parts of them, and the memory-mapped twin of a package
// counts the same joules again. Counting starts now. Read the meter more often than a counter
// wraps: a full range is about 260 kJ, so once in several minutes.
func OpenRAPL(root string) (Meter, error) { return openRAPL(root, os.ReadFile) }

func openRAPL(root string, read readFile) (Meter, error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, explain(err)
	}
	m := &raplMeter{read: read}
	for _, e := range entries {
		zone, ok := strings.CutPrefix(e.Name(), "intel-rapl:")
		if !ok || strings.Contains(zone, ":") {
			continue // another kind of counter, or a part of a package
		}
		dir := filepath.Join(root, e.Name())
		name, err := read(filepath.Join(dir, "name"))
		if err != nil {
			return nil, explain(err)
		}
		if !strings.HasPrefix(string(name), "package-") {
			continue // the whole platform, which contains the packages
		}
		p := raplPackage{path: filepath.Join(dir, "energy_uj")}
		p.Name = "RAPL " + strings.TrimSpace(string(name))
		if p.RangeUj, err = read.counter(filepath.Join(dir, "max_energy_range_uj")); err != nil {
			return nil, err
		}
		if _, err = read.counter(p.path); err != nil {
			return nil, err
		}
		p.TDPWatts, p.TDPFrom = read.designedPower(dir)
		m.packages = append(m.packages, p)
	}
	if len(m.packages) == 0 {
		return nil, fmt.Errorf("open RAPL: %w under %s: no Intel or AMD processor, a virtual machine, or the module intel_rapl_msr is not loaded", ErrNoCounter, root)
	}
	return m, nil
}

// designedPower is the greatest power that a package says it is made for, or is limited to. Boards without a
// limit write one of thousands of watts, which says nothing.
func (read readFile) designedPower(dir string) (watts float64, from string) {
	for _, kind := range []string{"max_power_uw", "power_limit_uw"} {
		for constraint := range 4 { // Linux has up to three
			file := fmt.Sprintf("constraint_%d_%s", constraint, kind)
			uw, err := read.counter(filepath.Join(dir, file))
			if says := float64(uw) / 1e6; err == nil && says > watts && (kind == "max_power_uw" || says <= packageTDPWatts) {
				watts, from = says, file
			}
		}
	}
	if watts == 0 {
		return packageTDPWatts, "taken for a package that does not say it"
	}
	return watts, from
}

func (read readFile) counter(path string) (uint64, error) {
	text, err := read(path)
	if err != nil {
		return 0, explain(err)
	}
	v, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read RAPL: %s holds %.40q, not a number of microjoules", path, text)
	}
	return v, nil
}

func explain(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &DeniedError{fmt.Errorf("read RAPL: %w", err), "the counters are", fmt.Sprintf("sudo chmod a+r %s/intel-rapl:*/energy_uj", PowercapRoot)}
	}
	return fmt.Errorf("read RAPL: %w", err)
}

func (m *raplMeter) Name(counters int) string {
	if counters == 1 {
		return "RAPL (1 package)"
	}
	return fmt.Sprintf("RAPL (%d packages)", counters)
}

func (m *raplMeter) Counters() (all []Counter) {
	for i := range m.packages {
		all = append(all, m.packages[i].Counter)
	}
	return all
}

func (m *raplMeter) Read(uj []uint64) (err error) {
	for i := range m.packages {
		if uj[i], err = m.read.counter(m.packages[i].path); err != nil {
			return err
		}
	}
	return nil
}

// raplUpdate is about how often the processors update the counters.
const raplUpdate = time.Millisecond

func (m *raplMeter) Update() time.Duration { return raplUpdate }

func (m *raplMeter) Close() error { return nil }
