package platforms

import (
	"os"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

func TestOpen(t *testing.T) {
	for _, name := range []string{"a100", "b200", "boxes", "emulated", "laptop", "manycore", "nvlink", "server"} {
		if !slices.Contains(Names(), name) {
			t.Errorf("Names() = %v lacks %q", Names(), name)
		}
		for _, ask := range []string{name, name + ".toml"} {
			if src, err := Open(ask); err != nil || !strings.Contains(string(src), "[[device]]") {
				t.Errorf("Open(%q) = %d bytes, %v; want a platform", ask, len(src), err)
			}
		}
	}
	if _, err := Open("no-such"); err == nil || !strings.Contains(err.Error(), "laptop") {
		t.Errorf("Open of an unknown name: %v; want an error that lists what there is", err)
	}
}

// TestLoad: a file wins over a machine that ships, which may be named with folder and ending.
func TestLoad(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"laptop", "laptop.toml", "platforms/laptop.toml"} {
		if p, err := Load(name); err != nil || p.Name != "laptop" {
			t.Errorf("Load(%q): %v", name, err)
		}
	}
	must.Do(t, os.WriteFile("laptop", []byte("[["), 0o666))
	if _, err := Load("laptop"); err == nil || !strings.HasPrefix(err.Error(), "laptop:1") {
		t.Errorf("Load of a file that is none: %v; want its line", err)
	}
	if _, err := Load("no-such"); err == nil || !strings.Contains(err.Error(), "manycore") {
		t.Errorf("Load of an unknown name: %v; want an error that lists what there is", err)
	}
}
