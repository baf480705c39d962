package tiling

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
)

// separator comes before each difference from the base, as in "4 samples per task; fc1: 32 samples; conv2: 2 gradient accumulators".
const separator = "; "

// String is the text of a tiling, which [Parse] reads back. The zero Tiling has an empty text.
func (t Tiling) String() string {
	text := t.Base.String()
	for _, c := range t.changes.list() {
		text += separator + c.String()
	}
	return text
}

func (b Base) String() string {
	switch b.Kind {
	case Default:
		return "default"
	case Whole:
		return "whole"
	case Samples:
		text := counted(b.Number, "sample") + " per task"
		if b.WholeSums {
			text += " and whole gradients"
		}
		return text
	case Parts:
		what := b.Along.String()
		if b.Along == dag.AlongSamples {
			what = "batch"
		}
		return fmt.Sprintf("%d parts of the %s", b.Number, what)
	}
	return ""
}

func (c change) String() string {
	if c.layer == "" {
		return c.networkText()
	}
	return c.layer + ": " + c.text(c.value)
}

// passTexts come before the numbers of a pass.
var passTexts = [dag.NumPasses]string{dag.WeightGradientPass: "gradient ", dag.InputGradientPass: "input-gradient "}

// name is the text of the number, for a value of one.
func (n number) name() string { return passTexts[n.pass] + strings.TrimSuffix(n.of.String(), "s") }

// text is a value of the number, as in "1 sample", "4 samples" and "all samples".
func (n number) text(value int) string {
	if value == 0 {
		return "all " + n.name() + "s"
	}
	return counted(value, n.name())
}

// counted is a number of things by the name of one.
func counted(n int, name string) string {
	if n != 1 {
		name += "s"
	}
	return fmt.Sprintf("%d %s", n, name)
}

// Parse reads the text of a tiling, and refuses all others. Whether a network can be cut so, [Network.Lowering] says.
func Parse(text string) (t Tiling, err error) {
	if text == "" {
		return t, nil
	}
	base, rest, changed := strings.Cut(text, separator)
	if t.Base = parseBase(base); t.Kind == 0 {
		return t, fmt.Errorf("tiles %q: the layers cannot be cut so", text)
	}
	for changed {
		var of string
		of, rest, changed = strings.Cut(rest, separator)
		c, ok := parseChange(of)
		if !ok {
			return t, fmt.Errorf("tiles %q: %q is none of the numbers of a layer, such as \"conv1: %s\"", text, of, example)
		}
		own := slices.DeleteFunc(t.changes.list(), func(is change) bool { return is.layer != c.layer || is.number == c.number })
		own = append(own, c)
		slices.SortFunc(own, func(a, b change) int { return slices.Index(numbers, a.number) - slices.Index(numbers, b.number) })
		t = t.with(c.layer, own)
	}
	if own := t.String(); own != text {
		return t, fmt.Errorf("tiles %q: their name is %q", text, own)
	}
	return t, nil
}

// example is a number of a layer, for errors.
var example = number{dag.ForwardPass, dag.AlongSamples}.text(2)

// parseBase is the way to cut all layers by its text. Zero means that there is none.
func parseBase(text string) Base {
	all := []Base{{Kind: Default}, {Kind: Whole}}
	digits, _, _ := strings.Cut(text, " ")
	if n, err := strconv.Atoi(digits); err == nil && n > 0 {
		all = append(all, Base{Kind: Samples, Number: n}, Base{Kind: Samples, Number: n, WholeSums: true})
		for along := range dag.NumDimensions {
			all = append(all, InParts(n, along).Base)
		}
	}
	for _, b := range all {
		if b.String() == text {
			return b
		}
	}
	return Base{}
}

// parseChange reads a number such as "2 micro-batches", "fc1: 32 samples" or "conv2: all rows".
func parseChange(text string) (c change, ok bool) {
	if c, ok = parseNetworkChange(text); ok {
		return c, true
	}
	layer, of, _ := strings.Cut(text, ": ")
	digits, name, _ := strings.Cut(of, " ")
	i := slices.IndexFunc(numbers, func(n number) bool { return n.name() == strings.TrimSuffix(name, "s") })
	value, err := strconv.Atoi(digits)
	if layer == "" || i < 0 || err != nil && digits != "all" || value < 0 {
		return c, false
	}
	return change{layer: layer, number: numbers[i], value: value}, true
}

// MarshalText makes the text of a tiling its form in files.
func (t Tiling) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads the form that MarshalText makes.
func (t *Tiling) UnmarshalText(text []byte) (err error) {
	*t, err = Parse(string(text))
	return err
}
