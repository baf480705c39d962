package naming

import (
	"fmt"
	"strings"
)

// Unknown is the error of a name that is not among those known: what it should name comes first, as
// in `policy "hfet" is not one of eager, heft; did you mean heft`.
func Unknown(what, name string, known []string) error {
	return fmt.Errorf("%s %q is not one of %s%s", what, name, strings.Join(known, ", "), DidYouMean(name, known))
}

// DidYouMean suggests the known name nearest to an unknown one, for the end
// of a message; empty where none is near.
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
