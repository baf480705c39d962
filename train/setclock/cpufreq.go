package setclock

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"dahl/energy/meter"
)

// limits are the frequencies between which a CPU may run.
type limits struct {
	CPU    int   `json:"cpu"`
	MinKHz int64 `json:"min_khz"`
	MaxKHz int64 `json:"max_khz"`
}

// The files of a CPU that hold its limits.
const minFile, maxFile = "scaling_min_freq", "scaling_max_freq"

// cpufreq is a file of a CPU below the directory of all CPUs. The lists of the kernel's
// interface are in Documentation/admin-guide/pm/cpufreq.rst.
func (s *System) cpufreq(cpu int, file string) string {
	return filepath.Join(s.CPUs, "cpu"+strconv.Itoa(cpu), "cpufreq", file)
}

// readKHz reads the frequencies of a file.
func (s *System) readKHz(cpu int, file string) (all []int64, err error) {
	path := s.cpufreq(cpu, file)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, explain(err)
	}
	for word := range strings.FieldsSeq(string(text)) {
		khz, err := strconv.ParseInt(word, 10, 64)
		if err != nil || khz <= 0 {
			return nil, fmt.Errorf("%s holds %.40q, not a frequency in kHz", path, text)
		}
		all = append(all, khz)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s is empty", path)
	}
	return all, nil
}

// span reads the least and the greatest frequency from two files.
func (s *System) span(cpu int, least, most string) (limits, error) {
	low, err := s.readKHz(cpu, least)
	if err != nil {
		return limits{}, err
	}
	high, err := s.readKHz(cpu, most)
	if err != nil {
		return limits{}, err
	}
	return limits{cpu, low[0], high[0]}, nil
}

func (s *System) limitsOf(cpu int) (limits, error) { return s.span(cpu, minFile, maxFile) }

// settable refuses a frequency that a CPU does not have. It also refuses a CPU if its limits may not be
// written.
func (s *System) settable(cpu int, khz int64) error {
	if _, err := os.Stat(s.cpufreq(cpu, "")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the system sets no clock of cpu%d: it has no %s, as on a virtual machine or without a cpufreq driver", cpu, s.cpufreq(cpu, ""))
	}
	has, err := s.span(cpu, "cpuinfo_min_freq", "cpuinfo_max_freq")
	if err != nil {
		return err
	}
	nearest := min(max(khz, has.MinKHz), has.MaxKHz)
	steps, err := s.readKHz(cpu, "scaling_available_frequencies")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i, step := range steps {
		if i == 0 || distance(step, khz) < distance(nearest, khz) {
			nearest = step
		}
	}
	if nearest != khz {
		return fmt.Errorf("cpu%d cannot run at %s; the nearest that it has is %s", cpu, ghz(1e3*float64(khz)), ghz(1e3*float64(nearest)))
	}
	for _, file := range []string{minFile, maxFile} {
		f, err := os.OpenFile(s.cpufreq(cpu, file), os.O_WRONLY, 0)
		if err != nil {
			return explain(err)
		}
		f.Close()
	}
	return nil
}

// Range is the least and the greatest frequency to which a CPU may be set. If it may not be set, the
// error gives the reason.
func (s *System) Range(cpu int) (leastHz, mostHz float64, err error) {
	has, err := s.span(cpu, "cpuinfo_min_freq", "cpuinfo_max_freq")
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = s.settable(cpu, has.MaxKHz)
	}
	return 1e3 * float64(has.MinKHz), 1e3 * float64(has.MaxKHz), err
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// write is one number into one file of a CPU.
type write struct {
	file string
	khz  int64
}

// writes turn some limits into others. In their order the least frequency never exceeds the greatest.
func writes(now, want limits) [2]write {
	least, most := write{minFile, want.MinKHz}, write{maxFile, want.MaxKHz}
	if want.MinKHz > now.MaxKHz {
		return [2]write{most, least}
	}
	return [2]write{least, most}
}

// limit gives a CPU its limits, and reads them back.
func (s *System) limit(want limits) error {
	now, err := s.limitsOf(want.CPU)
	if err != nil || now == want {
		return err
	}
	for _, w := range writes(now, want) {
		f, err := os.OpenFile(s.cpufreq(want.CPU, w.file), os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			return explain(err)
		}
		_, err = fmt.Fprintln(f, w.khz)
		if err = errors.Join(err, f.Close()); err != nil {
			return explain(err)
		}
	}
	if now, err = s.limitsOf(want.CPU); err == nil && now != want {
		err = fmt.Errorf("cpu%d was given %d to %d kHz and took %d to %d", want.CPU, want.MinKHz, want.MaxKHz, now.MinKHz, now.MaxKHz)
	}
	return err
}

// explain says how rights that are missing are given.
func explain(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &meter.DeniedError{Err: err, What: "clocks are", Allow: "sudo chmod a+w /sys/devices/system/cpu/cpu*/cpufreq/scaling_{min,max}_freq"}
	}
	return err
}

// commands give CPUs their limits back by hand, one command for all CPUs with the same limits.
func (s *System) commands(all []limits) string {
	type group struct {
		writes [2]write
		cpus   []string
	}
	var groups []group
	for _, l := range all {
		now, err := s.limitsOf(l.CPU)
		if err != nil {
			now = limits{l.CPU, 0, math.MaxInt64}
		}
		w := writes(now, l)
		at := 0
		for at < len(groups) && groups[at].writes != w {
			at++
		}
		if at == len(groups) {
			groups = append(groups, group{writes: w})
		}
		groups[at].cpus = append(groups[at].cpus, strconv.Itoa(l.CPU))
	}
	var lines []string
	for _, g := range groups {
		cpus := g.cpus[0]
		if len(g.cpus) > 1 {
			cpus = "{" + strings.Join(g.cpus, ",") + "}"
		}
		for _, w := range g.writes {
			lines = append(lines, fmt.Sprintf("echo %d | sudo tee %s/cpu%s/cpufreq/%s", w.khz, s.CPUs, cpus, w.file))
		}
	}
	return strings.Join(lines, "; ")
}
