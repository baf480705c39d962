package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"dahl/execute"
	"dahl/naming"
	"dahl/train"
	"dahl/train/budget"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitFailed      = 1   // the run failed
	ExitBadInput    = 2   // what the user gave cannot be used
	ExitInterrupted = 130 // by SIGINT, or by a caller of Run; see [Interruption] for other signals
)

// Main runs the program's command line and ends it. New builds the tree of commands.
func Main(root func(args []string) *cobra.Command) {
	program := root(os.Args[1:])
	if !mayOpenFiles() {
		fmt.Fprintf(os.Stderr, "%s: too few files may be open at once; allow more with ulimit -n, such as ulimit -n 64\n", program.Name())
		os.Exit(ExitBadInput)
	}
	if debug.SetMemoryLimit(-1) == math.MaxInt64 { // the environment says nothing else
		// Garbage is collected before it takes the memory that the run will need.
		debug.SetMemoryLimit(max(0, budget.Available().Bytes))
	}
	ctx := withSignals(context.Background(), program.Name(), os.Stderr)
	os.Exit(Run(ctx, program, os.Args[1:], os.Stdout, os.Stderr))
}

// Run executes one command line and returns the exit code.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	stderr = &plainWriter{Writer: stderr}
	LogTo(stderr)
	started := false
	noteStart(root, &started)
	root.Version, root.SilenceErrors, root.SilenceUsage = Version(), true, true
	root.CompletionOptions.DisableDefaultCmd = true
	ownWords(root)
	root.SetArgs(args)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &output{w: stdout, interrupt: cancel}
	plain := &plainWriter{Writer: out}
	root.SetOut(plain)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	Must(plain.end()) // out keeps its errors
	closed := errors.Is(out.err, syscall.EPIPE)
	if err == nil && !closed {
		err = out.err
	}
	var bad train.InputError
	switch {
	case err == nil && closed: // all was done, and who reads only its first lines knows why they end
		return Interruption{syscall.SIGPIPE}.ExitCode()
	case err == nil:
		return ExitOK
	case errors.Is(err, context.Canceled):
		return interrupted(ctx, root.Name(), err, stderr)
	case !started && out.err == nil:
		if unknown := unknownCommand(root, args); unknown != nil {
			err = unknown
		}
		fmt.Fprintf(stderr, "%s: %s; see %s --help\n", root.Name(), OneLine(err), cmd.CommandPath())
		return ExitBadInput
	}
	if !execute.Reported(err) {
		fmt.Fprintf(stderr, "%s: %s\n", root.Name(), OneLine(err))
	}
	if errors.As(err, &bad) {
		return ExitBadInput
	}
	return ExitFailed
}

// LogTo makes warnings go to a writer, each once: a command may come to the same file several times.
func LogTo(w io.Writer) {
	slog.SetDefault(slog.New(slog.NewTextHandler(&once{w: w, said: map[string]bool{}}, &slog.HandlerOptions{ReplaceAttr: dropTime})))
}

// once passes a text on that it has not passed on before. It has one writer at a time.
type once struct {
	w    io.Writer
	said map[string]bool
}

func (o *once) Write(text []byte) (int, error) {
	if o.said[string(text)] {
		return len(text), nil
	}
	o.said[string(text)] = true
	return o.w.Write(text)
}

// noteStart makes every command below cmd set started when its own code begins, which is
// after cobra has checked arguments and flags: errors before that are usage errors.
func noteStart(cmd *cobra.Command, started *bool) {
	if body := cmd.RunE; body != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*started = true
			return body(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		noteStart(sub, started)
	}
}

// interrupted says that a command has ended early, and why, and returns the exit code.
func interrupted(ctx context.Context, name string, err error, stderr io.Writer) int {
	why, code, by := "", ExitInterrupted, Interruption{}
	if errors.As(context.Cause(ctx), &by) {
		why, code = " ("+signalNames[by.Signal]+")", by.ExitCode()
	}
	fmt.Fprintf(stderr, "%s: interrupted%s: %s\n", name, why, OneLine(err))
	return code
}

// dropTime leaves the time out of warnings: they are read as they appear.
func dropTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// OneLine is an error in one line of [Plain] text.
func OneLine(err error) string { return Plain(naming.OneLine(err), "") }

// AsInput marks an error as caused by a flag or a file of the user. Nil stays nil.
func AsInput(err error) error {
	if err == nil {
		return nil
	}
	return train.InputError{Err: err}
}

// InputErrorf is an error of the user.
func InputErrorf(format string, args ...any) error { return AsInput(fmt.Errorf(format, args...)) }

// Must is for errors that only a mistake in the program can cause.
func Must(err error) {
	if err != nil {
		panic("cli: " + err.Error())
	}
}
