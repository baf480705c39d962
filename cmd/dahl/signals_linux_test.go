package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/rundir"
)

// TestTerminalLost: a training whose terminal goes away, and with it all that it prints to, has
// written everything.
func TestTerminalLost(t *testing.T) {
	t.Chdir(t.TempDir())
	master, terminal := openTerminal(t)
	cmd := dahlProcess(t, strings.Fields(longTraining)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.Do(t, errors.Join(cmd.Start(), terminal.Close()))
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
	must.Do(t, errors.Join(unlock, err))
	terminal = must.Get(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	return master, terminal
}

// searching starts dahl on a terminal, and waits until its search says that it has a plan.
func searching(t *testing.T, env ...string) (cmd *exec.Cmd, says *bufio.Reader) {
	t.Helper()
	master, terminal := openTerminal(t)
	cmd = dahlProcess(t, strings.Fields(longSearch)...)
	cmd.Env, cmd.Stderr = append(cmd.Env, env...), terminal
	must.Get(cmd.StdinPipe())(t)
	must.Do(t, errors.Join(cmd.Start(), terminal.Close()))
	says = bufio.NewReader(master)
	untilSaid(t, says, "; Ctrl-C takes it")
	return cmd, says
}

// untilSaid reads until a text has come.
func untilSaid(t *testing.T, says *bufio.Reader, text string) {
	t.Helper()
	var said strings.Builder
	for !strings.HasSuffix(said.String(), text) {
		b, err := says.ReadByte()
		if err != nil {
			t.Fatalf("it ended with %v and said %q, not %q", err, said.String(), text)
		}
		said.WriteByte(b)
	}
}

// TestSearchEndsBySignal: a search that a signal ends has written the best plan until then as any other, in the place of an
// earlier one, and says so. It is not repeated, since it would not come to the same.
func TestSearchEndsBySignal(t *testing.T) {
	t.Chdir(t.TempDir())
	mustRun(t, strings.Fields("plan --platform laptop --model mlp --seed 1 --out cut")...)
	for name, signal := range map[string]syscall.Signal{"SIGHUP": syscall.SIGHUP, "SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM} {
		cmd, says := searching(t)
		must.Do(t, cmd.Process.Signal(signal))
		untilSaid(t, says, "dahl: interrupted ("+name+"): the plan in cut is the best so far: context canceled\r\n")
		cmd.Wait() // its error is the exit code
		if code := cmd.ProcessState.ExitCode(); code != 128+int(signal) {
			t.Errorf("%s: exit code %d", name, code)
		}
		wantVerified(t, "cut")
		if m := manifestOf(t, "cut"); !m.Interrupted || m.Options.Seed != 2 || !m.Lists(record.FrontFile) {
			t.Errorf("%s: %+v", name, m)
		}
		wantRefused(t, "rerun cut", "until a signal ended it")
	}
}

// TestSearchEndsAtSecondSignal: a second signal ends a search that writes its plan, and the plan before it stays.
func TestSearchEndsAtSecondSignal(t *testing.T) {
	t.Chdir(t.TempDir())
	mustRun(t, strings.Fields("plan --platform laptop --model mlp --seed 1 --out cut")...)
	for _, operation := range []int{1, 12} {
		cmd, says := searching(t, fmt.Sprintf("%s=%d", waitBefore, operation))
		must.Do(t, cmd.Process.Signal(syscall.SIGINT))
		untilSaid(t, says, waitsHere)
		must.Do(t, cmd.Process.Signal(syscall.SIGTERM))
		cmd.Wait() // its error is the signal
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
			t.Errorf("before operation %d: %v", operation, status)
		}
		if m := manifestOf(t, "cut"); m.Options.Seed != 1 {
			t.Errorf("before operation %d: the plan before it is not there: %+v", operation, m)
		}
		if err := rundir.Verify("cut"); err != nil {
			t.Errorf("before operation %d: %v", operation, err)
		}
	}
}
