//go:build unix

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"dahl/must"
)

// TestFewFiles: however few files a process may open, a command does what it is to do or says in one line what is missing.
func TestFewFiles(t *testing.T) {
	self := must.Get(os.Executable())(t)
	t.Chdir(t.TempDir())
	said := map[int]int{} // how often each exit code came
	for n := 4; n <= 64; n++ {
		cmd := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$0"`, n), self)
		cmd.Env = append(os.Environ(), asCommand+"=brief")
		out, err := cmd.CombinedOutput()
		code := cmd.ProcessState.ExitCode()
		const want = "test: too few files may be open at once; allow more with ulimit -n, such as ulimit -n 64\n"
		switch {
		case strings.Contains(string(out), "error while loading") || code == 127: // before the program itself
		case code == ExitOK && len(out) == 0:
			said[code]++
		case code == ExitBadInput && string(out) == want:
			said[code]++
		default:
			t.Errorf("with %d files: %v, %q", n, err, out)
		}
	}
	if said[ExitOK] == 0 || said[ExitBadInput] == 0 {
		t.Errorf("exit codes %v, want some of each", said)
	}
}
