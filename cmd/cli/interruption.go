package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Interruption is why the context of a command was cancelled: a signal, or SIGPIPE where nobody
// reads the standard output any more. The command then ends by itself.
//
// context.Cause gives it to a command, and errors.As finds it there. It is also a
// context.Canceled.
type Interruption struct{ Signal syscall.Signal }

var signalNames = map[syscall.Signal]string{
	syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGPIPE: "SIGPIPE", syscall.SIGTERM: "SIGTERM",
}

func (i Interruption) Error() string { return "interrupted by " + signalNames[i.Signal] }
func (Interruption) Unwrap() error   { return context.Canceled }

// ExitCode is that of a shell for a program that the signal ended.
func (i Interruption) ExitCode() int { return 128 + int(i.Signal) }

// withSignals is a context that the first signal cancels, with an [Interruption].
//
// A second SIGINT or SIGTERM ends a program that does not stop in time, by the default handling.
// A second SIGHUP does not: a terminal that is lost may follow a signal or bring several.
// SIGPIPE does nothing by itself, and output tells what it means; see [output].
func withSignals(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	arrived := make(chan os.Signal, 8)
	signal.Notify(arrived, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(arrived, syscall.SIGHUP)
	}
	go func() {
		for s := range arrived {
			if s == syscall.SIGPIPE {
				continue
			}
			signal.Reset(syscall.SIGINT, syscall.SIGTERM)
			cancel(Interruption{s.(syscall.Signal)})
		}
	}()
	return ctx
}

// output is the standard output. Where it is lost, such as on a full disk, by a closed pipe or
// with the terminal, the command goes on without it and keeps every file; the first error is
// remembered. A closed pipe interrupts the command.
type output struct {
	w         io.Writer
	interrupt context.CancelCauseFunc
	err       error
}

func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return len(p), nil
	}
	if _, o.err = o.w.Write(p); errors.Is(o.err, syscall.EPIPE) {
		o.interrupt(Interruption{syscall.SIGPIPE})
	}
	return len(p), nil
}
