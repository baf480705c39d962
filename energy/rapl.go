package energy

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

// raplPackage is one counter of microjoules. It counts up and starts again from 0
// after rangeUj.
type raplPackage struct {
	path    string
	rangeUj uint64
	last    uint64
	sumUj   uint64
}

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
		if p.rangeUj, err = read.counter(filepath.Join(dir, "max_energy_range_uj")); err != nil {
			return nil, err
		}
		if p.last, err = read.counter(p.path); err != nil {
			return nil, err
		}
		m.packages = append(m.packages, p)
	}
	if len(m.packages) == 0 {
		return nil, fmt.Errorf("open RAPL: %w under %s: no Intel or AMD processor, a virtual machine, or the module intel_rapl_msr is not loaded", ErrNoCounter, root)
	}
	return m, nil
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

func (m *raplMeter) Name() string {
	if len(m.packages) == 1 {
		return "RAPL (1 package)"
	}
	return fmt.Sprintf("RAPL (%d packages)", len(m.packages))
}

func (m *raplMeter) Joules() (float64, error) {
	var sum uint64
	for i := range m.packages {
		p := &m.packages[i]
		now, err := m.read.counter(p.path)
		if err != nil {
			return 0, err
		}
		if now < p.last { // the counter wrapped once
			if p.last > p.rangeUj {
				return 0, fmt.Errorf("read RAPL: %s fell from %d to %d and its range is only %d", p.path, p.last, now, p.rangeUj)
			}
			p.sumUj += p.rangeUj - p.last + now
		} else {
			p.sumUj += now - p.last
		}
		p.last = now
		sum += p.sumUj
	}
	return float64(sum) / 1e6, nil
}

// raplUpdate is about how often the processors update the counters.
const raplUpdate = time.Millisecond

func (m *raplMeter) Update() time.Duration { return raplUpdate }

func (m *raplMeter) Close() error { return nil }
