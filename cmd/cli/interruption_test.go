package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"dahl/must"
	"dahl/rundir/durable"
)

// asCommand tells this program that it is to be a command: "patient" has something to save and ends when
// it is told to, "stubborn" only with its standard input, "writer" prints until it is told, "busy" is
// never told and has made a temporary file, "done" has saved what it had, and "brief" writes a file.
const asCommand = "DAHL_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		Main(newTestCommand)
	}
	if signal.Ignored(syscall.SIGHUP) { // as under nohup; children inherit it unless somebody here listens
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	os.Exit(m.Run())
}

func newTestCommand([]string) *cobra.Command {
	return &cobra.Command{Use: "test", RunE: func(cmd *cobra.Command, _ []string) error {
		ctx, kind := cmd.Context(), os.Getenv(asCommand)
		switch kind {
		case "patient", "stubborn":
			defer Saving(ctx, "it ends")()
		case "busy":
			return durable.Write("file", func(io.Writer) error {
				fmt.Fprintln(cmd.ErrOrStderr(), "ready")
				select {}
			})
		case "brief":
			return durable.Write("file", func(io.Writer) error { return nil })
		case "done":
			Saving(ctx, "it ends")()
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "ready")
		for kind == "writer" && ctx.Err() == nil {
			fmt.Fprintln(cmd.OutOrStdout(), "more")
		}
		<-ctx.Done()
		fmt.Fprintln(cmd.ErrOrStderr(), context.Cause(ctx))
		if kind == "stubborn" {
			io.Copy(io.Discard, os.Stdin)
		}
		return fmt.Errorf("saving: %w", ctx.Err())
	}}
}

// child is a command in a process of its own.
type child struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stdout io.ReadCloser
	errs   *bufio.Reader
}

// startChild starts a command by a program, or by itself, and waits until it is ready.
func startChild(t *testing.T, kind string, by ...string) *child {
	t.Helper()
	self := must.Get(os.Executable())(t)
	args := append(by, self)
	c := &child{Cmd: exec.Command(args[0], args[1:]...)}
	c.Env = append(os.Environ(), asCommand+"="+kind)
	stderr, err := c.StderrPipe()
	c.errs = bufio.NewReader(stderr)
	var outErr, inErr error
	c.stdout, outErr = c.StdoutPipe()
	c.stdin, inErr = c.StdinPipe()
	must.Do(t, errors.Join(err, outErr, inErr, c.Start()))
	t.Cleanup(func() {
		c.Process.Kill() // one that has not ended by itself
		c.Wait()
	})
	c.says(t, "ready")
	return c
}

// says waits for a line of standard error.
func (c *child) says(t *testing.T, want string) {
	t.Helper()
	if line, err := c.errs.ReadString('\n'); line != want+"\n" {
		t.Fatalf("the child said %q, want %q: %v", line, want, err)
	}
}

// saving is what a command with something to save says to a signal.
func saving(signal string) string {
	return `level=WARN msg="it ends; another SIGINT or SIGTERM ends it at once" signal=` + signal
}

func (c *child) send(t *testing.T, s syscall.Signal) {
	t.Helper()
	must.Do(t, c.Process.Signal(s))
}

// ends waits for the end.
func (c *child) ends(t *testing.T) syscall.WaitStatus {
	t.Helper()
	if rest, err := io.ReadAll(c.errs); err != nil || len(rest) > 0 {
		t.Errorf("the child also said %q: %v", rest, err)
	}
	c.Wait() // its error is what the status says
	return c.ProcessState.Sys().(syscall.WaitStatus)
}

// TestSignals: exit codes are 128 and the signal's number, which is 1 for SIGHUP, 2 for
// SIGINT, 13 for SIGPIPE and 15 for SIGTERM (POSIX).
func TestSignals(t *testing.T) {
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		code   int
	}{{"SIGHUP", syscall.SIGHUP, 129}, {"SIGINT", syscall.SIGINT, 130}, {"SIGTERM", syscall.SIGTERM, 143}} {
		child := startChild(t, "patient")
		child.send(t, c.signal)
		child.says(t, saving(c.name))
		child.says(t, "interrupted by "+c.name)
		child.says(t, "test: interrupted ("+c.name+"): saving: context canceled")
		if status := child.ends(t); status.ExitStatus() != c.code {
			t.Errorf("%s: exit code %d, want %d", c.name, status.ExitStatus(), c.code)
		}
	}
}

// TestSignalEndsAtOnce: a signal ends a command that has nothing to save, whatever it is doing, and it leaves no
// temporary file.
func TestSignalEndsAtOnce(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"SIGHUP": syscall.SIGHUP, "SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM} {
		for _, kind := range []string{"busy", "done"} {
			t.Chdir(t.TempDir())
			child := startChild(t, kind)
			child.send(t, signal)
			child.says(t, "test: interrupted ("+name+")")
			if status := child.ends(t); status.ExitStatus() != 128+int(signal) {
				t.Errorf("%s, %s: exit code %d", kind, name, status.ExitStatus())
			}
			if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
				t.Errorf("%s, %s: left are %v, %v", kind, name, left, err)
			}
		}
	}
}

// TestClosedPipe: a pipe that nobody reads any more interrupts a command that writes to it.
func TestClosedPipe(t *testing.T) {
	child := startChild(t, "writer")
	child.stdout.Close()
	child.says(t, "interrupted by SIGPIPE")
	child.says(t, "test: interrupted (SIGPIPE): saving: context canceled")
	if status := child.ends(t); status.ExitStatus() != 141 {
		t.Errorf("exit code %d", status.ExitStatus())
	}
}

// TestSecondSignal: after a signal the next one ends a command that does not end by itself,
// but for SIGHUP and a closed pipe. A closed pipe is no first signal either.
func TestSecondSignal(t *testing.T) {
	child := startChild(t, "stubborn")
	child.send(t, syscall.SIGHUP)
	child.says(t, saving("SIGHUP"))
	child.says(t, "interrupted by SIGHUP")
	child.send(t, syscall.SIGHUP)
	child.send(t, syscall.SIGPIPE)
	child.send(t, syscall.SIGTERM)
	if status := child.ends(t); status.Signal() != syscall.SIGTERM {
		t.Errorf("after SIGHUP and SIGTERM: %v", status)
	}

	child = startChild(t, "stubborn")
	child.send(t, syscall.SIGTERM)
	child.says(t, saving("SIGTERM"))
	child.says(t, "interrupted by SIGTERM")
	child.send(t, syscall.SIGHUP)
	child.stdin.Close()
	child.says(t, "test: interrupted (SIGTERM): saving: context canceled")
	if status := child.ends(t); status.ExitStatus() != 143 {
		t.Errorf("after SIGTERM and SIGHUP: %v", status)
	}
}

// TestNohup: a command that nohup starts goes on without its terminal.
func TestNohup(t *testing.T) {
	nohup, err := exec.LookPath("nohup")
	if err != nil {
		t.Skip("this system has no nohup")
	}
	child := startChild(t, "patient", nohup)
	child.send(t, syscall.SIGHUP)
	child.send(t, syscall.SIGINT)
	child.says(t, saving("SIGINT"))
	child.says(t, "interrupted by SIGINT")
}
