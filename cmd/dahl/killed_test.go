package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/rundir"
	"dahl/rundir/durable"
)

// soak is the variable that asks for long tests: the number of processes to kill.
const soak = "DAHL_SOAK"

// killBefore tells a process that is dahl before which of its file operations, from 1, it kills
// itself as kill −9 does.
const killBefore = "DAHL_TEST_KILL_BEFORE"

// killItself obeys killBefore.
func killItself() {
	at, err := strconv.Atoi(os.Getenv(killBefore))
	if err != nil {
		return
	}
	durable.Fault = func(durable.Op, string) error {
		if at--; at == 0 {
			if self, err := os.FindProcess(os.Getpid()); err != nil || self.Kill() != nil {
				panic("dahl: cannot kill itself")
			}
			select {} // until the signal is here
		}
		return nil
	}
}

// waitBefore tells a process that is dahl before which of its file operations, from 1, it says waitsHere and waits for the
// end of its standard input.
const waitBefore, waitsHere = "DAHL_TEST_WAIT_BEFORE", "it waits here"

// waitItself obeys waitBefore.
func waitItself() {
	at, err := strconv.Atoi(os.Getenv(waitBefore))
	if err != nil {
		return
	}
	durable.Fault = func(durable.Op, string) error {
		if at--; at == 0 {
			fmt.Fprintln(os.Stderr, waitsHere)
			io.Copy(io.Discard, os.Stdin)
		}
		return nil
	}
}

// killedTraining is a training that is killed and goes on. Its steps are saved after every three.
type killedTraining struct {
	name, args string
	resumed    []string // other ways to go on

	operations int           // on files, where nothing disturbs it
	took       time.Duration // a process of it
	hash       string        // of its weights
	steps      []byte        // its table of steps
}

// savedEvery is the number of steps between two checkpoints, and stepsPerEpoch of those of 250
// samples in batches of 31 (250 = 8·31 + 2).
const savedEvery, stepsPerEpoch = 3, 9

func killedTrainings() []killedTraining {
	const common = "execute --model digits-cnn --data synthetic:1x8x8:250:10 --batch 31 --epochs 3 --seed 7 --checkpoint every=3steps --out run "
	cores := []string{"", "--workers 1", "--workers 3", "--policy eager"}
	return []killedTraining{
		{name: "cores, momentum", args: common, resumed: cores},
		{name: "cores, Adam", args: common + "--optimizer adam --lr 0.001", resumed: cores},
		{name: "a core and an emulated GPU, momentum", args: common + "--platform node.toml", resumed: []string{"", "--policy dmda"}},
		{name: "a core and an emulated GPU that is lost, Adam", args: common + "--platform lossy.toml --continue-on-loss=2 --optimizer adam --lr 0.001", resumed: []string{""}},
	}
}

// TestKilled kills trainings with kill −9 at random moments and before random file operations, and
// goes on with them, until DAHL_SOAK processes have been killed (12 without it). Each training
// comes to the weights and losses of the undisturbed one to the last bit. It goes on after the
// newest checkpoint, so that no more than the steps since that are done again. The complete run
// that was in the directory before is whole until the new one takes its place.
func TestKilled(t *testing.T) {
	kills := 12
	if testing.Short() {
		kills = 4
	}
	if text := os.Getenv(soak); text != "" {
		kills = must.Get(strconv.Atoi(text))(t)
	}
	t.Chdir(t.TempDir())
	writeTestFile(t, "node.toml", emulatedNode)
	writeTestFile(t, "lossy.toml", strings.Replace(emulatedNode, "name = \"g0\"\n", "name = \"g0\"\nfault = { after = 200, kind = \"lost\" }\n", 1))
	mustRun(t, strings.Fields("execute --model digits-cnn --limit 64 --batch 32 --epochs 1 --out earlier")...)
	earlier := manifestOf(t, "earlier").WeightsHash
	all := killedTrainings()
	for i := range all {
		all[i].undisturbed(t)
	}
	if m := manifestOf(t, "run"); len(m.Losses) != 1 {
		t.Fatalf("the emulated GPU is not lost: %+v", m.Losses)
	}
	var sum killCounts
	for story := uint64(0); sum.killed() < kills && !t.Failed(); story++ {
		k := &all[story%uint64(len(all))]
		k.story(t, rand.New(rand.NewPCG(story, 9)), earlier, &sum)
		if t.Failed() {
			t.Errorf("story %d, %s", story, k.name)
		}
	}
	t.Log(sum)
}

// TestKilledAtEveryStep kills a training that is saved after each step before each of its file
// operations, so also at each boundary between two steps, and goes on with it.
func TestKilledAtEveryStep(t *testing.T) {
	if os.Getenv(soak) == "" {
		t.Skip("takes minutes: make soak")
	}
	t.Chdir(t.TempDir())
	k := killedTraining{name: "every step", args: "execute --model digits-cnn --data synthetic:1x8x8:100:10 --batch 31 --epochs 2 --seed 7 --checkpoint every=1steps --out run"}
	k.undisturbed(t)
	var sum killCounts
	boundaries := map[int]bool{} // steps after which it went on
	for n := 1; n <= k.operations && !t.Failed(); n++ {
		must.Do(t, os.RemoveAll("run"))
		sum.trainings++
		if out, killed := k.start(t, strings.Fields(k.args), n, false, nil, &sum); !killed {
			t.Fatalf("operation %d was not reached:\n%s", n, out)
		}
		args, after := strings.Fields(k.args), rundir.Look("run").Step
		if after > 0 {
			args = strings.Fields("execute --resume run")
			boundaries[after] = true
		} else if m, err := record.ReadManifest("run"); err == nil && m.Complete {
			k.check(t, 0)
			continue
		}
		k.start(t, args, 0, false, nil, &sum)
		k.check(t, after)
	}
	if len(boundaries) != 8 { // 2 epochs of 3 whole batches and one of 7
		t.Errorf("it went on after the steps %v, want all 8", boundaries)
	}
	t.Logf("killed before each of %d file operations; it went on after each of %d steps", sum.byOperation, len(boundaries))
}

// undisturbed runs the training as it is to be.
func (k *killedTraining) undisturbed(t *testing.T) {
	t.Helper()
	durable.Fault = func(durable.Op, string) error { k.operations++; return nil }
	defer func() { durable.Fault = nil }()
	begin := time.Now()
	mustRun(t, strings.Fields(k.args)...)
	k.took = time.Since(begin)
	k.hash = manifestOf(t, "run").WeightsHash
	k.steps = must.Get(os.ReadFile(filepath.Join("run", record.StepsFile)))(t)
}

// killCounts is what happened to trainings.
type killCounts struct {
	trainings, byTime, byOperation int
	unsaved, resumed, committed    int
}

func (c *killCounts) killed() int { return c.byTime + c.byOperation }

func (c killCounts) String() string {
	return fmt.Sprintf("%d trainings killed %d times, %d at random moments and %d before random file operations: %d times before the first checkpoint, %d resumed, %d already committed; weights, losses and earlier runs are all as they should be",
		c.trainings, c.killed(), c.byTime, c.byOperation, c.unsaved, c.resumed, c.committed)
}

// story is one training from its begin over some kills to its end.
func (k *killedTraining) story(t *testing.T, r *rand.Rand, earlier string, sum *killCounts) {
	must.Do(t, errors.Join(os.RemoveAll("run"), os.CopyFS("run", os.DirFS("earlier"))))
	sum.trainings++
	newest := 0 // step of the newest checkpoint
	for left := 1 + r.IntN(3); ; left-- {
		args := strings.Fields(k.args)
		if newest > 0 {
			args = strings.Fields("execute --resume run " + k.resumed[r.IntN(len(k.resumed))])
		}
		out, killed := k.process(t, r, args, left > 0, sum)
		if !killed {
			break
		}
		m := manifestOf(t, "run")
		state := rundir.Look("run")
		mustRun(t, "verify", "run")
		switch {
		case m.WeightsHash == k.hash && !state.Interrupted: // the commit was cut, or what came after it
			sum.committed++
			k.check(t, 0)
			return
		case m.WeightsHash != earlier || state.Step < newest || state.Step < savedUntil(out)-savedEvery:
			t.Errorf("after a kill: weights %.12s, earlier %.12s, whole %.12s; %+v, and a checkpoint after step %d before; it said\n%s", m.WeightsHash, earlier, k.hash, state, newest, out)
			return
		case state.Step == 0:
			sum.unsaved++
		default:
			sum.resumed++
		}
		newest = state.Step
	}
	k.check(t, newest)
}

// savedUntil is the number of steps that have surely been done, by the epochs that were printed.
func savedUntil(out string) (steps int) {
	for line := range strings.Lines(out) {
		var epoch, of int
		if n, _ := fmt.Sscanf(line, "epoch %d/%d", &epoch, &of); n == 2 {
			steps = epoch * stepsPerEpoch
		}
	}
	return steps
}

// process runs dahl, which may be killed at random.
func (k *killedTraining) process(t *testing.T, r *rand.Rand, args []string, kill bool, sum *killCounts) (out string, killed bool) {
	operation := 0 // never
	if kill && r.IntN(2) == 0 {
		operation = 1 + r.IntN(k.operations)
	}
	return k.start(t, args, operation, kill && operation == 0, r, sum)
}

// start runs dahl, which may be killed before one of its file operations, from 1, or at a random
// moment.
func (k *killedTraining) start(t *testing.T, args []string, operation int, anytime bool, r *rand.Rand, sum *killCounts) (out string, killed bool) {
	cmd := dahlProcess(t, args...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if operation > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", killBefore, operation))
	}
	must.Do(t, cmd.Start())
	if anytime { // one moment is as good as another
		timer := time.AfterFunc(time.Duration(r.Int64N(int64(k.took))), func() { cmd.Process.Kill() })
		defer timer.Stop()
	}
	err := cmd.Wait()
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return text.String(), false
	case !failed || exit.ExitCode() >= 0 || operation == 0 && !anytime:
		t.Fatalf("dahl %v: %v\n%s", args, err, &text)
	case operation > 0:
		sum.byOperation++
	default:
		sum.byTime++
	}
	return text.String(), true
}

// check compares the run with the undisturbed one. It went on after a step last; 0: it did not, or
// that is not known.
func (k *killedTraining) check(t *testing.T, after int) {
	t.Helper()
	m := manifestOf(t, "run")
	if !m.Complete || m.WeightsHash != k.hash {
		t.Errorf("complete %v, weights %.12s, want %.12s", m.Complete, m.WeightsHash, k.hash)
	}
	if n := len(m.Resumed); after > 0 && (n == 0 || m.Resumed[n-1].AfterStep != after) || slices.ContainsFunc(m.Resumed, func(r record.Resumption) bool { return !r.Alike }) {
		t.Errorf("it went on as %+v, last after step %d", m.Resumed, after)
	}
	if steps, err := os.ReadFile(filepath.Join("run", record.StepsFile)); err != nil || !bytes.Equal(steps, k.steps) {
		t.Errorf("%v; steps\n%s\nwant\n%s", err, steps, k.steps)
	}
	if wantEnd(t, cli.ExitOK, "verify run"); there("run/.staging") {
		t.Error("the run is not sound")
	}
}
