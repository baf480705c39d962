package setclock

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dahl/execute/hardware"
	"dahl/platform"
	"dahl/rundir/durable"
)

// System is a machine whose clocks are set.
type System struct {
	CPUs  string // directory of the CPUs, as Linux shows them
	State string // directory of the user's for the earlier clocks
	Boot  string // names the last start of this machine, which reset all clocks

	boards boards
}

// lockFile is held by the process that sets clocks.
const lockFile = "clocks.lock"

// Here is this machine. The state is kept where the XDG base directory specification has it.
func Here() (*System, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("clocks are set on Linux only: %w", err)
	}
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("finding a directory in which clocks are saved before they are set: %w; set XDG_STATE_HOME", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return &System{CPUs: "/sys/devices/system/cpu", State: filepath.Join(state, "dahl"), Boot: strings.TrimSpace(string(boot))}, nil
}

// stateFile holds the earlier clocks. After another start of the machine it means nothing.
func (s *System) stateFile() string { return "clocks-" + s.Boot + ".json" }

// state is the state before clocks were set: limits of CPUs, and GPUs without a lock.
type state struct {
	CPUs []limits `json:"cpus,omitempty"`
	GPUs []string `json:"gpus,omitempty"`
}

// Held is the hold of a process on the clocks of a machine.
type Held struct {
	system *System
	dir    *durable.Dir
	lock   *durable.File
	saved  state
}

// Recover restores the clocks if a process that had set them was killed, and logs it.
func (s *System) Recover() error {
	if _, err := os.Stat(filepath.Join(s.State, s.stateFile())); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	h, err := s.Begin()
	if err != nil {
		return err
	}
	return h.Restore()
}

// Begin takes hold of the clocks; no other process of the user may hold them. If the last one was
// killed, its clocks are restored first.
func (s *System) Begin() (*Held, error) {
	s.boards = cmp.Or[boards](s.boards, managed{})
	dir, err := durable.MakeDir(s.State)
	if err != nil {
		return nil, err
	}
	h := &Held{system: s, dir: dir}
	host, _ := os.Hostname() // for a message
	if h.lock, err = dir.Lock(lockFile, fmt.Sprintf("process %d on %s", os.Getpid(), host)); err != nil {
		dir.Close()
		if errors.As(err, new(durable.HeldError)) {
			err = fmt.Errorf("another run has set the clocks of this machine: %w", err)
		}
		return nil, err
	}
	if err = h.load(); err == nil && !h.saved.empty() {
		if err = h.restore(); err == nil {
			slog.Warn("a run that was killed had set clocks; they are again what they were before it", "saved", filepath.Join(s.State, s.stateFile()))
		}
	}
	if err != nil {
		h.release()
		return nil, err
	}
	return h, nil
}

func (s *state) empty() bool { return len(s.CPUs)+len(s.GPUs) == 0 }

// load reads the state that a killed process has left.
func (h *Held) load() error {
	f, err := h.dir.Open(h.system.stateFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err == nil {
		err = json.Unmarshal(data, &h.saved)
	}
	if err != nil {
		return fmt.Errorf("reading %s, which says what clocks were before a run set them: %w", f.Name(), err)
	}
	return nil
}

// target is the object of a setting: CPUs at a frequency, or a GPU.
type target struct {
	cpus []limits
	uuid string
	mhz  int
}

// Set saves the clocks, sets devices to others, and restores all clocks that an earlier call has set.
// Emulated devices obey the clock in force by themselves, and are left out. With an error some clocks
// may be set, and Restore gives them back.
func (h *Held) Set(p *platform.Platform, settings []Setting) error {
	if err := check(p, settings); err != nil {
		return err
	}
	var targets []target
	for _, s := range settings {
		d := &p.Devices[s.Device]
		if d.IsEmulated() {
			continue
		}
		t, err := h.target(p, s)
		if err != nil {
			return fmt.Errorf("device %q cannot be set to its clock %q: %w", d.Name, d.Clocks[s.Clock].Name, err)
		}
		targets = append(targets, t)
	}
	if !h.saved.empty() {
		if err := h.restore(); err != nil {
			return err
		}
	}
	if err := h.save(targets); err != nil {
		return err
	}
	for _, t := range targets {
		for _, l := range t.cpus {
			if err := h.system.limit(l); err != nil {
				return err
			}
		}
		if t.uuid != "" {
			if err := h.system.boards.lock(t.uuid, t.mhz); err != nil {
				return err
			}
		}
	}
	return h.system.checkShared(targets)
}

// checkShared refuses CPUs if they share one clock and were set to several.
func (s *System) checkShared(targets []target) error {
	for _, t := range targets {
		for _, want := range t.cpus {
			now, err := s.limitsOf(want.CPU)
			if err == nil && now != want {
				err = fmt.Errorf("cpu%d shares its clock with one that was set to another: %d kHz, and then %d", want.CPU, want.MaxKHz, now.MaxKHz)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *Held) target(p *platform.Platform, s Setting) (t target, err error) {
	d := &p.Devices[s.Device]
	hz := d.Clocks[s.Clock].FrequencyHz
	if !d.IsProcessor() {
		t.uuid, t.mhz, err = h.system.lockable(d, hz)
		return t, err
	}
	khz := int64(math.Round(hz / 1e3))
	for _, cpu := range hardware.CPUsOf(p, s.Device) {
		if err := h.system.settable(cpu, khz); err != nil {
			return t, err
		}
		t.cpus = append(t.cpus, limits{cpu, khz, khz})
	}
	return t, nil
}

// save adds the present state of all targets to the file, durably.
func (h *Held) save(targets []target) error {
	for _, t := range targets {
		for _, want := range t.cpus {
			if slices.ContainsFunc(h.saved.CPUs, func(l limits) bool { return l.CPU == want.CPU }) {
				continue // two devices share the core, or one is named twice
			}
			now, err := h.system.limitsOf(want.CPU)
			if err != nil {
				return err
			}
			h.saved.CPUs = append(h.saved.CPUs, now)
		}
		if t.uuid != "" && !slices.Contains(h.saved.GPUs, t.uuid) {
			h.saved.GPUs = append(h.saved.GPUs, t.uuid)
		}
	}
	return h.dir.Replace(h.system.stateFile(), func(out io.Writer) error { return json.NewEncoder(out).Encode(&h.saved) })
}

// Restore gives all clocks back and ends the hold. A clock that cannot be restored stays in the file
// for the next process, and the error has commands for a person.
func (h *Held) Restore() error {
	defer h.release()
	return h.restore()
}

func (h *Held) release() {
	h.lock.Unlock()
	h.dir.Close()
}

func (h *Held) restore() error {
	var left state
	var why []error
	for _, l := range h.saved.CPUs {
		if err := h.system.limit(l); err != nil && !errors.Is(err, fs.ErrNotExist) { // one that is offline has none
			left.CPUs, why = append(left.CPUs, l), append(why, err)
		}
	}
	var byHand []string
	if left.CPUs != nil {
		byHand = append(byHand, h.system.commands(left.CPUs))
	}
	for _, uuid := range h.saved.GPUs {
		if err := h.system.boards.unlock(uuid); err != nil {
			left.GPUs, why = append(left.GPUs, uuid), append(why, err)
			byHand = append(byHand, "sudo nvidia-smi -i "+uuid+" -rgc")
		}
	}
	if h.saved = left; left.empty() {
		return h.dir.Remove(h.system.stateFile())
	}
	return fmt.Errorf("clocks could not be given back: %w; the next dahl execute of this user tries again; by hand: %s", why[0], strings.Join(byHand, "; "))
}
