package grid

import (
	"testing"

	"dahl/cmd/cli"
	"dahl/train/peer"
)

// TestModified: a program of modified sources runs no experiment unless that is allowed.
func TestModified(t *testing.T) {
	for _, c := range []struct {
		build   cli.Build
		allowed bool
		refused bool
	}{{cli.Build{Commit: "c"}, false, false}, {cli.Build{Commit: "c", Dirty: true}, true, false}, {cli.Build{Commit: "c", Dirty: true}, false, true}} {
		if err := refuseModified(c.build, c.allowed); (err != nil) != c.refused {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestContestants: every program that trains beside dahl can be named in an experiment.
func TestContestants(t *testing.T) {
	for _, p := range peer.Programs() {
		if _, err := contestantByName(p.Name); err != nil {
			t.Error(err)
		}
	}
}
