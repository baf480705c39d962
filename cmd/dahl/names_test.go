package main

import (
	"strings"
	"testing"
)

// TestDifferences are Levenshtein distances of textbooks.
func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"kitten", "sitting", 3}, {"saturday", "sunday", 3}, {"", "heft", 4}, {"heft", "", 4}, {"flaw", "lawn", 2}, {"heft", "heft", 0}, {"hfet", "heft", 2}} {
		if got := differences(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q: %d differences, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"laptop", "server", "manycore"}
	for name, want := range map[string]string{
		"serverr": "; did you mean server", "Laptop": "; did you mean laptop", "mancore": "; did you mean manycore", "cluster": "", "x": "", "": "",
	} {
		if got := didYouMean(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestNamesAreTaken: the case of a policy does not matter, nor how colour is spelled, and an
// executed run is compared by itself.
func TestNamesAreTaken(t *testing.T) {
	t.Chdir(t.TempDir())
	mustRun(t, strings.Fields("execute --model digits-cnn --limit 64 --policy DMDA --out e")...)
	if m, err := readManifest("e"); err != nil || m.Options.Policy != "dmda" {
		t.Errorf("policy %q (%v), want dmda", m.Options.Policy, err)
	}
	mustRun(t, strings.Fields("plot e gantt --color phase")...)
	if out := mustRun(t, "compare", "e"); !strings.Contains(out, "predicted") {
		t.Errorf("compare of one run:\n%s", out)
	}
}

func TestOneOf(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		if got := oneOf(names); got != want {
			t.Errorf("%q of %q, want %q", got, names, want)
		}
	}
}

// TestHelpNamesTables: what may be chosen by name is in the help, and nothing else: the policy
// "replay" is chosen by --plan.
func TestHelpNamesTables(t *testing.T) {
	help := mustRun(t, "execute", "--help")
	for _, names := range [][]string{policyNames(), optimizerNames()} {
		if len(names) < 2 || !strings.Contains(help, oneOf(names)) || strings.Contains(oneOf(names), "replay") {
			t.Errorf("names %q, help\n%s", names, help)
		}
	}
}
