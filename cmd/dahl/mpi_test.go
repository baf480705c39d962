package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dahl/cmd/dahl/record"
	"dahl/must"
)

// programVariable names the program for tests over ranks, launcherVariable has the command that starts its ranks but their
// number, and killsVariable says how often a rank is killed. See make mpi-test.
const (
	programVariable  = "DAHL_MPI_TEST"
	launcherVariable = "DAHL_MPI_RUN"
	killsVariable    = "DAHL_MPI_KILLS"
)

// clusterFile is a cluster of a machine that a test has written beside it.
const clusterFile = `name = "two"
[[node]]
name = "n"
platform = "one.toml"
count = 2
[[link]]
name = "net"
from = "n0.ram"
to = "n1.ram"
bandwidth = "2 GB/s"
latency = "50 us"
`

// machineFile is a machine of some processors of a core each.
func machineFile(processors int) string {
	text := "name = \"one\"\n[[memory]]\nname = \"ram\"\nbandwidth = \"10 GB/s\"\n"
	for i := range processors {
		text += fmt.Sprintf("[[device]]\nname = \"cpu%d\"\nkind = \"cpu\"\ncount = 1\nmemory = \"ram\"\nspeed = { float32 = \"20 GF/s\" }\n", i)
	}
	return text
}

// mpi is a directory with a cluster of two nodes, and what starts its ranks.
type mpiRun struct {
	t            *testing.T
	dir, program string
	launcher     []string
}

func newMPI(t *testing.T) *mpiRun {
	t.Helper()
	m := &mpiRun{t: t, dir: t.TempDir(), program: os.Getenv(programVariable), launcher: strings.Fields(os.Getenv(launcherVariable))}
	if m.program == "" {
		t.Skipf("%s does not name a program; make mpi-test does", programVariable)
	}
	if len(m.launcher) == 0 {
		t.Fatalf("%s does not say what starts ranks", launcherVariable)
	}
	if _, err := exec.LookPath(m.launcher[0]); err != nil {
		t.Skipf("there is no %s", m.launcher[0])
	}
	for name, text := range map[string]string{"one.toml": machineFile(1), "flat.toml": machineFile(2), "two.toml": clusterFile} {
		must.Do(t, os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o644))
	}
	return m
}

// command is a command line of so many ranks; one starts without a launcher.
func (m *mpiRun) command(ranks int, args ...string) *exec.Cmd {
	args = append([]string{m.program}, args...)
	if ranks > 1 {
		args = slices.Concat(m.launcher, []string{"-n", strconv.Itoa(ranks)}, args)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = m.dir, append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	return cmd
}

func (m *mpiRun) run(ranks int, args ...string) (output string, err error) {
	out, err := m.command(ranks, args...).CombinedOutput()
	return string(out), err
}

// train trains into a directory and returns the hash of the weights.
func (m *mpiRun) train(ranks int, platform, policy, out string, more ...string) string {
	m.t.Helper()
	if text, err := m.run(ranks, m.line(platform, policy, out, more...)...); err != nil {
		m.t.Fatalf("%v: %s", err, text)
	}
	return m.weights(out)
}

// line is the command line of a training of two epochs; its directory comes last.
func (m *mpiRun) line(platform, policy, out string, more ...string) []string {
	return slices.Concat([]string{"execute", "--platform", platform, "--model", "lenet5", "--policy", policy, "--epochs", "2"}, more, []string{"--out", out})
}

func (m *mpiRun) weights(out string) string {
	m.t.Helper()
	return must.Get(record.ReadManifest(filepath.Join(m.dir, out)))(m.t).WeightsHash
}

// TestMPIWeights: two ranks come to the weights of one process, with replicas and with stages, of images in memory and of a text, of which each rank reads its part.
func TestMPIWeights(t *testing.T) {
	m := newMPI(t)
	for _, policy := range []string{"data-parallel:2", "1f1b:2x4"} {
		for _, more := range [][]string{nil, {"--model", "gpt-tiny", "--data", "text:3001", "--batch", "8"}} {
			if one, two := m.train(1, "flat.toml", policy, "flat", more...), m.train(2, "two.toml", policy, "two", more...); one != two {
				t.Errorf("%s %v: the weights of two ranks are %.12s, of one %.12s", policy, more, two, one)
			}
		}
	}
}

// TestMPIRefusals: one line says why ranks cannot train together.
func TestMPIRefusals(t *testing.T) {
	m := newMPI(t)
	must.Do(t, os.WriteFile(filepath.Join(m.dir, "other.toml"), []byte(strings.Replace(clusterFile, "50 us", "51 us", 1)), 0o644))
	line := func(platform string) []string {
		return []string{"execute", "--platform", platform, "--model", "lenet5", "--policy", "data-parallel:2"}
	}
	outlives := m.outlives()
	second := append([]string{":", "-n", "1", m.program}, line("other.toml")...)
	for _, c := range []struct {
		what  string
		ranks int
		args  []string
		want  string
	}{
		{"three ranks", 3, line("two.toml"), "platform \"two\" has 2 nodes"},
		{"no launcher", 1, line("two.toml"), "platform \"two\" has 2 nodes"},
		{"a loss", 2, append(line("two.toml"), "--continue-on-loss"), "--continue-on-loss over ranks takes Open MPI"},
		{"another platform", 2, append(line("two.toml"), second...), "has another platform than rank 0"},
	} {
		if c.what == "a loss" && outlives {
			continue
		}
		cmd := m.command(c.ranks, c.args...)
		if c.what == "another platform" { // one rank of each program
			cmd.Args[slices.Index(cmd.Args, "-n")+1] = "1"
		}
		out, err := cmd.CombinedOutput()
		ended := strings.Count(string(out), "dahl: interrupted (SIGTERM)\n") // by the launcher, which may be faster than their own end
		if lines := strings.Count(string(out), "dahl: ") - ended; err == nil || lines != 1 || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v, and %d lines: %s", c.what, err, lines, out)
		}
	}
}

// rankLimit is twice the timeout of execute.Ranks, on a busy machine.
const rankLimit = 20 * time.Second

// TestMPIHang: a rank that stands still ends the others, which say so in one line. No launcher sees that it does. The last
// checkpoint is whole, and the training goes on from it.
func TestMPIHang(t *testing.T) {
	for rank := range 2 {
		t.Run(fmt.Sprint("rank ", rank), func(t *testing.T) {
			t.Parallel()
			m := newMPI(t)
			want := m.train(2, "two.toml", "data-parallel:2", "whole")
			out := fmt.Sprint("hung", rank)
			var said bytes.Buffer
			cmd := m.command(2, m.line("two.toml", "data-parallel:2", out, "--checkpoint", "every=10steps")...)
			cmd.Stdout, cmd.Stderr = &said, &said
			must.Do(t, cmd.Start())
			m.awaitCheckpoint(out, "[1-9]*")
			if !signalRank(out, rank, syscall.SIGSTOP) {
				t.Fatal("the training has ended")
			}
			at := time.Now()
			if err := cmd.Wait(); err == nil {
				t.Error("a training without one of its ranks succeeds")
			}
			if lasted := time.Since(at); lasted > rankLimit {
				t.Errorf("the other rank ended after %v", lasted)
			}
			if why := fmt.Sprintf("rank %d has not been heard of for 10s", rank); strings.Count(said.String(), "dahl: ") != 1 || !strings.Contains(said.String(), why) {
				t.Errorf("want one line with %q: %s", why, &said)
			}
			if text, err := m.run(2, "execute", "--resume", out); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if m.weights(out) != want {
				t.Error("the weights after --resume differ")
			}
		})
	}
}

// outlives reports whether the launcher leaves ranks alive when one is lost.
func (m *mpiRun) outlives() bool { return slices.Contains(m.launcher, "ulfm") }

// TestMPILoss: where the library outlives a loss, the rank that is left goes on from the last checkpoint, whichever it is, also from that before the first step. It comes to the weights of an undisturbed training, which has the same tiles.
func TestMPILoss(t *testing.T) {
	m := newMPI(t)
	if !m.outlives() {
		t.Skip("the launcher ends all ranks when one is lost; Open MPI 5 does not with --with-ft ulfm")
	}
	want := m.train(1, "one.toml", "heft", "whole")
	for i := range 4 {
		rank, after := i%2, []string{"0", "[1-9]*"}[i/2]
		out := fmt.Sprint("lost", i)
		var said bytes.Buffer
		cmd := m.command(2, m.line("two.toml", "heft", out, "--continue-on-loss=3")...)
		cmd.Stdout, cmd.Stderr = &said, &said
		must.Do(t, cmd.Start())
		m.awaitCheckpoint(out, after)
		if !signalRank(out, rank, syscall.SIGKILL) {
			t.Fatal("the training has ended")
		}
		if err := cmd.Wait(); err != nil || !strings.Contains(said.String(), "a rank was lost") {
			t.Errorf("rank %d: %v: %s", rank, err, &said)
		} else if m.weights(out) != want {
			t.Errorf("rank %d is lost, and the weights differ", rank)
		}
	}
}

// awaitCheckpoint waits for a checkpoint of a training, after a number of steps that has a pattern.
func (m *mpiRun) awaitCheckpoint(out, after string) {
	kept := filepath.Join(m.dir, out, ".staging", "checkpoints", after)
	for files := []string(nil); files == nil; files, _ = filepath.Glob(kept) {
		time.Sleep(time.Millisecond)
	}
}

// TestMPIKills: whatever rank is killed at whatever moment, the others end within the timeout of execute.Ranks, and the training goes
// on from its last checkpoint to the weights of an undisturbed one.
func TestMPIKills(t *testing.T) {
	t.Parallel()
	m := newMPI(t)
	begun := time.Now()
	want := m.train(2, "two.toml", "data-parallel:2", "whole", "--epochs", "3")
	took := time.Since(begun)
	kills := 5
	if text := os.Getenv(killsVariable); text != "" {
		kills = must.Get(strconv.Atoi(text))(t)
	}
	limit := rankLimit
	if m.outlives() { // MPI_Init may wait for a rank that was killed, until execute.Join gives up
		limit += time.Minute
	}
	rng := rand.New(rand.NewPCG(5, 7))
	resumed := 0
	for i := range kills {
		out := fmt.Sprint("killed", i)
		cmd := m.command(2, m.line("two.toml", "data-parallel:2", out, "--epochs", "3", "--checkpoint", "every=10steps")...)
		must.Do(t, cmd.Start())
		time.Sleep(time.Duration(rng.Float64() * float64(took)))
		killed := signalRank(out, rng.IntN(2), syscall.SIGKILL)
		at := time.Now()
		cmd.Wait() // fails by the kill
		if lasted := time.Since(at); killed && lasted > limit {
			t.Errorf("kill %d: the other rank ended after %v", i, lasted)
		}
		if m.weightsIf(out) != want {
			text, err := m.run(2, "execute", "--resume", out)
			if err != nil && !strings.Contains(text, "no checkpoint") && !strings.Contains(text, "no such file") {
				t.Errorf("kill %d: %v: %s", i, err, text)
				continue
			}
			if err == nil && m.weights(out) != want {
				t.Errorf("kill %d: the weights after --resume differ", i)
			}
			if err == nil {
				resumed++
			}
		}
		must.Do(t, os.RemoveAll(filepath.Join(m.dir, out)))
	}
	t.Logf("%d of %d trainings went on from a checkpoint", resumed, kills)
}

// weightsIf is the hash of the weights of a complete run; empty without one.
func (m *mpiRun) weightsIf(out string) string {
	manifest, err := record.ReadManifest(filepath.Join(m.dir, out))
	if err != nil {
		return ""
	}
	return manifest.WeightsHash
}

// signalRank sends a signal to the process of a rank of a training, where it lives.
func signalRank(out string, rank int, signal syscall.Signal) bool {
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range processes {
		line, _ := os.ReadFile(p + "/cmdline")
		env, _ := os.ReadFile(p + "/environ")
		of := strings.Contains(string(env), fmt.Sprintf("OMPI_COMM_WORLD_RANK=%d\x00", rank)) || strings.Contains(string(env), fmt.Sprintf("PMI_RANK=%d\x00", rank))
		if pid, err := strconv.Atoi(filepath.Base(p)); err == nil && of && strings.HasSuffix(string(line), "--out\x00"+out+"\x00") {
			return syscall.Kill(pid, signal) == nil
		}
	}
	return false
}
