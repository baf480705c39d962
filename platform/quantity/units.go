// Package quantity reads and writes numbers with their units, to the last bit.
package quantity

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"dahl/platform/tomlfile"
)

// Bounds of what a quantity may be; beyond them a value is a mistake, and sums of
// many could overflow. Up to 2^53 every whole number is exact in float64.
const (
	MaxWhole = 1 << 53 // bytes, nanoseconds
	MaxReal  = 1e24    // rates, watts, joules, operations
)

// unit is a suffix and its factor 10^exp10 · 2^exp2.
type unit struct {
	suffix      string
	exp10, exp2 int
}

// Scale is a kind of quantity and its units; the decimal ones from large to small.
type Scale struct {
	what    string
	suggest string // the unit to propose when none was written
	max     float64
	units   []unit
}

// The quantities of platform files.
var (
	Bytes = Scale{"a size", "GB", MaxWhole, []unit{
		{"PB", 15, 0}, {"TB", 12, 0}, {"GB", 9, 0}, {"MB", 6, 0}, {"kB", 3, 0}, {"B", 0, 0},
		{"PiB", 0, 50}, {"TiB", 0, 40}, {"GiB", 0, 30}, {"MiB", 0, 20}, {"KiB", 0, 10}}}
	BytesPerSec = Scale{"a bandwidth", "GB/s", MaxReal, []unit{
		{"TB/s", 12, 0}, {"GB/s", 9, 0}, {"MB/s", 6, 0}, {"kB/s", 3, 0}, {"B/s", 0, 0},
		{"GiB/s", 0, 30}, {"MiB/s", 0, 20}, {"KiB/s", 0, 10}}}
	FlopsPerSec = Scale{"a speed", "GF/s", MaxReal, []unit{
		{"PF/s", 15, 0}, {"TF/s", 12, 0}, {"GF/s", 9, 0}, {"MF/s", 6, 0}, {"kF/s", 3, 0}, {"F/s", 0, 0}}}
	Flops = Scale{"a number of operations", "F", MaxReal, []unit{
		{"TF", 12, 0}, {"GF", 9, 0}, {"MF", 6, 0}, {"kF", 3, 0}, {"F", 0, 0}}}
	Watts = Scale{"a power", "W", MaxReal, []unit{
		{"MW", 6, 0}, {"kW", 3, 0}, {"W", 0, 0}, {"mW", -3, 0}, {"uW", -6, 0}}}
	Joules = Scale{"an energy", "J", MaxReal, []unit{
		{"MJ", 6, 0}, {"kJ", 3, 0}, {"J", 0, 0}, {"mJ", -3, 0}, {"uJ", -6, 0}, {"nJ", -9, 0}}}
	Hertz = Scale{"a frequency", "GHz", MaxReal, []unit{
		{"GHz", 9, 0}, {"MHz", 6, 0}, {"kHz", 3, 0}, {"Hz", 0, 0}}}
	// Times count in nanoseconds, the base of time.Duration.
	Nanoseconds = Scale{"a time", "us", MaxWhole, []unit{{"s", 9, 0}, {"ms", 6, 0}, {"us", 3, 0}, {"ns", 0, 0}}}
)

// ShortBytes is a size with three significant digits at most, in decimal units, as all texts have it.
func ShortBytes(n int64) string {
	v, err := strconv.ParseFloat(strconv.FormatFloat(float64(n), 'e', 2, 64), 64)
	if err != nil {
		panic("quantity: " + err.Error())
	}
	decimal := Scale{units: Bytes.units[:6]}
	return decimal.Format(v)
}

// ParseTime reads a time that a person writes: with its unit, as in platform files, and also in minutes and hours or in
// several parts, such as "2.5 ms", "5min" or "1h 30m".
func ParseTime(text string) (time.Duration, error) {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), ""), "min", "m")
	t, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("not a time; write a number and one of h, min, s, ms, us, ns, such as \"2.5 ms\"")
	}
	return t, nil
}

// Parse reads "12.5 GB". The value is the float64 nearest to the decimal number:
// the unit's exponent is added to the number's, with no rounding between.
func (s *Scale) Parse(text string) (float64, error) {
	number, suffix := splitNumber(text)
	if !strings.ContainsAny(number, "0123456789") {
		return 0, fmt.Errorf("not %s; write for example %q", s.what, "1.5 "+s.suggest)
	}
	if suffix == "" {
		return 0, fmt.Errorf("a unit is missing; write %q", tomlfile.Clip(number)+" "+s.suggest)
	}
	suffix = strings.NewReplacer("\u00b5", "u", "\u03bc", "u").Replace(suffix)
	for _, u := range s.units {
		if u.suffix == suffix {
			return s.value(number, u)
		}
	}
	names := make([]string, len(s.units))
	for i, u := range s.units {
		names[i] = u.suffix
	}
	return 0, fmt.Errorf("unknown unit %q for %s; write one of %s", tomlfile.Clip(suffix), s.what, strings.Join(names, ", "))
}

func (s *Scale) value(number string, u unit) (float64, error) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	exp := 0
	if exponent != "" {
		var err error
		if exp, err = strconv.Atoi(exponent); err != nil || exp < -400 || exp > 400 {
			return 0, fmt.Errorf("the exponent of %q is out of range", tomlfile.Clip(number))
		}
	}
	v, err := strconv.ParseFloat(mantissa+"e"+strconv.Itoa(exp+u.exp10), 64)
	if errors.Is(err, strconv.ErrSyntax) {
		return 0, fmt.Errorf("%q is not a number", tomlfile.Clip(number))
	}
	v = math.Ldexp(v, u.exp2)
	switch {
	case math.Signbit(v):
		return 0, fmt.Errorf("%s cannot be negative", s.what)
	case v > s.max:
		return 0, fmt.Errorf("larger than %s, the most that is accepted", s.Format(s.max))
	}
	return v, nil
}

// splitNumber cuts the leading number off a quantity. What it returns need not
// be well formed; ParseFloat judges that.
func splitNumber(text string) (number, suffix string) {
	text = strings.TrimSpace(text)
	i := 0
	for i < len(text) {
		c := text[i]
		sign := c == '+' || c == '-'
		exponent := (c == 'e' || c == 'E') && i+1 < len(text) && strings.IndexByte("+-0123456789", text[i+1]) >= 0
		switch {
		case c >= '0' && c <= '9', c == '.', exponent && i > 0, sign && (i == 0 || text[i-1]|0x20 == 'e'):
			i++
		default:
			return text[:i], strings.TrimSpace(text[i:])
		}
	}
	return text, ""
}

// Format writes v so that parse gives back the same float64. It moves the point
// in the shortest decimal form of v to the largest unit with a digit before the
// point, or takes a binary unit where that is whole and shorter.
func (s *Scale) Format(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Sprint(v) + " " + s.suggest
	case v < 0:
		return "-" + s.Format(-v)
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
	exp, _ := strconv.Atoi(exponent) // as FormatFloat writes it
	var best unit
	for _, u := range s.units {
		if u.exp2 == 0 && (best.suffix == "" || best.exp10 > exp) {
			best = u
		}
	}
	shift := exp - best.exp10
	moved, _ := new(big.Rat).SetString(fmt.Sprintf("%se%d", digits, shift))
	decimals := max(0, len(digits)-len("1.")) - shift
	text := moved.FloatString(max(0, decimals)) + " " + best.suffix
	for _, u := range s.units {
		if w := math.Ldexp(v, -u.exp2); u.exp2 > 0 && w >= 1 && w == math.Trunc(w) {
			if b := strconv.FormatFloat(w, 'f', -1, 64) + " " + u.suffix; len(b) < len(text) {
				text = b
			}
		}
	}
	return text
}
