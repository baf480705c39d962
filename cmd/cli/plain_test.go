package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// TestPlain: what a terminal would obey is an escape, and what it shows stays.
func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"×µ–漢 \ufffd":       "×µ–漢 \ufffd",
		"a\x1b[31mred\x07":  `a\x1b[31mred\x07`,
		"one\r\ntwo\tthree": "one\\x0d\ntwo\tthree",
		"\x7f\u009b31m":     `\u007f\u009b31m`, // JSON has these as they are, and knows this escape
		"latin-1 \xe9t\xe9": `latin-1 \xe9t\xe9`,
		"exe.\u202egpj.png": `exe.\u202egpj.png`,
		"cut \xe6\xbc":      `cut \xe6\xbc`,
	} {
		if got := Plain(text, layout); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	if got, want := OneLine(errors.New("a\tb\nc\x1b")), `a\x09b; c\x1b`; got != want {
		t.Errorf("an error is %q, want %q", got, want)
	}
}

// TestRunIsPlain: neither the output of a command nor its errors have control characters, in whatever pieces they are written.
func TestRunIsPlain(t *testing.T) {
	const evil = "\x1b]0;title\x07×\xe9"
	root := &cobra.Command{Use: "x", RunE: func(cmd *cobra.Command, _ []string) error {
		for i := range len(evil) {
			cmd.OutOrStdout().Write([]byte{evil[i]})
			cmd.ErrOrStderr().Write([]byte{evil[i]})
		}
		return AsInput(errors.New(evil + "\n" + evil))
	}}
	var stdout, stderr bytes.Buffer
	if code := Run(t.Context(), root, nil, &stdout, &stderr); code != ExitBadInput {
		t.Errorf("exit code %d", code)
	}
	const shown = `\x1b]0;title\x07×\xe9`
	if got := stdout.String(); got != shown {
		t.Errorf("stdout %q, want %q", got, shown)
	}
	if got, want := stderr.String(), shown+"x: "+shown+"; "+shown+"\n"; got != want {
		t.Errorf("stderr %q, want %q", got, want)
	}
}

// TestWarningsOnce: a warning is said once, whatever else comes between.
func TestWarningsOnce(t *testing.T) {
	before := slog.Default()
	defer slog.SetDefault(before)
	var out bytes.Buffer
	LogTo(&out)
	for _, of := range []string{"a", "b", "a"} {
		slog.Warn("note", "of", of)
	}
	if got, want := out.String(), "level=WARN msg=note of=a\nlevel=WARN msg=note of=b\n"; got != want {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// TestPageIsPlain: a page has the escapes that draw it, and no others.
func TestPageIsPlain(t *testing.T) {
	to := &screen{columns: 40}
	NewPage(&plainWriter{Writer: to}).Show("a\x1b[2Jb\xe9")
	if want := `a\x1b[2Jb\xe9`; len(to.lines) != 1 || to.lines[0] != want {
		t.Errorf("page %q, want %q", to.lines, want)
	}
}

// FuzzPlain: whatever a text holds, what is shown of it is UTF-8 without control characters, but for those that are kept.
func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[31m\xff\u202e\n")
	f.Fuzz(func(t *testing.T, text string) {
		got := Plain(text, layout)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !isPlain(r) && r != '\n' && r != '\t' }) {
			t.Errorf("%q is shown as %q", text, got)
		}
		if Plain(got, layout) != got {
			t.Errorf("%q is escaped twice", text)
		}
	})
}
