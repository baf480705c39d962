package nn

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// document is a TOML file and the first mistake found in it.
type document struct {
	file   string
	src    string
	values map[string]any
	err    error
}

func decode(src []byte, file string) (*document, error) {
	d := &document{file: file, src: string(src)}
	if _, err := toml.Decode(d.src, &d.values); err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("%s:%d: %s", file, syntax.Position.Line, syntax.Message)
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

// table is a TOML table and its place in the file. Its readers note the first mistake in the
// document and then return the default.
type table struct {
	d      *document
	path   []string // of the table; the element of an array of tables counts from 1 in nth
	nth    int
	values map[string]any
}

func (d *document) root() *table { return &table{d: d, values: d.values} }

// fail notes a mistake in a key: the file, the line, the value, and what to write.
func (t *table) fail(key, fix string) {
	if t.d.err != nil {
		return
	}
	at := strings.Join(append(slices.Clone(t.path), key), ".")
	if t.nth > 0 {
		at = fmt.Sprintf("%s %d: %s", strings.Join(t.path, "."), t.nth, key)
	}
	what := at + " is missing"
	if v, ok := t.values[key]; ok {
		what = fmt.Sprintf("%s = %s", at, valueText(v))
	} else if key == "" {
		what = strings.Join(t.path, ".")
	}
	t.d.err = fmt.Errorf("%s:%d: %s: %s", t.d.file, t.line(key), what, fix)
}

// valueText prints a value short enough for an error line.
func valueText(v any) string {
	text := fmt.Sprintf("%v", v)
	if s, ok := v.(string); ok {
		text = fmt.Sprintf("%q", s)
	}
	if len(text) > 60 {
		text = text[:57] + "..."
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\n", " "), "?")
}

// allow refuses keys other than these.
func (t *table) allow(keys ...string) {
	for _, name := range t.names() {
		if !slices.Contains(keys, name) {
			t.fail(name, "no such key; there are "+strings.Join(keys, ", "))
		}
	}
}

// names are the table's keys, sorted.
func (t *table) names() []string {
	var names []string
	for name := range t.values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (t *table) text(key, otherwise string) string {
	v, ok := t.values[key]
	if !ok {
		return otherwise
	}
	s, ok := v.(string)
	if !ok {
		t.fail(key, "write a text in quotes")
		return otherwise
	}
	return s
}

// int reads an integer. A default of -1 means that the key is required.
func (t *table) int(key string, low, high, otherwise int) int {
	v, ok := t.values[key]
	if !ok {
		if otherwise < 0 {
			t.fail(key, fmt.Sprintf("write an integer from %d to %d", low, high))
		}
		return otherwise
	}
	n, ok := v.(int64)
	if !ok || n < int64(low) || n > int64(high) {
		t.fail(key, fmt.Sprintf("write an integer from %d to %d", low, high))
		return max(otherwise, low)
	}
	return int(n)
}

func (t *table) flag(key string, otherwise int) int {
	v, ok := t.values[key]
	if !ok {
		return otherwise
	}
	on, ok := v.(bool)
	if !ok {
		t.fail(key, "write true or false")
	}
	if on {
		return 1
	}
	return 0
}

func (t *table) float(key string, otherwise float64) float64 {
	v, ok := t.values[key]
	if !ok {
		return otherwise
	}
	x := math.NaN()
	switch v := v.(type) {
	case float64:
		x = v
	case int64:
		x = float64(v)
	}
	if !(x >= 0 && x <= math.MaxFloat32) {
		t.fail(key, "write a number of at least 0")
		return otherwise
	}
	return x
}

// ints reads a required list of integers.
func (t *table) ints(key string) []int {
	const fix = "write the shape of one sample, as in input = [1, 28, 28]"
	list, ok := t.values[key].([]any)
	if !ok {
		t.fail(key, fix)
		return nil
	}
	var out []int
	for _, v := range list {
		n, ok := v.(int64)
		if !ok || n < 1 || n > maxExtent {
			t.fail(key, fix)
			return nil
		}
		out = append(out, int(n))
	}
	return out
}

// table reads a table; a missing one is empty.
func (t *table) table(key string) *table {
	sub := &table{d: t.d, path: append(slices.Clone(t.path), key)}
	if v, ok := t.values[key]; ok {
		if sub.values, ok = v.(map[string]any); !ok {
			t.fail(key, "write a table, as in ["+strings.Join(sub.path, ".")+"]")
		}
	}
	return sub
}

// tables reads an array of tables that must not be empty.
func (t *table) tables(key string) []*table {
	list, _ := t.values[key].([]map[string]any)
	if inline, ok := t.values[key].([]any); ok {
		for _, v := range inline {
			if values, ok := v.(map[string]any); ok {
				list = append(list, values)
			} else {
				t.fail(key, "write tables, as in [["+key+"]]")
			}
		}
	}
	if len(list) == 0 {
		t.fail(key, "write at least one [["+key+"]]")
	}
	var subs []*table
	for i, values := range list {
		subs = append(subs, &table{d: t.d, path: []string{key}, nth: i + 1, values: values})
	}
	return subs
}

// line finds the line of a key of the table, from 1. It is the line of the table's header if the
// key is missing, and 1 if the header is missing too (inline tables).
//
// The decoder does not say where a key was, so the headers are read again. Only lines that look
// like headers and keys count, and a multi-line string could imitate those. So the line is a hint
// for a person; the message also names the key.
func (t *table) line(key string) int {
	inside := len(t.path) == 0
	found, count := 1, 0
	for i, text := range strings.Split(t.d.src, "\n") {
		text = strings.TrimSpace(text)
		if header, ok := strings.CutPrefix(text, "["); ok {
			name, _, _ := strings.Cut(strings.Trim(header, "[ "), "]")
			inside = false
			switch {
			case !sameKey(name, t.path):
				if sameKey(name, append(t.path[:len(t.path):len(t.path)], key)) {
					return i + 1
				}
			case t.nth == 0:
				inside, found = true, i+1
			default:
				count++
				if count == t.nth {
					inside, found = true, i+1
				}
			}
			continue
		}
		if name, _, ok := strings.Cut(text, "="); ok && inside && sameKey(name, []string{key}) {
			return i + 1
		}
	}
	return found
}

// sameKey reports whether a written key, which may be quoted, is a path.
func sameKey(written string, path []string) bool {
	strip := func(s string) string { return strings.NewReplacer(`"`, "", "'", "", " ", "").Replace(s) }
	return strip(written) == strip(strings.Join(path, "."))
}
