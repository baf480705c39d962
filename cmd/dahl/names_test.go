package main

import (
	"strings"
	"testing"
)

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
