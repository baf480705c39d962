package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/rundir"
)

// asDahl tells this program that it is to be dahl, for tests that need a process.
const asDahl = "DAHL_TEST_DAHL"

func TestMain(m *testing.M) {
	if os.Getenv(mutantServer) != "" {
		serveMutants()
		return
	}
	if os.Getenv(asDahl) != "" {
		killItself()
		waitItself()
		fakeClocks(os.Getenv(clockTree))
		fakePowercap(os.Getenv(powercapTree))
		cli.Main(rootOfTest)
	}
	if signal.Ignored(syscall.SIGHUP) { // as under nohup; children inherit it unless somebody here listens
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	os.Exit(m.Run())
}

// dahlProcess is dahl with one command line, to be started.
func dahlProcess(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self := must.Get(os.Executable())(t)
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asDahl+"=1")
	t.Cleanup(func() {
		if cmd.Process != nil && cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return cmd
}

// longTraining goes on for minutes after its first epoch.
const longTraining = "execute --model digits-cnn --limit 200 --epochs 50000 --save cut.npz --out cut"

// untilEpoch reads what dahl prints until the first epoch has ended.
func untilEpoch(t *testing.T, stdout io.Reader) {
	t.Helper()
	for lines := bufio.NewScanner(stdout); !strings.HasPrefix(lines.Text(), "epoch"); {
		if !lines.Scan() {
			t.Fatalf("no epoch ended: %v", lines.Err())
		}
	}
}

// TestTrainingEndsBySignal: a training that a signal ends has written everything, and so has one
// that prints to nobody.
func TestTrainingEndsBySignal(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"SIGHUP": syscall.SIGHUP, "SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "SIGPIPE": syscall.SIGPIPE} {
		t.Chdir(t.TempDir())
		cmd := dahlProcess(t, strings.Fields(longTraining)...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		stdout, err := cmd.StdoutPipe()
		must.Do(t, errors.Join(err, cmd.Start()))
		untilEpoch(t, stdout)
		if signal == syscall.SIGPIPE {
			stdout.Close()
		} else if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		cmd.Wait() // its error is the exit code
		checkCut(t, cmd, 128+int(signal))
		r := result{stderr: stderr.String()}
		if said := r.failure(); !strings.HasPrefix(said, "dahl: interrupted ("+name+"): ") || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: %q", name, said)
		}
	}
}

// checkCut checks the exit code and the files of a training that was cut short.
func checkCut(t *testing.T, cmd *exec.Cmd, code int) {
	t.Helper()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("exit code %d, want %d", got, code)
	}
	const stage = "cut/.staging/"
	m := must.Get(record.ReadManifest(stage))(t)
	if m.Complete || m.WeightsHash == "" {
		t.Errorf("manifest says complete %v, weights %q", m.Complete, m.WeightsHash)
	}
	for _, file := range append(m.Files, rundir.File{Name: "../../cut.npz"}) {
		if _, err := os.Stat(stage + file.Name); err != nil {
			t.Error(err)
		}
	}
	if s := rundir.Look("cut"); s.Step == 0 || s.Holder != "" {
		t.Errorf("the training cannot be resumed: %+v", s)
	}
}

// TestPrintedToNobody: a run whose summary nobody reads is complete, and its exit code says that
// it was not read.
func TestPrintedToNobody(t *testing.T) {
	t.Chdir(t.TempDir())
	cmd := dahlProcess(t, strings.Fields("execute --model digits-cnn --limit 64 --epochs 1 --json --out run")...)
	read, write, err := os.Pipe()
	must.Do(t, errors.Join(err, read.Close()))
	cmd.Stdout = write
	cmd.Run() // its error is the exit code
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGPIPE) {
		t.Errorf("exit code %d", code)
	}
	if m, err := record.ReadManifest("run"); err != nil || !m.Complete {
		t.Errorf("manifest %+v, %v", m, err)
	}
}

// longSearch goes on for minutes after it has a plan.
const longSearch = "plan --platform laptop --model mlp --objective energy --seed 2 --budget 1h --out cut"
