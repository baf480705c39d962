// Package tomlfile reads tables of TOML files for people's eyes: every error is one line with
// file, line, key, value and what to write instead.
package tomlfile

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"

	"dahl/naming"
	"dahl/rundir/durable"
)

// Bounds of a source: the TOML library recurses into nested values, and keeps a path for each part of a name.
const (
	maxSourceBytes = 64 << 20
	maxNesting     = 64
)

// Read reads a file for Parse. Parse refuses a file that is too long.
func Read(path string) ([]byte, error) {
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSourceBytes+1))
}

// File is a TOML file that is read. Its methods and its tables' methods keep the first
// error; results after it are meaningless.
type File struct {
	Name  string
	Err   error
	lines lineIndex
}

// Table is one table of the file. Each key that is asked for is used up.
type Table struct {
	File  *File
	Path  string // "" at the top, else such as "device[1]"
	Owner string // how errors call it, such as `device "gpu0"`
	Keys  map[string]any
}

// Parse parses the syntax of a file, whose name is for errors, and returns its top table.
func Parse(src []byte, name string) (*File, *Table, error) {
	f := &File{Name: name}
	text := string(src)
	if len(src) > maxSourceBytes {
		return nil, nil, fmt.Errorf("%s: larger than %d MiB", name, maxSourceBytes>>20)
	}
	if line := tooDeep(text); line > 0 {
		return nil, nil, fmt.Errorf("%s:%d: arrays or tables nested more than %d deep, or a name of more parts", name, line, maxNesting)
	}
	top := map[string]any{}
	if _, err := toml.Decode(text, &top); err != nil {
		line, text := 1, err.Error()
		if pe, ok := errors.AsType[toml.ParseError](err); ok {
			line, text = pe.Position.Line, pe.Message
		}
		text, _, _ = strings.Cut(text, "\n")
		return nil, nil, fmt.Errorf("%s:%d: not TOML: %s", name, line, text)
	}
	f.lines = indexLines(text)
	f.checkTexts("", top)
	return f, &Table{File: f, Keys: top}, f.Err
}

// checkTexts refuses control characters in keys and texts, which reach terminals.
func (f *File) checkTexts(path string, v any) {
	switch v := v.(type) {
	case string:
		if strings.ContainsFunc(v, unicode.IsControl) {
			f.FailAt(path, "", fmt.Sprintf("%q holds a control character; write it without", Clip(v)))
		}
	case []any:
		for _, e := range v {
			f.checkTexts(path, e)
		}
	case []map[string]any:
		for i, e := range v {
			f.checkTexts(fmt.Sprintf("%s[%d]", path, i), e)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			f.checkTexts(path, key)
			f.checkTexts((&Table{Path: path}).Join(key), v[key])
		}
	}
}

// tooDeep returns the first line on which more brackets are open, or a name has more parts, than any file
// needs; 0 for none. Strings and comments are passed over as the library does, up to its first mistake.
func tooDeep(text string) int {
	open, parts := 0, 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '#':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
		case '"', '\'':
			i += stringLen(text[i:]) - 1
		case '[', '{':
			open, parts = open+1, 1
		case ']', '}':
			open = max(0, open-1)
		case '.':
			parts++
		case '\n', '=', ',':
			parts = 1
		}
		if max(open, parts) > maxNesting {
			return 1 + strings.Count(text[:i], "\n")
		}
	}
	return 0
}

// stringLen is the length of the string that a text begins with. Where three quotes begin it, the last three of several end it.
func stringLen(text string) int {
	mark := text[:1]
	if long := strings.Repeat(mark, 3); strings.HasPrefix(text, long) {
		mark = long
	}
	for i := len(mark); i < len(text); i++ {
		switch {
		case text[i] == '\\' && mark[0] == '"':
			i++
		case text[i] == '\n' && len(mark) == 1: // the library refuses the string here
			return i
		case strings.HasPrefix(text[i:], mark):
			end := i + len(mark)
			for len(mark) == 3 && end < len(text) && text[end] == mark[0] {
				end++
			}
			return end
		}
	}
	return len(text)
}

// FailAt reports what is wrong at a path, such as "device[1].power.idle".
func (f *File) FailAt(path, owner, text string) {
	if f.Err != nil {
		return
	}
	if owner != "" {
		owner += ": "
	}
	f.Err = fmt.Errorf("%s:%d: %s%s", f.Name, f.Line(path), owner, text)
}

// Fail reports what is wrong with the value of a key.
func (t *Table) Fail(key string, value any, text string) {
	shown := Clip(fmt.Sprint(value))
	if s, ok := value.(string); ok {
		shown = strconv.Quote(Clip(s))
	}
	t.File.FailAt(t.Join(key), t.Owner, key+" = "+shown+": "+text)
}

// Join is the path of a key of the table from the top of the file, such as "device[1].power.idle".
func (t *Table) Join(key string) string {
	if t.Path == "" {
		return key
	}
	return t.Path + "." + key
}

// Take returns the value of a key and uses it up.
func (t *Table) Take(key string) (any, bool) {
	v, ok := t.Keys[key]
	delete(t.Keys, key)
	return v, ok
}

// Need reports a key that must be there and is not. example shows its value.
func (t *Table) Need(key, example string) {
	if _, ok := t.Keys[key]; !ok {
		t.File.FailAt(t.Path, t.Owner, fmt.Sprintf("%s is missing; write %s = %s", key, key, example))
	}
}

// Done reports the keys that nobody asked for.
func (t *Table) Done(known string) {
	for _, key := range slices.Sorted(maps.Keys(t.Keys)) {
		t.File.FailAt(t.Join(key), t.Owner, fmt.Sprintf("%s: unknown key; known are %s%s", Clip(key), known, naming.DidYouMean(key, strings.Split(known, ", "))))
	}
}

// value takes the value of a key, of one type; otherwise if absent. want says what to write.
func value[T any](t *Table, key, want string, otherwise T) T {
	v, ok := t.Take(key)
	if !ok {
		return otherwise
	}
	x, isT := v.(T)
	if !isT {
		t.Fail(key, v, want)
	}
	return x
}

// Text reads a string; empty if absent.
func (t *Table) Text(key string) string { return value(t, key, "want a text in quotes", "") }

// Count reads a whole number between least and most; otherwise if absent.
func (t *Table) Count(key string, least, most, otherwise int) int {
	v, ok := t.Take(key)
	if !ok {
		return otherwise
	}
	n, whole := v.(int64)
	if !whole || n < int64(least) || n > int64(most) {
		t.Fail(key, v, fmt.Sprintf("want a whole number from %d to %d", least, most))
	}
	return int(n)
}

// Number reads a plain number; otherwise if absent.
func (t *Table) Number(key string, otherwise float64) float64 {
	v, ok := t.Take(key)
	switch x := v.(type) {
	case int64:
		return float64(x)
	case float64:
		return x
	}
	if ok {
		t.Fail(key, v, "want a number without a unit")
	}
	return otherwise
}

// Flag reads true or false; otherwise if absent.
func (t *Table) Flag(key string, otherwise bool) bool {
	return value(t, key, "write true or false", otherwise)
}

// Texts reads an array of strings.
func (t *Table) Texts(key string) []string {
	const want = `want an array of texts, ["…"]`
	list := value[[]any](t, key, want, nil)
	var out []string
	for _, e := range list {
		s, isText := e.(string)
		if !isText {
			t.Fail(key, list, want)
		}
		out = append(out, s)
	}
	return out
}

// Counts reads an array of whole numbers between least and most.
func (t *Table) Counts(key string, least, most int) []int {
	want := fmt.Sprintf("want an array of whole numbers from %d to %d", least, most)
	list := value[[]any](t, key, want, nil)
	var out []int
	for _, e := range list {
		n, whole := e.(int64)
		if !whole || n < int64(least) || n > int64(most) {
			t.Fail(key, list, want)
		}
		out = append(out, int(n))
	}
	return out
}

// Table reads an inline table; nil if absent.
func (t *Table) Table(key string) *Table {
	keys := value[map[string]any](t, key, "want a table, { … }", nil)
	if keys == nil {
		return nil
	}
	owner := key
	if t.Owner != "" {
		owner = t.Owner + ": " + key
	}
	return &Table{t.File, t.Join(key), owner, keys}
}

// Tables reads an array of tables, [[key]]. Errors call each by its name, or by
// its number where it has none.
func (t *Table) Tables(key string) []*Table {
	t.joinTables(key)
	list := value[[]map[string]any](t, key, "want tables; write [["+key+"]] above each", nil)
	out := make([]*Table, len(list))
	for i, keys := range list {
		path := t.Join(fmt.Sprintf("%s[%d]", key, i))
		owner := fmt.Sprintf("%s %d", key, i+1)
		if name, isText := keys["name"].(string); isText && name != "" {
			owner = fmt.Sprintf("%s %q", key, Clip(name))
		}
		if t.Owner != "" {
			owner = t.Owner + ": " + owner
		}
		out[i] = &Table{t.File, path, owner, keys}
	}
	return out
}

// joinTables makes a list of inline tables, [{ … }, { … }], what tables below [[key]] are.
func (t *Table) joinTables(key string) {
	list, isList := t.Keys[key].([]any)
	var tables []map[string]any
	for _, e := range list {
		keys, isTable := e.(map[string]any)
		if !isTable {
			return
		}
		tables = append(tables, keys)
	}
	if isList {
		t.Keys[key] = tables
	}
}

// Clip shortens a text of a file for an error.
func Clip(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
