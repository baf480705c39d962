//go:build unix

package durable

import (
	"os"
	"syscall"
	"testing"

	"dahl/must"
)

// TestUmask: 0o666 without the bits 0o077 is 0o600.
func TestUmask(t *testing.T) {
	t.Chdir(t.TempDir())
	defer syscall.Umask(syscall.Umask(0o077))
	must.Do(t, Write("secret", text("x")))
	if info, err := os.Stat("secret"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("rights %v (%v), want 0600", info.Mode(), err)
	}
}
