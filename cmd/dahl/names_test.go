package main

import (
	"strings"
	"testing"

	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/naming"
)

// TestNamesAreTaken: the case of a policy does not matter, nor how colour is spelled, and an
// executed run is compared by itself.
func TestNamesAreTaken(t *testing.T) {
	t.Chdir(t.TempDir())
	mustRun(t, strings.Fields("execute --model digits-cnn --limit 64 --policy DMDA --out e")...)
	if m, err := record.ReadManifest("e"); err != nil || m.Options.Policy != "dmda" {
		t.Errorf("policy %q (%v), want dmda", m.Options.Policy, err)
	}
	mustRun(t, strings.Fields("plot e gantt --color phase")...)
	must.Contain(t, mustRun(t, "compare", "e"), "predicted")
}

// TestHelpNamesTables: what may be chosen by name is in the help, and nothing else: the policy
// "replay" is chosen by --plan.
func TestHelpNamesTables(t *testing.T) {
	help := strings.Join(strings.Fields(mustRun(t, "execute", "--help")), " ") // on one line
	for _, names := range [][]string{flags.PolicyNames(), flags.OptimizerNames()} {
		if len(names) < 2 || !strings.Contains(help, naming.OneOf(names)) || strings.Contains(naming.OneOf(names), "replay") {
			t.Errorf("names %q, help\n%s", names, help)
		}
	}
}
