package naming

import (
	"fmt"
	"strconv"
	"strings"
)

// Unknown is the error of a name that is not among those known: what it should name comes first, as
// in `policy "hfet" is not one of eager, heft; did you mean heft`. Of many numbered names in a row it lists the first and the last one,
// as in "cpu.0 … cpu.35".
func Unknown(what, name string, known []string) error {
	return fmt.Errorf("%s %q is not one of %s%s", what, name, strings.Join(Folded(known, fewNumbered, " … "), ", "), DidYouMean(name, known))
}

// fewNumbered is how many names that differ by their numbers are listed one by one.
const fewNumbered = 4

// Folded replaces names in a row that end in consecutive numbers by the first and the last one, if there are more of them than a few.
func Folded(names []string, few int, between string) (some []string) {
	for len(names) > 0 {
		stem, n := strings.TrimRight(names[0], "0123456789"), 1
		for first, err := strconv.Atoi(names[0][len(stem):]); err == nil && n < len(names) && names[n] == stem+strconv.Itoa(first+n); {
			n++
		}
		if n > few {
			some = append(some, names[0]+between+names[n-1])
		} else {
			some = append(some, names[:n]...)
		}
		names = names[n:]
	}
	return some
}

// DidYouMean suggests the known name nearest to an unknown one, for the end
// of a message. Empty means that none is near.
func DidYouMean(name string, known []string) string {
	if best := Nearest(name, known); best != "" {
		return "; did you mean " + best
	}
	return ""
}

// Nearest is the known name that differs least from another one, in any case; empty where none is near.
func Nearest(name string, known []string) string {
	best, least := "", len(name)/3+1 // more differences make another word
	for _, k := range known {
		if d := differences(strings.ToLower(name), strings.ToLower(k)); d <= least && d < len(name) && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

// differences counts the letters to insert, remove or replace that make one word of another
// (the Levenshtein distance).
func differences(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // of the row above, one to the left
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// OneOf lists names as a sentence does: "a, b or c".
func OneOf(list []string) string {
	last := len(list) - 1
	if last < 1 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// FirstFew lists the first few names of a list.
func FirstFew(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
