package naming

import (
	"slices"
	"strings"
	"testing"
)

func TestRanges(t *testing.T) {
	for list, want := range map[string]string{
		"n0.gpu0 n0.gpu1 n1.gpu0 n1.gpu1 n2.gpu0 n2.gpu1": "n0…n2.gpu0…gpu1",
		"n0.cpu n0.gpu0 n1.cpu n1.gpu0 n2.cpu n2.gpu0":    "n0…n2.cpu n0…n2.gpu0",
		"n0.gpu0 n2.gpu0 n4.gpu0 n6.gpu0 n7.gpu0":         "n0.gpu0 n2.gpu0 n4.gpu0 n6…n7.gpu0",
		"n0.gpu0 n0.gpu2 n0.gpu3 n0.gpu4 n1.gpu4":         "n0.gpu0 n0.gpu2…gpu4 n1.gpu4",
		"cpu gpu0 gpu1 gpu2 gpu3":                         "cpu gpu0…gpu3",
		"cpu gpu0 gpu1 gpu2":                              "cpu gpu0 gpu1 gpu2",                 // few
		"n08.gpu0 n09.gpu0 n10.gpu0 n11.gpu0 a.b":         "n08.gpu0 n09.gpu0 n10…n11.gpu0 a.b", // 08 is no number that a count makes
		"box": "box",
		"":    "",
	} {
		names := strings.Fields(list)
		words := Ranges(names)
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%s: %s, want %s", list, got, want)
		}
		// Each name is in exactly one word, node and part by themselves.
		for _, name := range names {
			if n := len(slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !covered(w, name) })); n != 1 {
				t.Errorf("%s: %s is in %d words", list, name, n)
			}
		}
	}
	if InRange("n0…n3", "n4") || InRange("n0…n3", "m1") || InRange("n0..n3", "n") || !InRange("n0..n3", "n3") || InRange("n1…n3", "n0") {
		t.Error("names outside of a range are in it, or the other way")
	}
}

func covered(word, name string) bool {
	node, part, ok := strings.Cut(word, ".")
	of, rest, has := strings.Cut(name, ".")
	if !ok || !has {
		return ok == has && InRange(word, name)
	}
	return InRange(node, of) && InRange(part, rest)
}
