package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTerminalLost: a training whose terminal goes away, and with it all that it prints to, has
// written everything.
func TestTerminalLost(t *testing.T) {
	t.Chdir(t.TempDir())
	master, terminal := openTerminal(t)
	cmd := dahlProcess(t, strings.Fields(longTraining)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := errors.Join(cmd.Start(), terminal.Close()); err != nil {
		t.Fatal(err)
	}
	untilEpoch(t, master)
	master.Close()
	cmd.Wait() // its error is the exit code
	checkCut(t, cmd, 128+int(syscall.SIGHUP))
}

// openTerminal makes a terminal, and the end by which a program that shows terminals has it.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("this system gives no terminals: ", err)
	}
	t.Cleanup(func() { master.Close() })
	unlock := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err := errors.Join(unlock, err); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, terminal
}
