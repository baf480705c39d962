package grid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"dahl/cmd/cli"
	"dahl/rundir"
	"dahl/rundir/experiment"
)

// runDahl runs a cell as a process of this program, so that a crash ends that cell alone. A training
// of which a checkpoint is kept goes on.
func runDahl(ctx context.Context, r *gridRun, c *experiment.Cell, dir string) error {
	args := r.args(c)
	if rundir.Look(dir).Step > 0 {
		args = []string{args[0], "--resume"}
	} else {
		args = append(args, "--out")
	}
	_, err := childDahl(ctx, append(args, dir)...)
	return err
}

// args is the command line of a cell without the directory, as its manifest has it.
func (r *gridRun) args(c *experiment.Cell) []string {
	return contestantOf(c).args(r, c)
}

// childDahl runs this program with a command line and returns what it prints. Its error is the last
// line of what the process said. The process ends with this one, also by kill −9.
func childDahl(ctx context.Context, args ...string) (stdout string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.SysProcAttr = separateProcess()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it keeps a checkpoint
	runtime.LockOSThread()                                                // which Linux takes for the parent
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		return out.String(), childError(ctx, err, said.String())
	}
	return out.String(), nil
}

// childError says why a process of this program failed, in its own words where it had some.
func childError(ctx context.Context, err error, said string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	last, own := strings.CutPrefix(lines[len(lines)-1], "dahl: ")
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case !ended:
		return fmt.Errorf("starting this program: %w", err)
	case own:
		return errors.New(last)
	case last != "":
		return fmt.Errorf("%w: %s", exit, last)
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return errors.New("killed, perhaps for want of memory")
	}
	return exit
}

// verifyDahl checks the files of a run by their hashes and runs it again.
func verifyDahl(ctx context.Context, dir, python string) (text string, err error) {
	if err := rundir.Verify(dir); err != nil {
		return "", errors.New(cli.OneLine(err))
	}
	out, err := childDahl(ctx, "rerun", "--python="+python, dir)
	var different []string
	for line := range strings.Lines(out) {
		what, verdict := strings.TrimSpace(line[:min(len(line), 20)]), strings.TrimSpace(line[min(len(line), 20):])
		switch {
		case strings.HasPrefix(verdict, "DIFFERENT"):
			different = append(different, what+" "+verdict)
		case what == "times":
			text = what + " " + verdict
		}
	}
	if err != nil && different != nil {
		err = errors.New(strings.Join(different, ", "))
	}
	return text, err
}
