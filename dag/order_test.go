package dag

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestOrderByName compares with sorting by strings.Compare, over names that share
// beginnings longer than a word, that are beginnings of each other, that differ in
// zero bytes behind an end, and in numbers on both sides of those for which digits
// are counted.
func TestOrderByName(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, c := range []struct {
		what  string
		count int
		name  func(i int) string
	}{
		{"none", 0, nil},
		{"one", 1, func(int) string { return "a" }},
		{"numbers", 3001, func(i int) string { return fmt.Sprint("t", i) }},
		{"tiles", 2003, func(i int) string { return fmt.Sprintf("layer%d.forward[%d:%d,0:7]", i%13, i, i+8) }},
		{"few", 101, func(i int) string { return fmt.Sprintf("convolution%d.backward", i) }},
		{"beginnings", 307, func(i int) string { return strings.Repeat("x", i+1) }},
		{"zeros", 311, func(i int) string { return "task" + strings.Repeat("\x00", i) }},
		{"zeros behind words", 29, func(i int) string { return "12345678" + strings.Repeat("\x00", i%17) + fmt.Sprint(i/17) }},
		{"high bytes", 1009, func(i int) string { return string(rune(50 + 37*i)) }},
	} {
		tasks := make([]Task, c.count)
		for i, k := range rng.Perm(c.count) {
			tasks[i].Name = c.name(k)
		}
		want := make([]TaskID, c.count)
		for i := range want {
			want[i] = TaskID(i)
		}
		slices.SortFunc(want, func(a, b TaskID) int { return strings.Compare(tasks[a].Name, tasks[b].Name) })
		if got := orderByName(tasks); !slices.Equal(got, want) {
			t.Errorf("%s: another order than by comparing names", c.what)
		}
	}
}
