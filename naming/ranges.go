package naming

import (
	"strconv"
	"strings"
)

// Ranges writes names of the form "node.part" in fewer words: "n0…n7.gpu0…gpu3" stands for 32 names. Names that follow
// one another by number are a range, and so are nodes with the same parts. Other names stay as they are. [InRange] reads
// each word. A few names are not written as ranges.
func Ranges(names []string) []string {
	if len(names) <= fewNumbered {
		return names
	}
	type group struct{ node, parts string }
	var groups []group
	for len(names) > 0 {
		node, part, ok := strings.Cut(names[0], ".")
		if !ok {
			node, part = "", names[0]
		}
		parts := []string{part}
		names = names[1:]
		for len(names) > 0 {
			of, next, has := strings.Cut(names[0], ".")
			if has != ok || ok && of != node {
				break
			}
			if !ok {
				next = names[0]
			}
			parts, names = append(parts, next), names[1:]
		}
		groups = append(groups, group{node, strings.Join(runs(parts), ",")})
	}
	var words []string
	for len(groups) > 0 {
		n := 1
		for n < len(groups) && groups[n].parts == groups[0].parts && groups[0].node != "" && follows(groups[n-1].node, groups[n].node) {
			n++
		}
		node := span(groups[0].node, groups[n-1].node)
		for part := range strings.SplitSeq(groups[0].parts, ",") {
			if node != "" {
				part = node + "." + part
			}
			words = append(words, part)
		}
		groups = groups[n:]
	}
	return words
}

// runs joins names that follow one another by number.
func runs(names []string) (words []string) {
	for len(names) > 0 {
		n := 1
		for n < len(names) && follows(names[n-1], names[n]) {
			n++
		}
		words = append(words, span(names[0], names[n-1]))
		names = names[n:]
	}
	return words
}

func span(first, last string) string {
	if first == last {
		return first
	}
	return first + "…" + last
}

// follows reports whether a name is another one with the next number.
func follows(name, next string) bool {
	stem, n, ok := number(name)
	same, k, also := number(next)
	return ok && also && stem == same && k == n+1
}

// number is the number at the end of a name, and what comes before it.
func number(name string) (stem string, n int, ok bool) {
	stem = strings.TrimRight(name, "0123456789")
	digits := name[len(stem):]
	n, err := strconv.Atoi(digits)
	return stem, n, err == nil && strconv.Itoa(n) == digits
}

// InRange reports whether a name is the one that a word of [Ranges] gives, or within its range. "n0..n7" is the range "n0…n7", too.
func InRange(word, name string) bool {
	first, last, ok := strings.Cut(strings.Replace(word, "..", "…", 1), "…")
	if !ok {
		return word == name
	}
	stem, n, numbered := number(name)
	a, from, low := number(first)
	b, to, high := number(last)
	return numbered && low && high && a == stem && b == stem && from <= n && n <= to
}
