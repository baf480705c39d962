package naming

import "testing"

func TestCount(t *testing.T) {
	for _, c := range []struct {
		n    int
		want string
	}{{1, "1 task"}, {0, "0 tasks"}, {999, "999 tasks"}, {1234567, "1,234,567 tasks"}, {-123, "-123 tasks"}, {-1234, "-1,234 tasks"}} {
		if got := Count(c.n, "task"); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		if n, ok := ParseCount(c.want, "task"); !ok || n != c.n {
			t.Errorf("%q is read as %d, %v", c.want, n, ok)
		}
	}
	for _, text := range []string{"", "5", "5s", "tasks", "5 nodes", "5.5 tasks"} {
		if n, ok := ParseCount(text, "task"); ok || n != 0 {
			t.Errorf("%q is read as %d tasks", text, n)
		}
	}
}
