package exchange

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/rundir/durable"
)

// StarPU keeps what it measured of a machine in a directory: sampling/bus has HOST.config, HOST.bandwidth and HOST.latency, and
// sampling/codelets/VERSION has a file for each performance model, SYMBOL.HOST.

// starpuVersion is the version of performance models that is read: the one of StarPU 1.2 and later.
const starpuVersion = "45"

// starpuKinds are the types of devices in performance models. The others have no kind here.
var starpuKinds = map[string]string{"0": platform.CPU, "1": platform.CUDA}

// starpuMachine is a machine in the making.
type starpuMachine struct {
	*file
	p      platform.Platform
	device map[string]int // by name
}

func newStarpuMachine(f *file, name string) *starpuMachine {
	return &starpuMachine{f, platform.Platform{Name: name, Memories: []platform.Memory{{Name: "ram", Host: true}}}, map[string]int{}}
}

// add adds a device with units. Each device that is no processor has a memory of its own.
func (m *starpuMachine) add(name, kind string, units int) {
	d := platform.Device{Name: name, Kind: kind, Count: units}
	if kind != platform.CPU {
		d.Memory = platform.MemoryID(len(m.p.Memories))
		m.p.Memories = append(m.p.Memories, platform.Memory{Name: name + ".mem"})
	}
	m.device[name] = len(m.p.Devices)
	m.p.Devices = append(m.p.Devices, d)
}

// finish hands the machine over.
func (m *starpuMachine) finish() error {
	if err := m.p.Complete(); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	m.machine = &m.p
	return nil
}

// readStarpuMachine reads HOST.config, and from files near it the links and the performance models of the same host.
func (f *file) readStarpuMachine(src []byte) error {
	host := f.stem()
	m := newStarpuMachine(f, host)
	counts, err := f.starpuCounts(src)
	if err != nil {
		return err
	}
	gpus := counts["CUDA devices"]
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		if what != "CPUs" && what != "CUDA devices" && what != "NUMA nodes" {
			f.leave(what, counts[what])
		}
	}
	if cores := counts["CPUs"] - gpus; cores > 0 {
		m.add(platform.CPU, platform.CPU, cores)
	}
	for i := range gpus {
		m.add(platform.CUDA+strconv.Itoa(i), platform.CUDA, 1)
	}
	if err := m.links(max(1, counts["NUMA nodes"]), gpus); err != nil {
		return err
	}
	models, err := filepath.Glob(filepath.Join(filepath.Dir(f.name), "..", "codelets", starpuVersion, "*."+host))
	if err != nil {
		return fmt.Errorf("%s: the performance models beside it: %w", f.name, err)
	}
	for _, path := range models {
		src, err := f.further(path)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if err := m.models(path, src); err != nil {
			return err
		}
	}
	return m.finish()
}

// further reads another file of the same host.
func (f *file) further(path string) ([]byte, error) {
	in, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return f.Room.ReadAll(in, graphFactor)
}

// starpuCounts reads lines such as "3 # Number of CUDA devices".
func (f *file) starpuCounts(src []byte) (map[string]int, error) {
	counts := map[string]int{}
	for i, line := range strings.Split(string(src), "\n") {
		number, what, _ := strings.Cut(line, "# Number of ")
		if number = strings.TrimSpace(number); number == "" || number[0] == '#' {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n > 4096 {
			return nil, f.errorf(i+1, "%q is no number of devices; write 0 to 4096", number)
		}
		counts[strings.TrimSpace(what)] = n
	}
	if counts["CPUs"]+counts["CUDA devices"] == 0 {
		return nil, f.errorf(1, "no line has a number of CPUs or CUDA devices")
	}
	return counts, nil
}

// links adds a link for each way between two memories, and one that all of them share, as StarPU's own files for SimGrid have.
func (m *starpuMachine) links(numa, gpus int) error {
	m.leave("NUMA nodes beyond the first", numa-1)
	stem := strings.TrimSuffix(m.name, filepath.Ext(m.name))
	bandwidth, err := m.matrix(stem+".bandwidth", numa+gpus)
	if err != nil {
		return err
	}
	latency, err := m.matrix(stem+".latency", numa+gpus)
	if err != nil {
		return err
	}
	if bandwidth == nil || latency == nil {
		m.leave("links of devices, since HOST.bandwidth or HOST.latency is not there", gpus)
		for i := range m.p.Devices {
			m.p.Devices[i].Unreachable = m.p.Devices[i].Memory != 0
		}
		return nil
	}
	m.p.Links = []platform.Link{{Name: "host"}}
	row := func(memory int) int { return min(memory, 1) * (numa - 1 + memory) } // the others stand behind the NUMA nodes
	for from := range m.p.Memories {
		for to := range m.p.Memories {
			speed, us := bandwidth[row(from)][row(to)]*1e6, latency[row(from)][row(to)]
			if from == to || !(speed > 0) {
				continue
			}
			name := m.p.Memories[from].Name + "-" + m.p.Memories[to].Name
			m.p.Links = append(m.p.Links, platform.Link{Name: name, BandwidthBytesPerSec: speed, Latency: time.Duration(math.Round(min(max(0, us), 1e9) * nsPerUs))})
			m.p.Links[0].BandwidthBytesPerSec = max(m.p.Links[0].BandwidthBytesPerSec, speed)
			m.p.Routes = append(m.p.Routes, platform.Route{From: platform.MemoryID(from), To: platform.MemoryID(to), OneWay: true,
				Links: []platform.LinkID{platform.LinkID(len(m.p.Links) - 1), 0}})
		}
	}
	if len(m.p.Routes) == 0 {
		m.p.Links = nil
	}
	return nil
}

// matrix reads the first nodes of a table of all pairs of memory nodes; nil where there is no file.
func (m *starpuMachine) matrix(path string, nodes int) (rows [][]float64, err error) {
	src, err := m.further(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	of := &file{name: path}
	for i, line := range strings.Split(string(src), "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" || len(rows) == nodes {
			continue
		}
		if len(fields) < nodes {
			return nil, of.errorf(i+1, "%d numbers of %d memory nodes; write one for each", len(fields), nodes)
		}
		row := make([]float64, nodes)
		for j := range row {
			if row[j], err = strconv.ParseFloat(fields[j], 64); err != nil {
				return nil, of.errorf(i+1, "%q is no number", fields[j])
			}
		}
		rows = append(rows, row)
	}
	if len(rows) < nodes {
		return nil, of.errorf(1, "%d lines of %d memory nodes; write one for each", len(rows), nodes)
	}
	return rows, nil
}

// readStarpuModel reads one performance model by itself: a machine of the devices that it was measured on, without links.
func (f *file) readStarpuModel(src []byte) error {
	symbol, host, _ := strings.Cut(filepath.Base(f.name), ".")
	m := newStarpuMachine(f, cmp.Or(clean(host), clean(symbol), "machine"))
	if err := m.models(f.name, src); err != nil {
		return err
	}
	if len(m.p.Devices) == 0 {
		return fmt.Errorf("%s: no model of a processor or a CUDA device", f.name)
	}
	for i := range m.p.Devices {
		m.p.Devices[i].Unreachable = m.p.Devices[i].Memory != 0
	}
	m.leave("links and numbers of units, which bus/HOST.config has", 1)
	return m.finish()
}

// starpuScanner reads the lines of a performance model that are no comments.
type starpuScanner struct {
	*file
	lines [][]byte
	line  int
}

// next gives the words of the next line; nil at the end.
func (s *starpuScanner) next() []string {
	for s.line < len(s.lines) {
		fields := strings.Fields(string(s.lines[s.line]))
		s.line++
		if len(fields) > 0 && fields[0][0] != '#' {
			return fields
		}
	}
	return nil
}

// count reads a line that has one number.
func (s *starpuScanner) count(what string) (int, error) {
	fields := s.next()
	if len(fields) != 1 {
		return 0, s.errorf(s.line, "%d words stand where %s has to", len(fields), what)
	}
	n, err := strconv.Atoi(fields[0])
	if err != nil || n < 0 || n > 1<<20 {
		return 0, s.errorf(s.line, "%s is %q; write a number from 0 to %d", what, fields[0], 1<<20)
	}
	return n, nil
}

// models adds a model for each footprint and device in a file.
func (m *starpuMachine) models(path string, src []byte) error {
	s := &starpuScanner{file: &file{name: path}, lines: bytes.Split(src, []byte{'\n'})}
	symbol, _, _ := strings.Cut(filepath.Base(path), ".")
	if version := s.next(); len(version) != 1 || version[0] != starpuVersion {
		return s.errorf(s.line, "a performance model of version %s; make one with StarPU 1.2 or later, which writes version %s", strings.Join(version, " "), starpuVersion)
	}
	combinations, err := s.count("the number of combinations")
	for range combinations {
		if err == nil {
			err = m.combination(s, symbol)
		}
	}
	return err
}

// combination reads the models of one combination of devices. Combinations of several devices or cores are left out.
func (m *starpuMachine) combination(s *starpuScanner, symbol string) error {
	devices, err := s.count("the number of devices")
	if err != nil {
		return err
	}
	device := ""
	for range devices {
		kind, id, cores := s.next(), s.next(), s.next()
		if len(kind) != 1 || len(id) != 1 || len(cores) != 1 {
			return s.errorf(s.line, "a device is not a line each for type, id and number of cores")
		}
		switch of, known := starpuKinds[kind[0]]; {
		case !known || devices > 1 || cores[0] != "1":
			device = ""
		case of == platform.CPU:
			device = platform.CPU
		default:
			device = of + id[0]
		}
	}
	implementations, err := s.count("the number of implementations")
	if err != nil {
		return err
	}
	for variant := range implementations {
		if err := m.implementation(s, symbol, device, variant); err != nil {
			return err
		}
	}
	return nil
}

// implementation reads the entries of one implementation on one device.
func (m *starpuMachine) implementation(s *starpuScanner, symbol, device string, variant int) error {
	entries, err := s.count("the number of entries")
	if err != nil {
		return err
	}
	if linear := s.next(); len(linear) > 6 && linear[6] != "0" {
		m.leave("regressions", 1)
	}
	multiple := s.next() // a power law has three numbers in a line; a regression over several parameters has their count, before that line or behind it
	if power := s.next(); len(power) == 1 {
		multiple = power
	}
	if len(multiple) != 1 || multiple[0] != "0" {
		return s.errorf(s.line, "a multiple regression; measure the codelet with a history instead")
	}
	for range entries {
		fields := s.next()
		if len(fields) != 8 {
			return s.errorf(s.line, "an entry of %d words; write hash, size, flops, mean, dev, sum, sum2 and n", len(fields))
		}
		if _, err := strconv.ParseUint(fields[0], 16, 64); err != nil {
			return s.errorf(s.line, "the hash of an entry is %q; write a number of hexadecimal digits", fields[0])
		}
		var values [7]float64
		for i := range values {
			if values[i], err = strconv.ParseFloat(fields[i+1], 64); err != nil {
				return s.errorf(s.line, "%q is no number", fields[i+1])
			}
		}
		size, flops, mean, n := values[0], values[1], values[2], values[6]
		switch _, known := m.device[device]; {
		case !(n > 0 && n < math.MaxInt32 && mean > 0 && mean < 1e15 && size >= 0 && size < maxAmount && flops >= 0 && flops < 1e30):
			m.leave("entries without a measurement", 1)
			continue
		case device == "":
			m.leave("models of other devices or of several at once", 1)
			continue
		case !known && m.machineIsKnown():
			m.leave("models of devices that the machine has not", 1)
			continue
		case !known:
			kind := strings.TrimRight(device, "0123456789")
			m.add(device, kind, 1)
		}
		model := platform.Model{Op: symbol, Type: dag.Float32.String(), Device: device, Shape: fields[0], Active: 1, MedianNs: mean * nsPerUs, Count: int(n), Flops: flops, MovedBytes: int64(size)}
		if variant > 0 {
			model.Variant = "impl" + strconv.Itoa(variant)
		}
		m.p.Models = append(m.p.Models, model)
	}
	return nil
}

// machineIsKnown reports whether a file said which devices the machine has.
func (m *starpuMachine) machineIsKnown() bool { return strings.HasSuffix(m.name, ".config") }
