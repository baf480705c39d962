package main

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
)

// terminal keeps what is written to it, and calls when a text has come; nil: any.
type terminal struct {
	mu      sync.Mutex
	written strings.Builder
	text    *regexp.Regexp
	call    func()
}

func (f *terminal) Size() (columns, rows int) { return 80, 24 }

func (f *terminal) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written.Write(p)
	if f.text == nil || f.text.MatchString(f.written.String()) {
		f.call()
	}
	return len(p), nil
}

// TestProgressOnATerminal trains for ever, until a terminal has shown a rate: in one line by default, in a
// page with --watch. It is then taken away.
func TestProgressOnATerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ flag, want string }{{"--json", `epoch [0-9]+/.*  [0-9,]+ samples/s`}, {"--watch", `speed    [0-9,]+ samples/s`}} {
		ctx, cancel := context.WithCancel(t.Context())
		to := &terminal{text: regexp.MustCompile(c.want), call: cancel}
		args := []string{"execute", "--model", "digits-cnn", "--workers", "1", "--epochs", "1000", "--out", "run", c.flag}
		var stdout bytes.Buffer
		if code := cli.Run(ctx, newRoot(args), args, &stdout, to); code != cli.ExitInterrupted {
			t.Errorf("%s: exit code %d", c.flag, code)
		}
		if shown := to.written.String(); !strings.Contains(shown, "\x1b[Jdahl: interrupted") {
			t.Errorf("%s: the page is still there:\n%q", c.flag, shown)
		}
	}
}

// TestWatchedWeights: who watches changes no weight.
func TestWatchedWeights(t *testing.T) {
	t.Chdir(t.TempDir())
	train := strings.Fields("execute --model digits-cnn --limit 256 --batch 17 --workers 1 --json --out run")
	var hashes []string
	for _, args := range [][]string{train, append(slices.Clone(train), "--watch")} {
		var stdout bytes.Buffer
		if code := cli.Run(t.Context(), newRoot(args), args, &stdout, &terminal{call: func() {}}); code != cli.ExitOK {
			t.Fatalf("exit code %d", code)
		}
		s := decoded[record.Summary](t, stdout.String())
		hashes = append(hashes, s.Trained.WeightsSHA256)
	}
	if hashes[0] != hashes[1] || hashes[0] == "" {
		t.Errorf("weights %v", hashes)
	}
}
