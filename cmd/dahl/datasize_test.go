package main

import (
	"runtime"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
)

// TestManyStepsAreAll: of 64 samples in batches of 16 there are 4 steps, however many are asked for: 16·(2⁶⁰ + 1) is 16 modulo 2⁶⁴.
func TestManyStepsAreAll(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, steps := range []string{"1152921504606846977", "9223372036854775807", "4"} {
		s := decoded[record.Summary](t, mustRun(t, strings.Fields("execute --model mlp --data synthetic:1x8x8:64:10 --batch 16 --workers 1 --json --steps "+steps)...))
		if s.Steps != 4 {
			t.Errorf("--steps %s: %d steps were trained, want 4", steps, s.Steps)
		}
	}
}

// TestLargeImagesAreRefused: the size of a sample is compared with what a network may have before one is made. A sample of
// 10⁹×8 pixels has 8·10⁹ bytes, and 2³² numbers are the most of a sample; no command takes a thousandth of that.
func TestLargeImagesAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, wanted["evaluate"][0], "")
	tried := 0
	for _, cmd := range withBodies(newRoot(nil)) {
		words := cli.Words(cmd)
		if cmd.Flags().Lookup("data") == nil || words == "experiment run" { // whose cells are other commands
			continue
		}
		line := append(append(strings.Fields(words), wanted[words]...), strings.Fields("--model lenet5 --batch 8 --data synthetic:1x1000000000x8:64:10")...)
		if words == "simulate" || words == "plan" {
			line = append(line, "--platform", "laptop")
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := dahl(t, t.Context(), line...)
		runtime.ReadMemStats(&after)
		const want = `dahl: data synthetic 1×1000000000×8: model "lenet5": input: shape 1×1000000000×8 has more than 4294967296 elements`
		if r.code != cli.ExitBadInput || !strings.HasPrefix(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("dahl %s: exit code %d, %q", strings.Join(line, " "), r.code, r.stderr)
		}
		if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 8e6 {
			t.Errorf("dahl %s: %d bytes were taken", strings.Join(line, " "), bytes)
		}
		tried++
	}
	if tried < 5 {
		t.Errorf("%d commands were tried; simulate, plan, execute, peer and graph read data", tried)
	}
}
