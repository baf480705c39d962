package budget

import (
	"math"
	"strings"
	"testing"
)

// TestSystemFiles reads files of both versions of control groups. Version 2: the group above has
// 10⁹ bytes, of which 9·10⁸ are used and (4.1+2.9)·10⁸ of these are files: 8·10⁸ are left. Version 1
// in a container, whose path is that outside: 2147483648 − (1147483648 − 47·10⁶) = 1047·10⁶. Of
// address space 2 GiB less the 1,300,000 KiB in use and the share of the runtime are left.
func TestSystemFiles(t *testing.T) {
	for _, c := range []struct {
		root  string
		read  func(root string) Limit
		bytes int64
	}{
		{"v2", machine, 20_000_000 << 10},
		{"v2", groups, 800_000_000},
		{"v1", machine, 100_000 << 10},
		{"v1", groups, 1_047_000_000},
		{"old", machine, math.MaxInt64}, // kernels before 3.14 do not say
		{"old", groups, math.MaxInt64},  // nothing says what is used
		{"none", machine, math.MaxInt64},
		{"none", groups, math.MaxInt64},
		{"v2", func(root string) Limit { return process(root, "VmSize:", "", 2<<30) }, 2<<30 - 1_300_000<<10 - runtimeShare},
		{"v2", func(root string) Limit { return process(root, "VmSize:", "", math.MaxUint64) }, math.MaxInt64},
		{"v1", func(root string) Limit { return process(root, "VmSize:", "", 2<<30) }, math.MaxInt64},
	} {
		if got := c.read("testdata/" + c.root); got.Bytes != c.bytes {
			t.Errorf("%s: %d bytes of %s, want %d", c.root, got.Bytes, got.Of, c.bytes)
		}
	}
	if got := Available(); got.Bytes <= 0 {
		t.Errorf("this process has %+v left", got)
	}
}

// TestCheck: 3 + 5 + 1 GB and 7 bytes fit as much and not a byte less. The most is said first, and
// nobody is sent to lower the 7 bytes.
func TestCheck(t *testing.T) {
	const gb = 1_000_000_000
	needs := []Need{{3 * gb, "samples", "a --limit"}, {5 * gb, "a step", "a smaller --batch"}, {0, "nothing", "nothing"}, {gb, "workspace", "a smaller --batch"}, {7, "labels", "another file"}}
	if err := Check(needs, Limit{9*gb + 7, "the machine"}); err != nil {
		t.Error(err)
	}
	err := Check(needs, Limit{9*gb + 6, "the machine"})
	const want = "9 GB of memory are needed and the machine has 9 GB left: a step 5 GB, samples 3 GB, workspace 1 GB, labels 7 B; take a smaller --batch or a --limit"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if err := Check([]Need{{math.MaxInt64, "a", ""}, {math.MaxInt64, "b", ""}}, unlimited); err != nil {
		t.Errorf("unlimited is exceeded: %v", err)
	}
	if err := Check(needs, Limit{-5, "ulimit -v"}); err == nil || !strings.Contains(err.Error(), "ulimit -v has 0 B left") {
		t.Errorf("error %v of a limit that is exceeded already", err)
	}
}
