package naming

import (
	"fmt"
	"strings"
)

// JoinInts writes numbers with a separator between them.
func JoinInts(values []int, sep string) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, sep)
}

// ShapeText writes a shape as in 3×32×32.
func ShapeText(shape []int) string { return JoinInts(shape, "×") }
