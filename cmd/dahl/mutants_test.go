package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
)

// mutantsAsked is the variable that asks for so many mutants, and oneMutant for one, as "resume 17".
const mutantsAsked, oneMutant = "DAHL_MUTANTS", "DAHL_MUTANT"

// mutantSeeds are mutants that have found a fault, one on each line with what it was.
const mutantSeeds = "testdata/mutants.txt"

// TestMutants runs command lines of which a word or a file is changed: what DAHL_MUTANTS says, a few of each command without it,
// and those that once found a fault. Whatever comes, the command ends by itself or soon after it is told to, with an
// exit code of its own, in words and without control characters. It changes no input, leaves no temporary file,
// and writes nothing else than it was told to; bad input leaves nothing. Where it takes a run of which a file was changed, it comes
// to what the run as it was comes to, or names the file.
func TestMutants(t *testing.T) {
	known, err := os.ReadFile(mutantSeeds)
	network, readErr := os.ReadFile("../../nn/testdata/exchange.onnx")
	must.Do(t, errors.Join(err, readErr))
	base := t.TempDir()
	corpus := filepath.Join(base, "corpus")
	must.Do(t, os.Mkdir(corpus, 0o777))
	t.Chdir(corpus)
	t.Setenv(asDahl, "1") // cells of experiments are processes of this program
	writeTestFile(t, "net.onnx", string(network))
	makeCorpus(t)
	m := &mutants{t: t, base: base, corpus: corpus, baseline: map[string]string{}, counts: map[string]map[int]int{}, host: new(mutantHost)}
	defer m.host.end()
	if one := os.Getenv(oneMutant); one != "" {
		m.named(one)
		return
	}
	for line := range strings.Lines(string(known)) {
		m.named(line)
	}
	asked := 3 * len(mutatedCommands)
	if testing.Short() {
		asked = len(mutatedCommands)
	}
	if text := os.Getenv(mutantsAsked); text != "" {
		asked = must.Get(strconv.Atoi(text))(t)
	}
	for n := range asked {
		m.run(&mutatedCommands[n%len(mutatedCommands)], uint64(n/len(mutatedCommands)))
	}
	for _, name := range slices.Sorted(maps.Keys(m.counts)) {
		t.Logf("%-10s exit codes %v", name, m.counts[name])
	}
}

// mutants runs them one after the other.
type mutants struct {
	t            *testing.T
	base, corpus string
	baseline     map[string]string // what a command comes to, by its name
	counts       map[string]map[int]int
	host         *mutantHost
}

// named runs the mutant of a line, "resume 17".
func (m *mutants) named(line string) {
	words := strings.Fields(line)
	if len(words) < 2 {
		m.t.Fatalf("mutant %q: want the name of a command and a seed", line)
	}
	seed, err := strconv.ParseUint(words[1], 10, 64)
	at := slices.IndexFunc(mutatedCommands, func(c mutated) bool { return c.name == words[0] })
	if err != nil || at < 0 {
		m.t.Fatalf("mutant %q: no such command or seed", line)
	}
	m.run(&mutatedCommands[at], seed)
}

// run makes a mutant, runs it, and looks at what it left.
func (m *mutants) run(c *mutated, seed uint64) {
	t := m.t
	t.Helper()
	random := rand.New(rand.NewPCG(seed, uint64(crc32.ChecksumIEEE([]byte(c.name)))))
	args, how := strings.Fields(c.line), "unchanged"
	w := m.workplace(c)
	defer w.remove(t)
	if _, ok := m.baseline[c.name]; !ok {
		r := m.host.run(t, mutantRequest{w.work, w.tmp, args})
		if m.baseline[c.name] = w.outcome(c, &r); r.Code != cli.ExitOK {
			t.Fatalf("dahl %s, unchanged: exit code %d\n%s%s%s", c.line, r.Code, r.Stdout, r.Stderr, r.Died)
		}
		w.remove(t)
		w = m.workplace(c)
	}
	changed := ""
	if files := w.files(); random.IntN(4) == 0 {
		args, how = mutateLine(random, args, flagsOf(args))
	} else {
		changed = files[random.IntN(len(files))]
		how = changed + ": " + mutateFile(t, random, filepath.Join(w.work, changed))
	}
	before := w.tree(t)
	r := m.host.run(t, mutantRequest{w.work, w.tmp, args})
	after := w.tree(t)
	if m.counts[c.name] == nil {
		m.counts[c.name] = map[int]int{}
	}
	m.counts[c.name][r.Code]++
	faults := append(r.faults(), w.faults(c, r.Code, changed == "", before, after)...)
	ofRun := changed != "" && (c.result != "" || strings.HasPrefix(changed, c.needs[0]+"/"))
	if c.sealed && ofRun && r.Code == cli.ExitOK && !strings.HasSuffix(how, "is a link") {
		switch said := strings.Contains(r.Stdout+r.Stderr, filepath.Base(changed)); {
		case said:
		case c.name == "verify":
			faults = append(faults, "verify finds nothing")
		case w.outcome(c, &r) != m.baseline[c.name]:
			faults = append(faults, "another result without a word")
		}
	}
	if os.Getenv(oneMutant) != "" {
		t.Logf("dahl %q, %s: exit code %d\n%s%s", args, how, r.Code, r.Stdout, r.Stderr)
	}
	for _, fault := range faults {
		t.Errorf("%s %d: dahl %q, %s: exit code %d, %s\n%.600s%.3000s", c.name, seed, args, how, r.Code, fault, r.Stderr, r.Died)
	}
}

// flagsOf lists the flags of a command line's command, but for those that change the machine, or start other programs.
func flagsOf(args []string) (flags []string) {
	cmd, _, err := newRoot(args).Find(args)
	if err != nil {
		panic("dahl: the command line of a mutant has no command")
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "set-clocks" && f.Name != "python" {
			flags = append(flags, f.Name)
		}
	})
	return append(flags, "help")
}

// workplace is a directory with what one command needs, beside one for its temporary files.
type workplace struct{ root, work, tmp string }

func (m *mutants) workplace(c *mutated) *workplace {
	m.t.Helper()
	root, err := os.MkdirTemp(m.base, "mutant")
	if err != nil {
		m.t.Fatal(err)
	}
	w := &workplace{root, filepath.Join(root, "work"), filepath.Join(root, "tmp")}
	err = errors.Join(os.Mkdir(w.work, 0o777), os.Mkdir(w.tmp, 0o777))
	for _, name := range c.needs {
		from, to := filepath.Join(m.corpus, name), filepath.Join(w.work, name)
		if info, statErr := os.Stat(from); statErr == nil && info.IsDir() {
			err = errors.Join(err, os.CopyFS(to, os.DirFS(from)))
			continue
		}
		data, readErr := os.ReadFile(from)
		err = errors.Join(err, readErr, os.WriteFile(to, data, 0o666))
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return w
}

func (w *workplace) remove(t *testing.T) {
	must.Do(t, os.RemoveAll(w.root))
}

// tree has what every file and directory of the workplace holds.
func (w *workplace) tree(t *testing.T) map[string]string {
	t.Helper()
	tree := map[string]string{}
	must.Do(t, filepath.WalkDir(w.root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(w.root, path)
		if err != nil || e.IsDir() {
			tree[name] = "directory"
			return err
		}
		if e.Type() == fs.ModeNamedPipe {
			tree[name] = "pipe"
			return nil
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // a link to nothing
			err = nil
		}
		tree[name] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	}))
	return tree
}

// files lists the files that may be changed, in order.
func (w *workplace) files() (files []string) {
	err := filepath.WalkDir(w.work, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && e.Name() != ".lock" {
			path, err = filepath.Rel(w.work, path)
			files = append(files, path)
		}
		return err
	})
	if err != nil || files == nil {
		panic(fmt.Sprint("dahl: no files to change: ", err))
	}
	return files
}

// temporary are the names of files that are not whole.
var temporary = regexp.MustCompile(`(^|/)\.[^/]+-[0-9a-f]{8}$`)

// faults says what a command changed that it should not have.
func (w *workplace) faults(c *mutated, code int, line bool, before, after map[string]string) (faults []string) {
	var changed, left, written []string
	may := func(name string) bool {
		return slices.ContainsFunc(c.writes, func(out string) bool {
			return name == "work/"+out || strings.HasPrefix(name, "work/"+out+"/")
		})
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now, ok := after[name]; (!ok || now != before[name]) && (code == cli.ExitBadInput || !may(name)) {
			changed = append(changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, was := before[name]; was {
			continue
		}
		switch unfinished := strings.Contains(name, "/.staging") || strings.Contains(name, "/.adding"); {
		case temporary.MatchString(name), strings.HasPrefix(name, "tmp/"), unfinished && code == cli.ExitOK:
			left = append(left, name)
		case code == cli.ExitBadInput, !may(name) && !(line && strings.HasPrefix(name, "work/")): // a calibration that is told to end keeps what it has
			written = append(written, name)
		}
	}
	for _, of := range []struct {
		names []string
		what  string
	}{{changed, "changed"}, {left, "left"}, {written, "written"}} {
		if of.names != nil {
			faults = append(faults, fmt.Sprintf("it has %s %q", of.what, of.names))
		}
	}
	return faults
}

// outcome is what a command came to that must not depend on chance: the weights and tables of a training, or what was written.
func (w *workplace) outcome(c *mutated, r *mutantResult) string {
	if c.result != "" {
		dir := filepath.Join(w.work, c.result)
		m, err := record.ReadManifest(dir)
		if err != nil {
			return err.Error()
		}
		steps, err := os.ReadFile(filepath.Join(dir, record.StepsFile))
		if err != nil {
			return err.Error()
		}
		return m.WeightsHash + string(steps)
	}
	if c.makes == nil {
		return r.Stdout
	}
	all := ""
	for _, name := range c.makes {
		data, err := os.ReadFile(filepath.Join(w.work, name))
		if err != nil {
			return err.Error()
		}
		all += string(data)
	}
	return all
}

// mutantServer makes this program one that runs the command lines that it is sent.
const mutantServer = "DAHL_TEST_SERVES_MUTANTS"

// Times of mutants: after the first they are told to end, and after the second they hang. mutantMemory is the memory that they may
// reserve, and mutantsPerProcess how many of them a process runs.
const (
	mutantTime, mutantDeadline = 3 * time.Second, 40 * time.Second
	mutantMemory               = 8 << 30
	mutantsPerProcess          = 300
)

// mutantRequest is a command line in a directory.
type mutantRequest struct {
	Dir, Tmp string
	Args     []string
}

// mutantResult is what came of it.
type mutantResult struct {
	Code           int
	Stdout, Stderr string
	Died           string `json:"-"` // what the process said last, where it did not answer
	hung           bool
}

// serveMutants runs command lines until there are no more.
func serveMutants() {
	os.Unsetenv(mutantServer)
	answers := json.NewEncoder(os.Stdout)
	os.Stdout = os.Stderr
	limit := syscall.Rlimit{Cur: mutantMemory, Max: mutantMemory}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		panic(err)
	}
	for asked := json.NewDecoder(os.Stdin); ; {
		var r mutantRequest
		if err := asked.Decode(&r); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			panic(err)
		}
		os.Setenv("TMPDIR", r.Tmp)
		if err := os.Chdir(r.Dir); err != nil {
			panic(err)
		}
		ctx, cancel := context.WithTimeoutCause(context.Background(), mutantTime, context.Canceled)
		ctx, stop := context.WithCancel(ctx)
		release := context.AfterFunc(ctx, stop)
		var stdout, stderr bytes.Buffer
		code := cli.Run(ctx, newRoot(r.Args), r.Args, &stdout, &stderr)
		release()
		stop()
		cancel()
		if err := answers.Encode(mutantResult{Code: code, Stdout: stdout.String(), Stderr: stderr.String()}); err != nil {
			panic(err)
		}
	}
}

// mutantHost is a process that runs mutants; it is started anew where one has ended it.
type mutantHost struct {
	cmd    *exec.Cmd
	ask    io.WriteCloser
	answer *json.Decoder
	stderr *os.File
	ran    int
}

func (h *mutantHost) start(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h.cmd, h.ran = exec.Command(self), 0
	h.cmd.Env = append(os.Environ(), mutantServer+"=1")
	h.stderr = must.Get(os.CreateTemp(t.TempDir(), "stderr"))(t)
	h.cmd.Stderr = h.stderr
	h.ask, err = h.cmd.StdinPipe()
	answers, pipeErr := h.cmd.StdoutPipe()
	must.Do(t, errors.Join(err, pipeErr, h.cmd.Start()))
	h.answer = json.NewDecoder(answers)
}

func (h *mutantHost) end() {
	if h.cmd == nil {
		return
	}
	h.ask.Close()
	h.cmd.Wait()
	h.stderr.Close()
	h.cmd = nil
}

// run runs a command line, and reports what came of it, also where that ended the process.
func (h *mutantHost) run(t *testing.T, request mutantRequest) (r mutantResult) {
	t.Helper()
	if h.cmd != nil && h.ran == mutantsPerProcess {
		h.end()
	}
	if h.cmd == nil {
		h.start(t)
	}
	h.ran++
	hung := time.AfterFunc(mutantDeadline, func() { h.cmd.Process.Signal(syscall.SIGQUIT) })
	err := json.NewEncoder(h.ask).Encode(request)
	if err = errors.Join(err, h.answer.Decode(&r)); err == nil && hung.Stop() {
		return r
	}
	r.hung = !hung.Stop()
	h.ask.Close()
	h.cmd.Process.Kill()
	h.cmd.Wait()
	said := must.Get(os.ReadFile(h.stderr.Name()))(t)
	h.stderr.Close()
	h.cmd = nil
	r.Code, r.Died = -1, string(said)
	return r
}

// faults says what is wrong with what a command said.
func (r *mutantResult) faults() (faults []string) {
	all := r.Stdout + r.Stderr
	switch said := (result{stderr: r.Stderr}).failure(); {
	case r.hung:
		return []string{"it hangs"}
	case r.Died != "" || r.Code < 0:
		return []string{"it ended the process"}
	case r.Code > cli.ExitBadInput && r.Code != cli.ExitInterrupted:
		faults = append(faults, "an exit code of no meaning")
	case r.Code != cli.ExitOK && said == "":
		faults = append(faults, "it does not say why")
	case r.Code == cli.ExitBadInput && strings.Count(said, "\n") != 1:
		faults = append(faults, "more than a line")
	}
	if strings.Contains(all, "goroutine ") || strings.Contains(all, "panic:") {
		faults = append(faults, "a trace of Go")
	}
	if i := strings.IndexFunc(all, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }); i >= 0 {
		faults = append(faults, fmt.Sprintf("a control character: %q", all[max(0, i-20):min(len(all), i+20)]))
	}
	if !utf8.ValidString(all) {
		faults = append(faults, "no UTF-8")
	}
	return faults
}
