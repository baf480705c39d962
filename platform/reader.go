package platform

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

// Bounds of a source: the TOML library recurses into nested values.
const (
	maxSourceBytes = 64 << 20
	maxNesting     = 64
)

// reader reads one TOML file. Its methods and those of its tables keep the first
// error; what they return after it is meaningless.
type reader struct {
	name  string
	lines lineIndex
	err   error
}

// table is one table of the file. Each key that is asked for is used up.
type table struct {
	r     *reader
	path  string // "" at the top, else such as "device[1]"
	owner string // how errors call it, such as `device "gpu0"`
	keys  map[string]any
}

// newReader parses the syntax.
func newReader(src []byte, name string) (*reader, *table, error) {
	r := &reader{name: name}
	text := string(src)
	if len(src) > maxSourceBytes {
		return nil, nil, fmt.Errorf("%s: larger than %s", name, bytesScale.format(maxSourceBytes))
	}
	if line := tooDeep(text); line > 0 {
		return nil, nil, fmt.Errorf("%s:%d: arrays or tables nested more than %d deep", name, line, maxNesting)
	}
	top := map[string]any{}
	if _, err := toml.Decode(text, &top); err != nil {
		return nil, nil, syntaxError(name, err)
	}
	r.lines = indexLines(text)
	return r, &table{r: r, keys: top}, nil
}

func syntaxError(name string, err error) error {
	line, text := 1, err.Error()
	if pe, ok := err.(toml.ParseError); ok {
		line, text = pe.Position.Line, pe.Message
	}
	text, _, _ = strings.Cut(text, "\n")
	return fmt.Errorf("%s:%d: not TOML: %s", name, line, text)
}

// tooDeep returns the first line on which more brackets are open than any file
// needs, counting those in strings and comments too until the line ends; 0 for none.
func tooDeep(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if strings.Count(line, "[")+strings.Count(line, "{") > maxNesting {
			return n
		}
	}
	return 0
}

func (r *reader) failAt(path, owner, text string) {
	if r.err != nil {
		return
	}
	if owner != "" {
		owner += ": "
	}
	r.err = fmt.Errorf("%s:%d: %s%s", r.name, r.lines.of(path), owner, text)
}

// fail reports what is wrong with the value of a key.
func (t *table) fail(key string, value any, text string) {
	shown := clip(fmt.Sprint(value))
	if s, ok := value.(string); ok {
		shown = strconv.Quote(clip(s))
	}
	t.r.failAt(t.join(key), t.owner, key+" = "+shown+": "+text)
}

func (t *table) join(key string) string {
	if t.path == "" {
		return key
	}
	return t.path + "." + key
}

// take returns the value of a key and uses it up.
func (t *table) take(key string) (any, bool) {
	v, ok := t.keys[key]
	delete(t.keys, key)
	return v, ok
}

// need reports a key that must be there and is not. example is what to write.
func (t *table) need(key, example string) {
	if _, ok := t.keys[key]; !ok {
		t.r.failAt(t.path, t.owner, fmt.Sprintf("%s is missing; write %s = %s", key, key, example))
	}
}

// done reports the keys that nobody asked for.
func (t *table) done(known string) {
	for _, key := range slices.Sorted(maps.Keys(t.keys)) {
		t.r.failAt(t.join(key), t.owner, fmt.Sprintf("%s: unknown key; known are %s", clip(key), known))
	}
}

// text reads a string; empty if absent.
func (t *table) text(key string) string {
	v, ok := t.take(key)
	s, isText := v.(string)
	if ok && !isText {
		t.fail(key, v, "want a text in quotes")
	}
	return s
}

// quantity reads a number with a unit; 0 if absent.
func (t *table) quantity(key string, s *scale) float64 {
	v, ok := t.take(key)
	if !ok {
		return 0
	}
	return t.measure(key, v, s)
}

func (t *table) measure(key string, v any, s *scale) float64 {
	var text string
	switch x := v.(type) {
	case string:
		text = x
	case int64, float64:
		text = fmt.Sprint(x)
	}
	f, err := s.parse(text)
	if err != nil {
		t.fail(key, v, err.Error())
	}
	return f
}

// bytes reads a size; 0 if absent.
func (t *table) bytes(key string) int64 {
	v := t.keys[key]
	f := t.quantity(key, &bytesScale)
	if f != math.Trunc(f) {
		t.fail(key, v, "not a whole number of bytes")
	}
	return int64(f)
}

// count reads a whole number between least and most; otherwise if absent.
func (t *table) count(key string, least, most, otherwise int) int {
	v, ok := t.take(key)
	if !ok {
		return otherwise
	}
	n, whole := v.(int64)
	if !whole || n < int64(least) || n > int64(most) {
		t.fail(key, v, fmt.Sprintf("want a whole number from %d to %d", least, most))
	}
	return int(n)
}

// number reads a plain number; otherwise if absent.
func (t *table) number(key string, otherwise float64) float64 {
	v, ok := t.take(key)
	switch x := v.(type) {
	case int64:
		return float64(x)
	case float64:
		return x
	}
	if ok {
		t.fail(key, v, "want a number without a unit")
	}
	return otherwise
}

func (t *table) flag(key string) bool {
	v, ok := t.take(key)
	b, isFlag := v.(bool)
	if ok && !isFlag {
		t.fail(key, v, "write true or false")
	}
	return b
}

// texts reads an array of strings.
func (t *table) texts(key string) []string {
	v, ok := t.take(key)
	if !ok {
		return nil
	}
	list, isList := v.([]any)
	var out []string
	for _, e := range list {
		s, isText := e.(string)
		isList = isList && isText
		out = append(out, s)
	}
	if !isList {
		t.fail(key, v, `want an array of texts, ["…"]`)
	}
	return out
}

// table reads an inline table; nil if absent.
func (t *table) table(key string) *table {
	v, ok := t.take(key)
	if !ok {
		return nil
	}
	keys, isTable := v.(map[string]any)
	if !isTable {
		t.fail(key, v, "want a table, { … }")
	}
	owner := key
	if t.owner != "" {
		owner = t.owner + ": " + key
	}
	return &table{t.r, t.join(key), owner, keys}
}

// tables reads an array of tables, [[key]]. Errors call each by its name, or by
// its number where it has none.
func (t *table) tables(key string) []*table {
	v, ok := t.take(key)
	list, isList := v.([]map[string]any)
	if ok && !isList {
		t.fail(key, v, "want tables; write [["+key+"]] above each")
	}
	out := make([]*table, len(list))
	for i, keys := range list {
		path := t.join(fmt.Sprintf("%s[%d]", key, i))
		owner := fmt.Sprintf("%s %d", key, i+1)
		if name, isText := keys["name"].(string); isText && name != "" {
			owner = fmt.Sprintf("%s %q", key, clip(name))
		}
		if t.owner != "" {
			owner = t.owner + ": " + owner
		}
		out[i] = &table{t.r, path, owner, keys}
	}
	return out
}
