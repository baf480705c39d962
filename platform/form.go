package platform

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"dahl/platform/quantity"
	"dahl/platform/tomlfile"
)

// form reads the keys of a table or writes them, so that what a file may say is said once. It
// reads from in; without in, it writes lines to out.
type form struct {
	in    *tomlfile.Table
	known []string // the keys so far, for errors
	out   []string

	// Of the next key: an example of what to write if it must be given, and whether a zero is
	// refused.
	example  string
	positive bool

	// Where the parts of a platform come from: how many of each table nodes have brought, and the tables of all further links.
	ofNodes    map[string]int
	linkTables []string
}

// tableOf is the table of a part of a platform, by its path as one of all parts.
func (f *form) tableOf(path string) string {
	what, rest, _ := strings.Cut(path, "[")
	number, key, ok := strings.Cut(rest, "].")
	i, err := strconv.Atoi(number)
	ofNodes, counted := f.ofNodes[what]
	switch i -= ofNodes; {
	case !ok || err != nil || !counted:
		return path
	case i < 0:
		return "node[0]"
	case what != "link":
		return fmt.Sprintf("%s[%d].%s", what, i, key)
	case i < len(f.linkTables):
		return f.linkTables[i] + "." + key
	}
	return "link"
}

// need says that the next key must be given. It is written even as a zero.
func (f *form) need(example string) *form {
	f.example = example
	return f
}

// above0 says that the next key is not zero where it is given.
func (f *form) above0() *form {
	f.positive = true
	return f
}

// key reads a value or writes its text. A zero is left out.
func (f *form) key(key string, zero bool, read func(), text func() string) {
	example := f.example
	f.example = ""
	if f.in == nil {
		if example != "" || !zero {
			f.out = append(f.out, key+" = "+text())
		}
		return
	}
	f.known = append(f.known, key)
	if example != "" {
		f.in.Need(key, example)
	}
	read()
}

// done reports keys that nobody asked for.
func (f *form) done() { f.in.Done(strings.Join(f.known, ", ")) }

// inline is a table { … }. It is written if there is something to say.
func (f *form) inline(key string, said bool, keys func(f *form)) {
	f.key(key, !said, func() {
		if t := f.in.Table(key); t != nil {
			of := form{in: t}
			keys(&of)
			of.done()
		}
	}, func() string {
		var of form
		keys(&of)
		return "{ " + strings.Join(of.out, ", ") + " }"
	})
}

// tables is the tables [[path]] of a list. It returns those that it read.
func tables[T any](f *form, path string, list *[]T, keys func(v *T, f *form)) (read []*tomlfile.Table) {
	if f.in == nil {
		for i := range *list {
			f.out = append(f.out, "", "[["+path+"]]")
			keys(&(*list)[i], f)
		}
		return nil
	}
	f.known = append(f.known, "[["+path+"]]")
	read = f.in.Tables(path[strings.LastIndexByte(path, '.')+1:])
	for _, t := range read {
		var v T
		of := form{in: t}
		keys(&v, &of)
		of.done()
		*list = append(*list, v)
	}
	return read
}

func (f *form) text(key string, v *string) {
	f.key(key, *v == "", func() { *v = f.in.Text(key) }, func() string { return quote(*v) })
}

func (f *form) flag(key string, v *bool) {
	f.key(key, !*v, func() { *v = f.in.Flag(key, false) }, func() string { return "true" })
}

func (f *form) count(key string, least, most, otherwise int, v *int) {
	f.key(key, *v == 0, func() { *v = f.in.Count(key, least, most, otherwise) }, func() string { return fmt.Sprint(*v) })
}

// number is a number without a unit, written with a point or an exponent.
func (f *form) number(key string, v *float64) {
	positive := f.positive
	f.positive = false
	f.key(key, *v == 0, func() {
		given, ok := f.in.Keys[key]
		if *v = f.in.Number(key, 0); ok && positive && *v == 0 {
			f.in.Fail(key, given, notZero)
		}
	}, func() string {
		s := fmt.Sprint(*v)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		return s
	})
}

// quantity is a number with a unit.
func (f *form) quantity(key string, s *quantity.Scale, v *float64) {
	f.key(key, *v == 0, func() { *v = f.read(key, s) }, func() string { return quote(s.Format(*v)) })
}

func (f *form) duration(key string, v *time.Duration) {
	f.key(key, *v == 0, func() { *v = time.Duration(math.Round(f.read(key, &quantity.Nanoseconds))) },
		func() string { return quote(quantity.Nanoseconds.Format(float64(*v))) })
}

func (f *form) size(key string, v *int64) {
	f.key(key, *v == 0, func() { *v = int64(f.read(key, &quantity.Bytes)) }, func() string { return quote(quantity.Bytes.Format(float64(*v))) })
}

// notZero tells a person how to write a zero otherwise.
const notZero = "want more than zero; leave the key out where it is not known or not limited"

// read takes a number with a unit; 0 if absent.
func (f *form) read(key string, s *quantity.Scale) float64 {
	positive := f.positive
	f.positive = false
	v, ok := f.in.Take(key)
	if !ok {
		return 0
	}
	amount := f.measure(key, v, s)
	if amount == 0 && positive {
		f.in.Fail(key, v, notZero)
	}
	if s == &quantity.Bytes && amount != math.Trunc(amount) {
		f.in.Fail(key, v, "not a whole number of bytes")
	}
	return amount
}

// measure reads the value of a key, or a part of it, as a number with a unit.
func (f *form) measure(key string, v any, s *quantity.Scale) float64 {
	var text string
	switch x := v.(type) {
	case string:
		text = x
	case int64, float64:
		text = fmt.Sprint(x)
	}
	amount, err := s.Parse(text)
	if err != nil {
		f.in.Fail(key, v, err.Error())
	}
	return amount
}

// distribution is DistributionParts numbers and a unit.
func (f *form) distribution(key string, v *Distribution) {
	f.key(key, !v.Known(), func() {
		text, ok := f.in.Text(key), true
		if text == "" {
			return
		}
		if *v, ok = parseDistribution(text); !ok {
			f.in.Fail(key, text, fmt.Sprintf(`want %d times from short to long and their unit, "11.9 12 … 14.1 us"`, DistributionParts))
		}
	}, func() string { return quote(v.format()) })
}

// source is where a power comes from; a guess when nothing is said.
func (f *form) source(v *Source) {
	f.key("source", *v == "", func() {
		*v = Guess
		if _, ok := f.in.Keys["source"]; !ok {
			return
		}
		if *v = Source(f.in.Text("source")); *v != Measured && *v != Datasheet && *v != Guess {
			f.in.Fail("source", string(*v), fmt.Sprintf("write %q, %q or %q", Measured, Datasheet, Guess))
		}
	}, func() string { return quote(string(*v)) })
}

// quote writes a TOML basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func quoteList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
