package tables

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// TestCSV: OWASP's advice on CSV injection is an apostrophe before a cell that begins with =, +, -, @, a tab or the end of a
// line; a number is none of these.
func TestCSV(t *testing.T) {
	for cell, want := range map[string]string{
		"": "", "cpu": "cpu", "a=b": "a=b", "1.5": "1.5", "-1.5e-3": "-1.5e-3", "+7": "+7", "-Inf": "-Inf", "'a": "'a",
		`=HYPERLINK("http://x","y")`: `'=HYPERLINK("http://x","y")`, "@x": "'@x", "-2+3": "'-2+3", "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0",
		"-": "'-", "\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1",
	} {
		var out strings.Builder
		must.Do(t, WriteCSV(&out, [][]string{{"name", "next"}, {cell, "x"}}))
		lines, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
		if err != nil || !slices.Equal(lines[0], []string{"name", "next"}) || !slices.Equal(lines[1], []string{want, "x"}) {
			t.Errorf("%q is read as %q, %v; want %q", cell, lines, err, want)
		}
	}
}

// TestMarkdown: by CommonMark a backslash takes away what a sign of punctuation means, and character references take the
// place of those of HTML.
func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"batch=5,devices=cpu:2": "batch=5,devices=cpu:2", "a|b": `a\|b`, `a\|b`: `a\\\|b`, "<script>&amp;": "&lt;script&gt;&amp;amp;",
		"a*b*c": `a\*b\*c`, "_x_ a_b": `\_x\_ a\_b`, "~~x~~": `\~\~x\~\~`, // emphasis, and strikethrough of GitHub
		"[x](javascript:alert(1))": `\[x\](javascript:alert(1))`, "`x`": "\\`x\\`", "a\nb\r\nc\rd": "a b c d",
	} {
		if got := Markdown(text); got != want {
			t.Errorf("%q is written as %q, want %q", text, got, want)
		}
	}
}
