package platforms

import (
	"slices"
	"strings"
	"testing"
)

func TestOpen(t *testing.T) {
	for _, name := range []string{"emulated", "laptop", "manycore", "server"} {
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
