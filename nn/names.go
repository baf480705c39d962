package nn

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// reserved are the first parts of names that buffers and tasks use, so that no layer may.
var reserved = []string{"clip", "correct", "data", "dropout", "feed", "fetch", "grad", "input", "labels", "loss", "metrics", "state", "step"}

// IsStateName reports whether names of parameters may begin like this, as names of PyTorch do. Gradients and states of the
// optimiser have names that begin otherwise.
func IsStateName(name string) bool {
	first, _, _ := strings.Cut(name, ".")
	return name != "" && first != "grad" && first != "state" && !strings.ContainsFunc(name, func(c rune) bool { return !isNameRune(c) })
}

// isNameRune reports whether names of layers may have a character behind the first.
func isNameRune(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}

// CheckName refuses names that no layer may have.
func CheckName(name string) error {
	if first, _, _ := strings.Cut(name, "."); slices.Contains(reserved, first) {
		return fmt.Errorf("layer %q: names beginning with %q are for dahl's own buffers; choose another", name, first)
	}
	for i, c := range name {
		if !isNameRune(c) || i == 0 && !(unicode.IsLetter(c) || c == '_') {
			return fmt.Errorf("layer %q: a name is a letter followed by letters, digits, '_', '-' and '.'", name)
		}
	}
	return nil
}
