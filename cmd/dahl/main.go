// Command dahl plans, predicts and measures the training of a network on a
// machine of unlike devices. Each subcommand is one file of this package; the
// work itself is done by the packages beside cmd.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"dahl/train"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1 // the run failed
	exitBadInput    = 2 // what the user gave cannot be used
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default handling is back, so that a second one
	// ends a program that does not stop in time.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	slog.SetDefault(slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{ReplaceAttr: dropTime})))
	started := false
	root := newRoot(args, &started)
	root.SetArgs(args)
	out := &checkedOutput{w: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = out.err
	}
	var bad badInput
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "dahl: interrupted:", oneLine(err))
		return exitInterrupted
	case !started && out.err == nil:
		fmt.Fprintf(stderr, "dahl: %s; see %s --help\n", wantedValue(oneLine(err)), cmd.CommandPath())
		return exitBadInput
	case errors.As(err, &bad):
		fmt.Fprintln(stderr, "dahl:", oneLine(err))
		return exitBadInput
	}
	fmt.Fprintln(stderr, "dahl:", oneLine(err))
	return exitFailed
}

// checkedOutput remembers that what was printed was lost, such as on a full disk.
type checkedOutput struct {
	w   io.Writer
	err error
}

func (o *checkedOutput) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// dropTime leaves the time out of warnings: they are read as they appear.
func dropTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// oneLine joins the lines of an error, which errors.Join and cobra make several of.
func oneLine(err error) string {
	text := strings.ReplaceAll(err.Error(), "\n\nDid you mean this?\n\t", "; did you mean ")
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "; ")
}

// parseError is what package strconv says of the value of a flag.
var parseError = regexp.MustCompile(`strconv\.(\w+): parsing "[^"]*": (invalid syntax|value out of range)`)

// wantedValue says instead what to write.
func wantedValue(message string) string {
	return parseError.ReplaceAllStringFunc(message, func(found string) string {
		switch m := parseError.FindStringSubmatch(found); {
		case m[1] == "ParseBool":
			return "want true or false"
		case m[2] == "value out of range":
			return "the number is too large"
		case m[1] == "ParseUint":
			return "want a whole number from 0 on"
		}
		return "want a whole number"
	})
}

// badInput is an error in what the user gave: a flag, a file. It exits with 2.
type badInput = train.InputError

// asInput marks an error as the user's; nil stays nil.
func asInput(err error) error {
	if err == nil {
		return nil
	}
	return badInput{Err: err}
}

func inputErrorf(format string, args ...any) error {
	return badInput{Err: fmt.Errorf(format, args...)}
}

// app is what every subcommand shares.
type app struct {
	args []string // the command line, for the manifest
}

// newRoot builds the command tree. started is set once a command's own code
// runs: errors before that are usage errors.
func newRoot(args []string, started *bool) *cobra.Command {
	a := &app{args: args}
	root := &cobra.Command{
		Use:   "dahl",
		Short: "plan, predict and measure the training of a network on unlike devices",
		Long: `dahl lowers a network to one task graph, predicts its training on a machine
described in TOML, runs it on the real one, and shows the two side by side.

Start with:  dahl demo`,
		Version:           buildVersion(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	for _, sub := range commands {
		root.AddCommand(sub(a))
	}
	noteStart(root, started)
	return root
}

// noArgs refuses arguments, which are mostly values that did not reach their flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if f := cmd.Flags().Lookup("continue-on-loss"); f != nil && f.Changed {
		return fmt.Errorf("argument %q belongs to no flag; its value follows as in --%s=2", args[0], f.Name)
	}
	return fmt.Errorf("argument %q belongs to no flag", args[0])
}

// noteStart makes every command below cmd set started when its own code begins,
// which is after cobra has checked arguments and flags.
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

// commands is the table of subcommands.
var commands = []func(*app) *cobra.Command{
	newDemo,
	newSimulate,
	newPlan,
	newExecute,
	newCalibrate,
	newCompare,
	newPlot,
	newTrace,
	newGraph,
	newKernels,
	newVerify,
	newRerun,
	newBench,
}
