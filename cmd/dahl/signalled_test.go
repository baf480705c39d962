package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/must"
	"dahl/rundir/durable"
)

// waitInTheMiddle tells a process that is dahl to say waitsHere before the fifth operation on a file or the first
// output of a command, and to wait there until its context ends. The fifth is the second of writing a file, after the
// three of looking whether it could be written, so that there is something to remove.
const waitInTheMiddle = "DAHL_TEST_WAIT_IN_THE_MIDDLE"

// rootOfTest obeys waitInTheMiddle.
func rootOfTest(args []string) *cobra.Command {
	root := newRoot(args)
	if os.Getenv(waitInTheMiddle) == "" {
		return root
	}
	for _, cmd := range withBodies(root) {
		body := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			wait := sync.OnceFunc(func() {
				fmt.Fprintln(os.Stderr, waitsHere)
				<-cmd.Context().Done()
			})
			operations := atomic.Int32{}
			durable.Fault = func(durable.Op, string) error {
				if operations.Add(1) >= 5 {
					wait()
				}
				return nil
			}
			root.SetOut(waitingOutput{root.OutOrStdout(), wait})
			return body(cmd, args)
		}
	}
	return root
}

type waitingOutput struct {
	io.Writer
	wait func()
}

func (o waitingOutput) Write(p []byte) (int, error) {
	o.wait()
	return o.Writer.Write(p)
}

// withBodies are the commands of a tree that do something, hidden ones too.
func withBodies(cmd *cobra.Command) (all []*cobra.Command) {
	for _, sub := range cmd.Commands() {
		all = append(all, withBodies(sub)...)
	}
	if cmd.RunE != nil && !cmd.HasSubCommands() {
		all = append(all, cmd)
	}
	return all
}

// signalled are command lines that have got to the middle where they wait. By then those that save have begun to, and
// go on to keep what was done so far.
var signalled = map[string]struct {
	args  string
	saves bool
}{
	"demo":              {"--out run", false},
	"simulate":          {"--platform laptop --model tiny.toml --steps 2 --out run", false},
	"plan":              {"--platform laptop --model tiny.toml --steps 2 --out run", false},
	"execute":           {"--model tiny.toml --limit 6 --batch 3 --out e", true},
	"evaluate":          {"w.npz --model tiny.toml --out e", false},
	"generate":          {"spoken", false},
	"calibrate":         {"--model tiny.toml --batch 4 --time 1ms --out here.toml", true},
	"compare":           {"run run", false},
	"plot":              {"run gantt --format pdf", false},
	"trace":             {"run", false},
	"report":            {"run --out page.html", false},
	"experiment run":    {"grid.toml --out other --allow-modified", true},
	"experiment verify": {"grid", false},
	"experiment list":   {"", false},
	"experiment show":   {"schedulers", false},
	"peer":              {"pytorch --python PYTHON --out theirs " + strings.Join(smallTraining, " "), true},
	"graph":             {"--model tiny.toml --export g.json", false},
	"import":            {"two.stg --out g.json", false},
	"kernels":           {"", false},
	"doctor":            {"", false},
	"verify":            {"run", false},
	"rerun":             {"run", false},
	"completion":        {"bash", false},
	"man":               {"--out .", false},
}

// TestSignalEndsEveryCommand: the first signal, one of three in turn, ends each command at once, with 128 and its number as the exit code, one line
// and no file that was not there before. A command that saves what was done so far says so, and ends in the same way.
func TestSignalEndsEveryCommand(t *testing.T) {
	inGrid(t, smallGrid)
	python := fakePython(t, 1)
	writeTestFile(t, "two.stg", "2\n0 0 0\n1 3 1 0\n2 4 1 1\n3 0 1 2\n")
	mustRun(t, strings.Fields("simulate --platform laptop --model tiny.toml --steps 2 --out run")...)
	mustRun(t, strings.Fields("execute --model tiny.toml --limit 6 --batch 3 --save w.npz --out trained")...)
	writeTestFile(t, "pairs.toml", sequenceNetwork)
	mustRun(t, strings.Fields("execute --model pairs.toml --data tokens:5:7:13 --batch 7 --out spoken")...)
	must.Do(t, os.Mkdir("tmp", 0o777))
	t.Setenv("TMPDIR", filepath.Join(filepath.Dir(python), "tmp"))
	mustRun(t, strings.Fields("experiment run grid.toml --out grid --allow-modified")...)
	signals := []struct {
		name string
		syscall.Signal
	}{{"SIGHUP", syscall.SIGHUP}, {"SIGINT", syscall.SIGINT}, {"SIGTERM", syscall.SIGTERM}}
	tried := 0
	for _, cmd := range withBodies(newRoot(nil)) {
		words := cli.Words(cmd)
		c, ok := signalled[words]
		if !ok {
			if words != "help" {
				t.Errorf("dahl %s is not tried", words)
			}
			continue
		}
		line := append(strings.Fields(words), strings.Fields(strings.ReplaceAll(c.args, "PYTHON", python))...)
		name, signal := signals[tried%len(signals)].name, signals[tried%len(signals)].Signal
		tried++
		before := listing(t)
		said, code := signalledBy(t, signal, line)
		said = slices.DeleteFunc(said, func(l string) bool { // of workers that share a core, and of what ends when
			return strings.HasPrefix(l, "level=WARN ") && !(c.saves && strings.Contains(l, "signal="))
		})
		want := []string{"dahl: interrupted (" + name + ")"}
		if c.saves {
			want = []string{"level=WARN msg=", want[0] + ": "}
		}
		if code != 128+int(signal) || !slices.EqualFunc(said, want, strings.HasPrefix) || !c.saves && said[0] != want[0] {
			t.Errorf("%s, %s: exit code %d, said %q, want %q", words, name, code, said, want)
		}
		if after := listing(t); !c.saves && after != before {
			t.Errorf("%s, %s: it left something behind; before\n%s\nafter\n%s", words, name, before, after)
		}
	}
}

// signalledBy sends a signal to a command in the middle, and returns what it says from then on.
func signalledBy(t *testing.T, signal syscall.Signal, line []string) (said []string, code int) {
	t.Helper()
	cmd := dahlProcess(t, line...)
	cmd.Env = append(cmd.Env, waitInTheMiddle+"=1")
	stderr, err := cmd.StderrPipe()
	must.Do(t, errors.Join(err, cmd.Start()))
	lines := bufio.NewScanner(stderr)
	for waits := false; lines.Scan(); {
		switch {
		case waits:
			said = append(said, lines.Text())
		case lines.Text() == waitsHere:
			waits = true
			must.Do(t, cmd.Process.Signal(signal))
		default:
			if !strings.HasPrefix(lines.Text(), "level=WARN ") {
				t.Errorf("%v said %q", line, lines.Text())
			}
		}
	}
	cmd.Wait() // its error is the exit code
	return said, cmd.ProcessState.ExitCode()
}
