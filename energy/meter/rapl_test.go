package meter

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dahl/must"
)

// zone writes one counter of a powercap tree.
func zone(t *testing.T, root, dir, name, energyUj, rangeUj string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	for file, text := range map[string]string{"name": name, "energy_uj": energyUj, "max_energy_range_uj": rangeUj} {
		must.Do(t, os.WriteFile(filepath.Join(root, dir, file), []byte(text+"\n"), 0o644))
	}
}

// Two packages; their parts, the memory-mapped twin and the whole platform would
// count joules twice and must not be read.
func twoPackages(t *testing.T) string {
	root := t.TempDir()
	zone(t, root, "intel-rapl:0", "package-0", "1000000", "9999999")
	zone(t, root, "intel-rapl:1", "package-1", "9000000", "9999999")
	zone(t, root, "intel-rapl:0:0", "core", "not read", "not read")
	zone(t, root, "intel-rapl:2", "psys", "not read", "not read")
	zone(t, root, "intel-rapl-mmio:0", "package-0", "not read", "not read")
	must.Do(t, os.Mkdir(filepath.Join(root, "intel-rapl"), 0o755))
	return root
}

// Package 0 goes from 1 to 3.5 J: 2.5 J. Package 1 goes from 9 J to its range of
// 9.999999 J and on to 0.5 J: 0.999999 + 0.5 J. Then package 1 wraps again, from
// 0.5 J to 0.25 J: 9.749999 J more.
func TestRAPLCountsAndWraps(t *testing.T) {
	root := twoPackages(t)
	m := must.Get(OpenRAPL(root))(t)
	defer m.Close()
	w := newWatched("", m)
	s := &sampler{meters: []*watched{w}}
	at := time.Unix(0, 0)
	read := func(want float64) {
		t.Helper()
		at = at.Add(100 * time.Millisecond)
		must.Do(t, m.Read(w.shown))
		for i, t := range w.tallies {
			t.add(at, w.shown[i])
		}
		if c := s.count(w); !near(c.joules, want) {
			t.Errorf("%g J; want %g: %+v", c.joules, want, c.states)
		}
	}
	read(0)
	zone(t, root, "intel-rapl:0", "package-0", "3500000", "9999999")
	zone(t, root, "intel-rapl:1", "package-1", "500000", "9999999")
	read(2.5 + 1.499999)
	read(2.5 + 1.499999)
	zone(t, root, "intel-rapl:1", "package-1", "250000", "9999999")
	read(2.5 + 1.499999 + 9.749999)
	if m.Name(2) != "RAPL (2 packages)" {
		t.Errorf("name %q", m.Name(2))
	}
}

// TestDesignedPower: the largest power for which a package says that it is made. Its limits count, too, but for
// those of boards that set none, and 0 says nothing.
func TestDesignedPower(t *testing.T) {
	for _, c := range []struct {
		files map[string]string
		want  float64
		from  string
	}{
		{nil, 500, "taken for a package that does not say it"},
		{map[string]string{"constraint_0_max_power_uw": "65000000", "constraint_1_max_power_uw": "0", "constraint_1_power_limit_uw": "4095000000"}, 65, "constraint_0_max_power_uw"},
		{map[string]string{"constraint_0_max_power_uw": "15000000", "constraint_1_power_limit_uw": "55000000"}, 55, "constraint_1_power_limit_uw"},
		{map[string]string{"constraint_0_power_limit_uw": "x", "constraint_0_max_power_uw": "700000000"}, 700, "constraint_0_max_power_uw"},
	} {
		root := twoPackages(t)
		for file, text := range c.files {
			must.Do(t, os.WriteFile(filepath.Join(root, "intel-rapl:0", file), []byte(text+"\n"), 0o644))
		}
		m := must.Get(OpenRAPL(root))(t)
		if got := m.Counters()[0]; got.TDPWatts != c.want || got.TDPFrom != c.from {
			t.Errorf("%v: %+v, want %g W from %s", c.files, got, c.want, c.from)
		}
	}
}

func TestRAPLErrors(t *testing.T) {
	if _, err := OpenRAPL(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no package counter") {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := OpenRAPL(filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "no package counter") {
		t.Errorf("no directory: %v", err)
	}
	for _, text := range []string{"", "-1", "x", "1.5", "99999999999999999999999"} {
		root := twoPackages(t)
		zone(t, root, "intel-rapl:0", "package-0", text, "9999999")
		if _, err := OpenRAPL(root); err == nil || !strings.Contains(err.Error(), "not a number of microjoules") || strings.Contains(err.Error(), "\n") {
			t.Errorf("a counter of %q: %v", text, err)
		}
	}
	root := twoPackages(t)
	m := must.Get(OpenRAPL(root))(t)
	must.Do(t, os.RemoveAll(filepath.Join(root, "intel-rapl:0")))
	if err := m.Read([]uint64{0, 0}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a counter that went away: %v", err)
	}
}

// TestRAPLPermission reads a tree as Linux has it since 5.10: the counters are for root, who may read
// every file, so that their denial is injected.
func TestRAPLPermission(t *testing.T) {
	_, err := openRAPL(twoPackages(t), func(path string) ([]byte, error) {
		if filepath.Base(path) == "energy_uj" {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission}
		}
		return os.ReadFile(path)
	})
	denied, ok := errors.AsType[*DeniedError](err)
	if !ok || !errors.Is(err, fs.ErrPermission) || denied.Allow != "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj" {
		t.Fatalf("got %v", err)
	}
	if text := err.Error(); !strings.Contains(text, "intel-rapl:0/energy_uj: permission denied: the counters are for root only") || !strings.HasSuffix(text, denied.Allow) || strings.Contains(text, "\n") {
		t.Errorf("it says %q", text)
	}
}
