package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"dahl/must"
)

func TestParseCPUList(t *testing.T) {
	for text, want := range map[string][]int{
		"0": {0}, "0-2,8\n": {0, 1, 2, 8}, "3,1": {3, 1}, "": nil, "x,2": {2}, "5-3": nil, "0-99999999": nil, "-1": nil,
	} {
		if got := parseCPUList(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestParseCacheSize(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
	}{{"48K", 48 << 10}, {"32M", 32 << 20}, {"512", 512}} {
		if got, ok := parseCacheSize(c.text); !ok || got != c.want {
			t.Errorf("%q: %d, want %d", c.text, got, c.want)
		}
	}
	for _, text := range []string{"", "K", "-1K", "1.5M", "0"} {
		if got, ok := parseCacheSize(text); ok {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

// TestTopologyOfAFakeMachine: two cores with two threads each, siblings 0,2 and 1,3.
func TestTopologyOfAFakeMachine(t *testing.T) {
	root := t.TempDir()
	write := func(text string, path ...string) {
		name := filepath.Join(append([]string{root}, path...)...)
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must.Do(t, os.WriteFile(name, []byte(text), 0o644))
	}
	for cpu, siblings := range map[string]string{"cpu0": "0,2\n", "cpu2": "0,2\n", "cpu1": "1,3\n", "cpu3": "1,3\n"} {
		write(siblings, cpu, "topology", "thread_siblings_list")
	}
	write("2\n", "cpu0", "cache", "index2", "level")
	write("768K\n", "cpu0", "cache", "index2", "size")
	write("3\n", "cpu0", "cache", "index3", "level")
	write("24M\n", "cpu0", "cache", "index3", "size")

	all := []int{0, 1, 2, 3}
	for cpu, want := range []int{0, 1, 0, 1} {
		if got := firstSibling(root, cpu, all); got != want {
			t.Errorf("cpu %d is on the core of %d, want %d", cpu, got, want)
		}
	}
	// With cpu 0 not allowed, its sibling is the first of the core.
	if got := firstSibling(root, 2, []int{1, 2, 3}); got != 2 {
		t.Errorf("cpu 2 is on the core of %d, want 2", got)
	}
	if l2, l3 := caches(root, 0); l2 != 768<<10 || l3 != 24<<20 {
		t.Errorf("caches of %d and %d bytes", l2, l3)
	}
	if l2, l3 := caches(root, 1); l2 != fallbackL2Bytes || l3 != fallbackL3Bytes {
		t.Errorf("caches that are not told: %d and %d bytes", l2, l3)
	}
}
