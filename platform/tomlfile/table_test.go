package tomlfile

import (
	"strings"
	"testing"

	"dahl/must"
)

// TestErrors reads one key of a file, badly: the first mistake is told with its line.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		src  string
		read func(*Table)
		want string
	}{
		{"a = 1", func(t *Table) { t.Text("a") }, "f:1: a = 1: want a text in quotes"},
		{"\na = \"x\"", func(t *Table) { t.Count("a", 2, 3, 0) }, `f:2: a = "x": want a whole number from 2 to 3`},
		{"a = 5", func(t *Table) { t.Count("a", 2, 3, 0) }, "f:1: a = 5: want a whole number from 2 to 3"},
		{"a = true", func(t *Table) { t.Number("a", 0) }, "f:1: a = true: want a number without a unit"},
		{"a = 0", func(t *Table) { t.Flag("a", false) }, "f:1: a = 0: write true or false"},
		{"a = [1]", func(t *Table) { t.Texts("a") }, `f:1: a = [1]: want an array of texts, ["…"]`},
		{"a = [3, 0]", func(t *Table) { t.Counts("a", 1, 5) }, `f:1: a = [3 0]: want an array of whole numbers from 1 to 5`},
		{"a = 1", func(t *Table) { t.Table("a") }, "f:1: a = 1: want a table, { … }"},
		{"a = 1", func(t *Table) { t.Tables("a") }, "f:1: a = 1: want tables; write [[a]] above each"},
		{"", func(t *Table) { t.Need("a", "7") }, "f:1: a is missing; write a = 7"},
		{"[a.\"b.c\"]\nd = 1", func(t *Table) { t.Table("a").Table("b.c").Done("e, f") }, "f:2: a: b.c: d: unknown key; known are e, f"},
		{"[[a]]\n[[a]]\nname = \"x\"\n[[a.b]]\n[[a.b]]\nc = 1", func(t *Table) { t.Tables("a")[1].Tables("b")[1].Text("c") }, `f:6: a "x": b 2: c = 1: want a text in quotes`},
	} {
		f, top := must.Get2(Parse([]byte(c.src), "f"))(t)
		if c.read(top); f.Err == nil || f.Err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.src, f.Err, c.want)
		}
	}
}

// TestAbsent: what is not there has its default, and is no mistake.
func TestAbsent(t *testing.T) {
	f, top := must.Get2(Parse([]byte("x = 1"), "f"))(t)
	if top.Text("a") != "" || top.Count("a", 1, 2, 7) != 7 || top.Number("a", 0.5) != 0.5 || !top.Flag("a", true) ||
		top.Texts("a") != nil || top.Table("a") != nil || len(top.Tables("a")) != 0 || top.Number("x", 0) != 1 {
		t.Error("a default is not given")
	}
	if top.Done(""); f.Err != nil {
		t.Error(f.Err)
	}
}

// TestControlCharacters: an escape sequence (ESC 0x1b, CSI 0x9b), a tab or a new line in a key or a
// text is refused before anybody reads it, with its line and never as it is.
func TestControlCharacters(t *testing.T) {
	for src, want := range map[string]string{
		"a = 1\nb = \"x\\u001b[2J\"":                   `f:2: "x\x1b[2J" holds a control character; write it without`,
		"a = 1\nb = \"\u009b2J\"":                      `f:2: "\u009b2J" holds a control character`,
		"a = \"x\ty\"":                                 `f:1: "x\ty" holds`,
		"[[a]]\n[[a]]\nb = [\"c\", \"\"\"d\ne\"\"\"]":  `f:3: "d\ne" holds`,
		"[[a]]\n[[a]]\n[a.b]\nc = { d = \"\\u0007\" }": `f:4: "\a" holds`,
		"a = 1\n\"\\u001b\" = 2":                       `f:1: "\x1b" holds`, // a key that is written so has no line of its own
	} {
		if _, _, err := Parse([]byte(src), "f"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\n got %v\nwant %s", src, err, want)
		}
	}
	if _, _, err := Parse([]byte("a = \"näme\" # \t\n"), "f"); err != nil {
		t.Error(err)
	}
}

// TestByteOrderMark: a byte order mark changes no line.
func TestByteOrderMark(t *testing.T) {
	f, root := must.Get2(Parse([]byte("\ufeff[[layer]]\n\nkind = 3\n"), "m.toml"))(t)
	root.Tables("layer")[0].Text("kind")
	if want := "m.toml:3: layer 1: kind = 3: want a text in quotes"; f.Err == nil || f.Err.Error() != want {
		t.Errorf("error %v, want %s", f.Err, want)
	}
}

// TestNesting: 64 arrays or tables may be open, on however many lines, and names have up to 64 parts. Brackets and dots in strings
// and comments do not count, and no string hides those behind it.
func TestNesting(t *testing.T) {
	deep := strings.Repeat("[", 65)
	for src, line := range map[string]string{
		"a = " + strings.Repeat("[\n", 64) + strings.Repeat("]\n", 64):   "",
		"a = [\n" + strings.Repeat("[1.5, 2.5],\n", 99) + "]":            "",
		strings.Repeat("[[a]]\n", 99):                                    "",
		"# " + deep + "\na = \"" + deep + "\"\nb = '" + deep + "'":       "",
		"a = \"\"\"\n" + strings.Repeat("[\\\n", 99) + "\"\"\"":          "",
		"a = \"\"\"[]" + deep + "\"\"\"\"\"\nb = '''\"" + deep + "'''''": "", // two of the five quotes are of each text
		strings.Repeat("a.", 63) + "a = 1":                               "",
		"\"" + strings.Repeat("a.", 99) + "\" = 1":                       "",
		"a = " + strings.Repeat("[\n", 65):                               "65",
		"a = [\n[],\n" + strings.Repeat("{b = [\n", 32):                  "34", // line n has 1 + 2·(n − 2) open brackets: 65 on line 34
		strings.Repeat("a.", 64) + "a = 1":                               "1",
		"[" + strings.Repeat("\"a\" . ", 64) + "a]":                      "1",
		"a = 1 # \"\"\"\nb = " + deep:                                    "2",
		"a = 'x\\'\nb = " + deep + "'":                                   "2", // nothing is escaped between single quotes
		"a = \"\\\\\"\nb = " + deep + "\"":                               "2", // an escaped backslash escapes no quote
		"a = \"\"\"x\\\"\"\"\"\nb = " + deep:                             "2", // an escaped quote, then three that end the text
		"a = \"\"\"\"x\"\"\"\"\"\nb = " + deep:                           "2", // a quote, x, and two more are the text
		"a = ''''''\nb = " + deep:                                        "2",
	} {
		_, _, err := Parse([]byte(src), "f")
		want := "f:" + line + ": arrays or tables nested more than 64 deep, or a name of more parts"
		if (err == nil) != (line == "") || err != nil && err.Error() != want {
			t.Errorf("%q: %v, want line %q", src, err, line)
		}
	}
}
