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
	}
}
