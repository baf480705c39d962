package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/rundir"
)

// randomFiles writes a machine of three memories, of which one may be small and one may limit
// its copies, and a graph of a loop over buffers that are carried, read and written there. What is
// written before it is read exists as often as copies says.
func randomFiles(t *testing.T, r *rand.Rand, copies func() int) {
	t.Helper()
	var p strings.Builder
	fmt.Fprintf(&p, "name = \"random\"\n[[memory]]\nname = \"m0\"\nbandwidth = \"1 GB/s\"\n")
	for m := 1; m < 3; m++ {
		fmt.Fprintf(&p, "[[memory]]\nname = \"m%d\"\nbandwidth = \"1 GB/s\"\n", m)
		if r.IntN(2) == 0 {
			fmt.Fprintf(&p, "capacity = \"%d B\"\n", 64*(4+r.IntN(8)))
		}
	}
	for d := range 3 {
		kind := "emulated"
		if d == 0 {
			kind = "cpu"
		}
		fmt.Fprintf(&p, "[[device]]\nname = \"d%d\"\nkind = %q\ncount = %d\nmemory = \"m%d\"\nspeed = { float32 = \"1 GF/s\" }\n", d, kind, 1+r.IntN(3), d)
		if d > 0 && r.IntN(2) == 0 {
			fmt.Fprintf(&p, "copy_engines = { in = %d, out = 1 }\n", 1+r.IntN(2))
		}
	}
	for l := 1; l < 3; l++ {
		fmt.Fprintf(&p, "[[link]]\nname = \"l%d\"\nbandwidth = \"%d MB/s\"\nlatency = \"%d ns\"\n[[route]]\nfrom = \"m0\"\nto = \"m%d\"\nlinks = [\"l%d\"]\n", l, 100*(1+r.IntN(9)), r.IntN(50), l, l)
	}
	writeTestFile(t, "random.toml", p.String())

	buffers, tasks := []string{}, []string{}
	for b := range 4 + r.IntN(6) {
		role := []string{"parameter", "activation", "input"}[r.IntN(3)]
		home := ""
		if role != "activation" {
			home = fmt.Sprintf(`, "home": "m%d"`, r.IntN(3))
		}
		buffers = append(buffers, fmt.Sprintf(`{"name": "b%d", "bytes": %d, "role": %q%s}`, b, 1+r.IntN(120), role, home))
	}
	written := map[string]bool{}
	for i := range 5 + r.IntN(12) {
		b := r.IntN(len(buffers))
		reads := []string{}
		for k := range buffers {
			if k != b && r.IntN(3) == 0 && (written[buffers[k]] || !strings.Contains(buffers[k], "activation")) {
				reads = append(reads, fmt.Sprintf("%q", fmt.Sprint("b", k)))
			}
		}
		writes := fmt.Sprintf(`, "writes": ["b%d"]`, b)
		if strings.Contains(buffers[b], "input") {
			writes = ""
		}
		written[buffers[b]] = true
		costs := fmt.Sprintf(`"ns": {"d0": %d, "d%d": %d}`, 1+r.IntN(300), 1+r.IntN(2), 1+r.IntN(100))
		if r.IntN(3) == 0 {
			costs = fmt.Sprintf(`"op": "work", "type": "float32", "flops": %d, "bytes": %d`, 1+r.IntN(300), r.IntN(200))
		}
		tasks = append(tasks, fmt.Sprintf(`{"name": "t%02d", "reads": [%s]%s, %s}`, i, strings.Join(reads, ", "), writes, costs))
	}
	giveCopies(buffers, written, copies)
	writeTestFile(t, "random.json", fmt.Sprintf(`{"format": "dahl-graph 1", "name": "random", "buffers": [%s], "tasks": [%s]}`,
		strings.Join(buffers, ",\n"), strings.Join(tasks, ",\n")))
}

// giveCopies says how often buffers exist that tasks write before any reads them.
func giveCopies(buffers []string, written map[string]bool, copies func() int) {
	for b, buffer := range buffers {
		if n := copies(); n > 1 && written[buffer] && strings.Contains(buffer, "activation") {
			buffers[b] = strings.TrimSuffix(buffer, "}") + fmt.Sprintf(`, "copies": %d}`, n)
		}
	}
}

// TestOneDecisionInFiles: what a run directory holds of a random graph on a random machine
// gives the same plan and schedule again, by the plan file and by rerun, and stands up to
// verify; with a policy that decides while it runs, rerun does. Where buffers exist several times,
// that policy is refused.
func TestOneDecisionInFiles(t *testing.T) {
	ran, cases := 0, 12
	if testing.Short() {
		cases = 8
	}
	for seed := range uint64(cases) {
		t.Chdir(t.TempDir())
		r := rand.New(rand.NewPCG(seed, 41))
		randomFiles(t, r, func() int { return 1 + int(seed%2)*r.IntN(4) })
		run := strings.Fields("simulate --platform random.toml --graph random.json --steps 3")
		for _, policy := range []string{"heft", "dmda"} {
			if r := dahl(t, t.Context(), append(run, "--policy", policy, "--out", policy)...); r.code != cli.ExitOK {
				if !strings.Contains(r.stderr, `memory "m`) && (policy == "heft" || !strings.Contains(r.stderr, "knows one version of a buffer")) {
					t.Fatalf("seed %d, %s: %s", seed, policy, r.stderr)
				}
				continue // a memory is too small
			}
			ran++
			mustRun(t, "verify", policy)
			wantRepeated(t, policy)
			if policy == "heft" {
				mustRun(t, append(run, "--plan", "heft/plan.json", "--out", "again")...)
				sameFiles(t, rundir.PlanFile, "heft", "again")
				sameFiles(t, rundir.ScheduleFile, "heft", "again")
			}
		}
	}
	if ran < cases {
		t.Errorf("%d runs: the test tests little", ran)
	}
}
