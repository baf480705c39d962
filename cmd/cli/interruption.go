package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"dahl/rundir/durable"
)

// Interruption is why the context of a command was cancelled: a signal that came while something was
// to be kept, or SIGPIPE where nobody reads the standard output any more. The command then ends by
// itself.
//
// context.Cause gives it to a command, and errors.As finds it there. It is also a
// context.Canceled.
type Interruption struct{ Signal syscall.Signal }

var signalNames = map[syscall.Signal]string{
	syscall.SIGHUP: "SIGHUP", syscall.SIGINT: "SIGINT", syscall.SIGPIPE: "SIGPIPE", syscall.SIGTERM: "SIGTERM",
}

func (i Interruption) Error() string { return "interrupted by " + signalNames[i.Signal] }
func (Interruption) Unwrap() error   { return context.Canceled }

// ExitCode is the code that a shell reports for a program ended by the signal.
func (i Interruption) ExitCode() int { return 128 + int(i.Signal) }

// signals decides what the first signal does: it ends the program at once, unless a command is
// keeping its results; see [Saving].
type signals struct {
	mu     sync.Mutex
	saving []*string // what such a command says, the latest last
	cancel context.CancelCauseFunc
}

// signalsKey is the key of a [signals] in a context.
type signalsKey struct{}

// Saving makes a signal end the context, and not the program, until done is called: the command has
// results to keep, or something to undo. The text what tells this to the sender of the signal.
func Saving(ctx context.Context, what string) (done func()) {
	s, ok := ctx.Value(signalsKey{}).(*signals)
	if !ok { // no signals are waited for
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saving = append(s.saving, &what)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.saving = slices.DeleteFunc(s.saving, func(w *string) bool { return w == &what })
	}
}

// first obeys the first signal. Where nothing is to be kept it ends the program, after what is half
// written is removed.
func (s *signals) first(by Interruption, program string, stderr io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.saving); n > 0 {
		slog.Warn(*s.saving[n-1]+"; another SIGINT or SIGTERM ends it at once", "signal", signalNames[by.Signal])
		s.cancel(by)
		return
	}
	durable.Stop()
	fmt.Fprintf(stderr, "%s: interrupted (%s)\n", program, signalNames[by.Signal])
	os.Exit(by.ExitCode())
}

// withSignals is a context that the first signal cancels, with an [Interruption], where it does
// not end the program.
//
// A second SIGINT or SIGTERM ends a program that does not stop in time, by the default handling.
// A second SIGHUP does not: a terminal that is lost may follow a signal or bring several.
// SIGPIPE does nothing by itself, and output tells what it means; see [output].
func withSignals(parent context.Context, program string, stderr io.Writer) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	s := &signals{cancel: cancel}
	arrived := make(chan os.Signal, 8)
	signal.Notify(arrived, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(arrived, syscall.SIGHUP)
	}
	go func() {
		for by := range arrived {
			if by == syscall.SIGPIPE {
				continue
			}
			signal.Reset(syscall.SIGINT, syscall.SIGTERM)
			if ctx.Err() == nil {
				s.first(Interruption{by.(syscall.Signal)}, program, stderr)
			}
		}
	}()
	return context.WithValue(ctx, signalsKey{}, s)
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
