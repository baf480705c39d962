package peer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dahl/must"
)

// The test program is the interpreter, too: with this variable it speaks the protocol of worker.py.
const fakeVariable = "DAHL_FAKE_WORKER"

// fake is what the worker of the tests does.
type fake struct {
	Losses  []float64 // of the steps of every epoch
	Counter string    // file of microjoules, which "ready", "epoch" and "test" raise
	Trouble string    // what goes wrong
}

// set makes the processes that a test starts workers of the tests.
func (f fake) set(t *testing.T) {
	t.Helper()
	said := must.Get(json.Marshal(f))(t)
	t.Setenv(fakeVariable, string(said))
}

func TestMain(m *testing.M) {
	if said := os.Getenv(fakeVariable); said != "" {
		var f fake
		if err := json.Unmarshal([]byte(said), &f); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		f.serve()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// serve answers requests.
func (f *fake) serve() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r request
		answer := reply{Seconds: 0.25, CPUSeconds: 0.125, PeakBytes: 7 << 20}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			answer.Error = err.Error()
		}
		f.do(&r, &answer)
		line, err := json.Marshal(map[string]any{"error": answer.Error, "versions": answer.Versions, "losses": answer.Losses,
			"correct": answer.Correct, "seconds": answer.Seconds, "cpu_seconds": answer.CPUSeconds, "peak_bytes": answer.PeakBytes})
		if err != nil {
			line = []byte(err.Error())
		}
		fmt.Println(string(line))
	}
}

func (f *fake) do(r *request, answer *reply) {
	switch r.Do {
	case "describe":
		answer.Versions = Versions{Program: "Fake 1.2"}
		if f.Trouble == "missing" {
			answer.Error = "ModuleNotFoundError: No module named 'fake'"
		}
		if f.Trouble == "no Python" {
			os.Exit(3)
		}
	case "time":
		// Three times as fast with the memory kept, and once more with samples in another format.
		answer.Seconds = float64(r.Steps)
		if os.Getenv("MALLOC_TRIM_THRESHOLD_") != "" {
			answer.Seconds /= 3
		}
		if r.Format == ChannelsLast {
			answer.Seconds /= 2
		}
	case "ready":
		f.draw(100)
		answer.Losses = slices.Clone(f.Losses[:r.Steps])
		if f.Trouble == "another network" {
			answer.Losses[r.Steps-1] *= 1.01
		}
	case "epoch":
		f.draw(3)
		answer.Losses = f.Losses[:len(r.Rates)]
		switch {
		case f.Trouble == "fewer steps":
			answer.Losses = answer.Losses[1:]
		case f.Trouble == "dies":
			fmt.Fprintln(os.Stderr, "first line\nMemoryError: no more")
			os.Exit(1)
		case f.Trouble == "hangs" && r.Epoch == 1:
			select {}
		}
	case "test":
		f.draw(1)
		answer.Losses, answer.Correct = []float64{0.5}, 11
	}
}

// draw raises the counter.
func (f *fake) draw(joules int) {
	if f.Counter == "" {
		return
	}
	if err := raise(f.Counter, joules); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// raise adds to a counter of microjoules.
func raise(counter string, joules int) error {
	text, err := os.ReadFile(counter)
	if err != nil {
		return err
	}
	uj, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	// In one step, since the meter reads all the time.
	next := counter + ".next"
	if err := os.WriteFile(next, fmt.Appendln(nil, uj+joules*1_000_000), 0o644); err != nil {
		return err
	}
	return os.Rename(next, counter)
}

// powercap is a tree of the system with one counter of a package, and the file of its count.
func powercap(t *testing.T) (root, counter string) {
	t.Helper()
	root = t.TempDir()
	dir := filepath.Join(root, "intel-rapl:0")
	must.Do(t, os.Mkdir(dir, 0o755))
	for name, text := range map[string]string{"name": "package-0\n", "max_energy_range_uj": "262143328850\n", "energy_uj": "17\n"} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return root, filepath.Join(dir, "energy_uj")
}
