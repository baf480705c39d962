//go:build cuda

package main

import (
	"strings"
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/execute/hardware"
)

// TestRecordedPartOnCUDA trains on a GPU with two of seven steps and the short one recorded, and with all: the
// others are issued as captured graphs, and come to the same weights.
func TestRecordedPartOnCUDA(t *testing.T) {
	if _, err := hardware.GPUs(); err != nil {
		t.Skip(err)
	}
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyModel)
	line := strings.Fields("execute --devices gpu0 --model tiny.toml --data synthetic:1x1x13:37:10 --batch 5 --epochs 2 --json --out e")
	var all, part record.Summary
	decodeObject(t, mustRun(t, append(line, "--record", "7")...), &all)
	decodeObject(t, mustRun(t, append(line, "--record", "2")...), &part)
	if all.Recorded != nil || part.Recorded == nil || part.Recorded.Steps != 6 || part.Recorded.Of != 16 {
		t.Errorf("recorded %+v and %+v, want all and 6 of 16 steps", all.Recorded, part.Recorded)
	}
	if part.Trained.WeightsSHA256 != all.Trained.WeightsSHA256 {
		t.Errorf("weights %.12s, recorded as a whole %.12s", part.Trained.WeightsSHA256, all.Trained.WeightsSHA256)
	}
	m, err := record.ReadManifest("e")
	if err != nil {
		t.Fatal(err)
	}
	if m.Issue == nil || m.Issue.Graphs == 0 || m.Issue.Captured < m.Issue.Tasks/2 {
		t.Errorf("a step is issued as %+v, want most of it as graphs", m.Issue)
	}
	wantVerified(t, "e")
}
