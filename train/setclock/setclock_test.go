package setclock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dahl/execute/hardware"
	"dahl/must"
	"dahl/platform"
	"dahl/rundir/durable"
)

// The variables of a child process that sets clocks: the directory of its fake machine, and before
// which operation on its state, from 1, it kills itself; 0: it waits to be killed.
const childTree, childKill = "SETCLOCK_TEST_TREE", "SETCLOCK_TEST_KILL"

func TestMain(m *testing.M) {
	if tree := os.Getenv(childTree); tree != "" {
		child(tree)
	}
	os.Exit(m.Run())
}

func child(tree string) {
	at, err := strconv.Atoi(os.Getenv(childKill))
	if err != nil {
		panic(err)
	}
	durable.Fault = func(durable.Op, string) error {
		if at--; at == 0 {
			self, err := os.FindProcess(os.Getpid())
			if err != nil || self.Kill() != nil {
				panic("cannot kill itself")
			}
			select {} // until the signal is here
		}
		return nil
	}
	p := machine()
	h, err := fake(tree).Begin()
	if err == nil {
		err = h.Set(p, []Setting{{0, 1}})
	}
	if err != nil {
		panic(err)
	}
	fmt.Println("set")
	io.Copy(io.Discard, os.Stdin) // which its parent does not close before it kills
	os.Exit(0)
}

// machine has a core with clocks of 2.4 and 1.2 GHz and one of a frequency that no test machine has,
// a GPU with one of 900 MHz, and an emulated device.
func machine() *platform.Platform {
	clocks := func(hz ...float64) (all []platform.Clock) {
		for i, f := range hz {
			all = append(all, platform.Clock{Name: []string{"own", "slow", "odd", "none"}[i], Scale: 1, FrequencyHz: f})
		}
		return all
	}
	p := &platform.Platform{Name: "fake", Memories: []platform.Memory{{Name: "ram"}, {Name: "hbm"}, {Name: "vram"}},
		Links:  []platform.Link{{Name: "bus", BandwidthBytesPerSec: 1e9}},
		Routes: []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0}}, {From: 0, To: 2, Links: []platform.LinkID{0}}},
		Devices: []platform.Device{
			{Name: "cpu", Kind: platform.CPU, Count: 1, Clocks: clocks(2.4e9, 1.2e9, 1.25e9, 0)},
			{Name: "gpu", Kind: platform.CUDA, Count: 1, Memory: 1, Clocks: clocks(0, 900e6, 9e9)},
			{Name: "toy", Kind: platform.Emulated, Count: 1, Memory: 2, Clocks: clocks(0, 0)},
		}}
	if err := p.Complete(); err != nil {
		panic(err)
	}
	return p
}

// fakeBoards is one GPU by UUID, from 300 to 2000 MHz; 0: it is not locked.
type fakeBoards struct {
	lockedMHz int
	denied    error
}

func (*fakeBoards) find(*platform.Device) (string, error) { return "GPU-7", nil }
func (*fakeBoards) span(string) (int, int, error)         { return 300, 2000, nil }
func (b *fakeBoards) unlock(uuid string) error            { return b.lock(uuid, 0) }
func (b *fakeBoards) lock(uuid string, mhz int) error {
	if b.denied == nil {
		b.lockedMHz = mhz
	}
	return b.denied
}

func fake(tree string) *System {
	return &System{CPUs: filepath.Join(tree, "cpu"), State: filepath.Join(tree, "home", "state"), Boot: "b1", boards: &fakeBoards{}}
}

// cpuFiles are the files of a CPU that runs from 0.8 to 3.2 GHz, now from 0.8 to 3 GHz.
var cpuFiles = map[string]string{"cpuinfo_min_freq": "800000\n", "cpuinfo_max_freq": "3200000\n", minFile: "800000\n", maxFile: "3000000\n", "scaling_governor": "schedutil\n"}

func newFake(t *testing.T) (*System, *fakeBoards) {
	t.Helper()
	s := fake(t.TempDir())
	for _, cpu := range hardware.CPUsOf(machine(), 0) {
		must.Do(t, os.MkdirAll(s.cpufreq(cpu, ""), 0o777))
		for name, text := range cpuFiles {
			put(t, s, cpu, name, text)
		}
	}
	return s, s.boards.(*fakeBoards)
}

func put(t *testing.T, s *System, cpu int, name, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(s.cpufreq(cpu, name), []byte(text), 0o666))
}

// wantLimits compares the limits of all CPUs, and that nothing else has changed.
func wantLimits(t *testing.T, s *System, what string, least, most string) {
	t.Helper()
	want := maps.Clone(cpuFiles)
	want[minFile], want[maxFile] = least+"\n", most+"\n"
	for _, cpu := range hardware.CPUsOf(machine(), 0) {
		for name, text := range want {
			if got, err := os.ReadFile(s.cpufreq(cpu, name)); err != nil || string(got) != text {
				t.Errorf("%s: %s of cpu%d holds %q, want %q (%v)", what, name, cpu, got, text, err)
			}
		}
	}
}

func (s *System) hasState() bool {
	_, err := os.Stat(filepath.Join(s.State, s.stateFile()))
	return err == nil
}

// A processor and a GPU are set, then the processor alone to another clock, and given back. What
// lies in the file meanwhile is what was before the first setting.
func TestSetAndRestore(t *testing.T) {
	s, gpu := newFake(t)
	p := machine()
	h := must.Get(s.Begin())(t)
	if err := h.Set(p, []Setting{{0, 1}, {1, 1}, {2, 1}, {0, 1}}); err != nil || gpu.lockedMHz != 900 {
		t.Errorf("the GPU is locked to %d MHz, want 900 (%v)", gpu.lockedMHz, err)
	}
	wantLimits(t, s, "slow", "1200000", "1200000")
	if err := h.Set(p, []Setting{{0, 0}}); err != nil {
		t.Error(err)
	}
	wantLimits(t, s, "own", "2400000", "2400000")
	if got := string(must.Get(os.ReadFile(filepath.Join(s.State, s.stateFile())))(t)); gpu.lockedMHz != 0 || !strings.Contains(got, `"min_khz":800000,"max_khz":3000000`) || strings.Contains(got, "GPU") {
		t.Errorf("the GPU is at %d MHz; saved is %s", gpu.lockedMHz, got)
	}
	other := *s
	if _, err := other.Begin(); !errors.As(err, new(durable.HeldError)) || !strings.Contains(err.Error(), fmt.Sprintf("process %d on", os.Getpid())) {
		t.Errorf("the clocks were taken twice: %v", err)
	}
	if err := h.Restore(); err != nil || gpu.lockedMHz != 0 || s.hasState() {
		t.Errorf("after all was given back the GPU is at %d MHz, and a state is left: %t (%v)", gpu.lockedMHz, s.hasState(), err)
	}
	wantLimits(t, s, "given back", "800000", "3000000")
}

// What cannot be set is refused in one line with what can be, and before anything is set or saved.
func TestRefused(t *testing.T) {
	first := hardware.CPUsOf(machine(), 0)[0]
	for _, c := range []struct {
		change   func(s *System)
		settings []Setting
		want     string
	}{
		{nil, []Setting{{0, 3}}, `clock "none" of device "cpu" says no frequency to be set to; write frequency = "1.2 GHz" there`},
		{nil, []Setting{{1, 0}}, `clock "own" of device "gpu" says no frequency to be set to; write clock_frequency = "1.2 GHz" there`},
		{nil, []Setting{{0, 0}, {0, 1}}, `device "cpu" is to change between its clocks "own" and "slow" within the run, and is set to one for all of it`},
		{nil, []Setting{{0, 1}, {1, 2}}, `device "gpu" cannot be set to its clock "odd": GPU GPU-7 cannot run at 9 GHz; the nearest that it has is 2 GHz`},
		{func(s *System) {
			put(t, s, first, "scaling_available_frequencies", "3200000 2400000 1200000 800000 \n")
		}, []Setting{{0, 2}},
			fmt.Sprintf("cpu%d cannot run at 1.25 GHz; the nearest that it has is 1.2 GHz", first)},
		{func(s *System) { put(t, s, first, "cpuinfo_min_freq", "1300000\n") }, []Setting{{0, 2}}, "the nearest that it has is 1.3 GHz"},
		{func(s *System) { put(t, s, first, "cpuinfo_max_freq", "1000000\n") }, []Setting{{0, 2}}, "the nearest that it has is 1 GHz"},
		{func(s *System) { put(t, s, first, "cpuinfo_max_freq", "fast\n") }, []Setting{{0, 1}}, `cpuinfo_max_freq holds "fast\n", not a frequency in kHz`},
		{func(s *System) { put(t, s, first, maxFile, "") }, []Setting{{0, 1}}, maxFile + " is empty"},
		{func(s *System) { os.RemoveAll(s.cpufreq(first, "")) }, []Setting{{0, 1}}, fmt.Sprintf("the system sets no clock of cpu%d: it has no ", first)},
		{func(s *System) { os.Remove(s.cpufreq(first, minFile)) }, []Setting{{0, 1}}, minFile + ": no such file"},
	} {
		s, gpu := newFake(t)
		if c.change != nil {
			c.change(s)
		}
		h, err := s.Begin()
		if err != nil {
			t.Fatal(err)
		}
		err = h.Set(machine(), c.settings)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: %v, want %q", c.settings, err, c.want)
		}
		if s.hasState() || gpu.lockedMHz != 0 {
			t.Errorf("%v: a state was saved, or the GPU set", c.settings)
		}
		if err := h.Restore(); err != nil {
			t.Error(err)
		}
	}
}

// Two processors whose CPUs share one clock can be set to the same frequency and not to two.
func TestSharedClock(t *testing.T) {
	p := machine()
	p.Devices[0].Name = "big"
	p.Devices = append(p.Devices, p.Devices[0])
	p.Devices[3].Name = "little"
	must.Do(t, p.Complete())
	first := hardware.CPUsOf(p, 0)[0]
	at := slices.IndexFunc(hardware.CPUsOf(p, 3), func(cpu int) bool { return cpu != first })
	if at < 0 {
		t.Skip("needs two CPUs")
	}
	s, _ := newFake(t)
	for _, cpu := range hardware.CPUsOf(p, 3) {
		if cpu == first {
			continue
		}
		os.RemoveAll(s.cpufreq(cpu, ""))
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(s.cpufreq(cpu, "")), 0o777), os.Symlink(s.cpufreq(first, ""), s.cpufreq(cpu, ""))))
	}
	h := must.Get(s.Begin())(t)
	if err := h.Set(p, []Setting{{0, 1}, {3, 1}}); err != nil {
		t.Error(err)
	}
	if err := h.Set(p, []Setting{{0, 1}, {3, 0}}); err == nil || !strings.Contains(err.Error(), "shares its clock with one that was set to another: 1200000 kHz, and then 2400000") {
		t.Errorf("one clock was set to two frequencies: %v", err)
	}
	if err := h.Restore(); err != nil {
		t.Error(err)
	}
	wantLimits(t, s, "given back", "800000", "3000000")
}

// Root may write every file, so that the message is tested on the error itself.
func TestPermission(t *testing.T) {
	err := explain(&fs.PathError{Op: "open", Path: "/x/scaling_max_freq", Err: fs.ErrPermission})
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "/x/scaling_max_freq") || !strings.Contains(err.Error(), "sudo chmod a+w /sys/devices/system/cpu/cpu*/cpufreq/scaling_{min,max}_freq") {
		t.Errorf("got %v", err)
	}
}

// The least frequency never exceeds the greatest, and both come to what is wanted.
func TestOrderOfWrites(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	some := func() limits {
		a, b := r.Int64N(8), r.Int64N(8)
		return limits{MinKHz: min(a, b), MaxKHz: max(a, b)}
	}
	for range 2000 {
		now, want := some(), some()
		at := now
		for _, w := range writes(now, want) {
			if w.file == minFile {
				at.MinKHz = w.khz
			} else {
				at.MaxKHz = w.khz
			}
			if at.MinKHz > at.MaxKHz {
				t.Fatalf("from %v to %v through %v", now, want, at)
			}
		}
		if at != want {
			t.Fatalf("from %v to %v comes to %v", now, want, at)
		}
	}
}

// A process that is killed, before each operation on its state or once it has set, leaves clocks
// that the next one gives back. A state of another start of the machine stays and changes nothing.
func TestKilled(t *testing.T) {
	self := must.Get(os.Executable())(t)
	for n := 1; ; n++ {
		s, _ := newFake(t)
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), childTree+"="+filepath.Dir(s.CPUs), fmt.Sprintf("%s=%d", childKill, n))
		out := must.Get(cmd.StdoutPipe())(t)
		must.Get(cmd.StdinPipe())(t)
		must.Do(t, cmd.Start())
		line, _ := bufio.NewReader(out).ReadString('\n')
		set := line == "set\n"
		if set {
			wantLimits(t, s, "set by the child", "1200000", "1200000")
			if err := s.Recover(); !errors.As(err, new(durable.HeldError)) {
				t.Errorf("clocks that a process holds were given back: %v", err)
			}
			wantLimits(t, s, "held by the child", "1200000", "1200000")
			must.Do(t, cmd.Process.Kill())
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the child was to be killed before operation %d: %v", n, err)
		}
		if set {
			rebooted := *s
			rebooted.Boot = "b2"
			if err := rebooted.Recover(); err != nil || !s.hasState() {
				t.Errorf("after another start of the machine the state is left: %t (%v)", s.hasState(), err)
			}
			wantLimits(t, s, "after another start", "1200000", "1200000")
		}
		if err := s.Recover(); err != nil || s.hasState() {
			t.Errorf("killed before operation %d: a state is left: %t (%v)", n, s.hasState(), err)
		}
		wantLimits(t, s, fmt.Sprintf("killed before operation %d", n), "800000", "3000000")
		if set {
			return
		}
	}
}

// What cannot be given back is said with the commands that do it, and given back by the next
// process that can.
func TestCannotRestore(t *testing.T) {
	s, gpu := newFake(t)
	p := machine()
	p.Devices[0].Clocks[0].FrequencyHz = 3.1e9
	h := must.Get(s.Begin())(t)
	must.Do(t, h.Set(p, []Setting{{0, 0}, {1, 1}}))
	cpus := hardware.CPUsOf(p, 0)
	for _, cpu := range cpus { // a directory cannot be read as a number
		must.Do(t, errors.Join(os.Rename(s.cpufreq(cpu, minFile), s.cpufreq(cpu, "kept")), os.Mkdir(s.cpufreq(cpu, minFile), 0o777)))
	}
	gpu.denied = errors.New("no rights")
	var texts []string
	for _, cpu := range cpus {
		texts = append(texts, strconv.Itoa(cpu))
	}
	list := strings.Join(texts, ",")
	if len(cpus) > 1 {
		list = "{" + list + "}"
	}
	want := fmt.Sprintf("by hand: echo 800000 | sudo tee %[1]s/cpu%[2]s/cpufreq/scaling_min_freq; echo 3000000 | sudo tee %[1]s/cpu%[2]s/cpufreq/scaling_max_freq; sudo nvidia-smi -i GPU-7 -rgc", s.CPUs, list)
	if err := h.Restore(); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err := s.Begin(); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("a run began at the clocks that another had left: %v", err)
	}
	for _, cpu := range cpus {
		must.Do(t, errors.Join(os.Remove(s.cpufreq(cpu, minFile)), os.Rename(s.cpufreq(cpu, "kept"), s.cpufreq(cpu, minFile))))
	}
	gpu.denied = nil
	if err := s.Recover(); err != nil || gpu.lockedMHz != 0 || s.hasState() {
		t.Errorf("the GPU is at %d MHz, a state is left: %t (%v)", gpu.lockedMHz, s.hasState(), err)
	}
	wantLimits(t, s, "given back", "800000", "3000000")
}

// A file that says nothing ends what would set clocks, since it may be all that is known of them.
func TestBrokenState(t *testing.T) {
	s, _ := newFake(t)
	must.Do(t, errors.Join(os.MkdirAll(s.State, 0o777), os.WriteFile(filepath.Join(s.State, s.stateFile()), []byte("{"), 0o666)))
	if err := s.Recover(); err == nil || !strings.Contains(err.Error(), "clocks-b1.json, which says what clocks were before a run set them") {
		t.Errorf("got %v", err)
	}
}

// Wanted are the clocks in force of real devices that have units, where they are not the first or
// name their frequency.
func TestInForce(t *testing.T) {
	p := machine()
	if got := InForce(p); !slices.Equal(got, []Setting{{0, 0}}) || got[0].Text(p) != "cpu=own at 2.4 GHz" {
		t.Errorf("%v", got)
	}
	for _, name := range []string{"gpu", "toy"} {
		p = must.Get(p.WithClock(name, "slow"))(t)
	}
	p = must.Get(p.WithClock("cpu", "none"))(t)
	if got := InForce(p); !slices.Equal(got, []Setting{{0, 3}, {1, 1}}) || got[0].Name(p) != "cpu=none" || got[1].Text(p) != "gpu=slow at 0.9 GHz" {
		t.Errorf("%v", got)
	}
	if got := InForce(must.Get(p.Select("toy"))(t)); !slices.Equal(got, []Setting{{0, 3}}) { // a core stays for the work of the program
		t.Errorf("%v", got)
	}
}
