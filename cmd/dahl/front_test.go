package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/naming"
	"dahl/plan/certificate"
	"dahl/platform"
	"dahl/rundir"
)

// readTable reads a CSV file, as a map from its columns for each row.
func readTable(t *testing.T, name string) (rows []map[string]string) {
	t.Helper()
	file := must.Get(os.Open(name))(t)
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil || len(lines) == 0 {
		t.Fatalf("%s: %d lines, %v", name, len(lines), err)
	}
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, column := range lines[0] {
			row[column] = line[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// fastAndSlow is a unit that runs a task in the time of its graph at 10 W, or in twice that at 3 W.
const fastAndSlow = `name = "one"
[[memory]]
name = "ram"
[[device]]
name = "cpu"
kind = "cpu"
memory = "ram"
count = 1
power = { idle = "0 W", busy = "10 W" }
[[device.clock]]
name = "slow"
scale = 0.5
power = { idle = "0 W", busy = "3 W" }
`

// TestDeadlineOfPlan: of two tasks of 3 and 4 ms one after the other the fewest joules are those of the slow clock:
// 14 ms at 3 W are 42 mJ. Within 11 ms one task has to be fast: 3 ms at 10 W and 8 ms at 3 W are 54 mJ. Within 10.5 ms
// it has to be the other one: 6 ms at 3 W and 4 ms at 10 W are 58 mJ. Within 7 ms both are: 70 mJ. Within 6 ms there is no plan, and the shortest takes 7 ms.
func TestDeadlineOfPlan(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "one.toml", fastAndSlow)
	writeTestFile(t, "two.json", twoTasks)
	on := []string{"plan", "--platform", "one.toml", "--graph", "two.json", "--objective", "energy", "--json"}
	for deadline, want := range map[string]float64{"20ms": 42e-3, "11ms": 54e-3, "10.5ms": 58e-3, "7ms": 70e-3} {
		var n struct {
			EnergyJ     struct{ Total float64 } `json:"energy_j"`
			LowerBoundJ float64                 `json:"lower_bound_j"`
			DeadlineS   float64                 `json:"deadline_s"`
		}
		must.Do(t, json.Unmarshal([]byte(mustRun(t, append(on, "--deadline", deadline, "--out", deadline)...)), &n))
		if n.EnergyJ.Total < want*0.999999 || n.EnergyJ.Total > want*1.000001 || n.LowerBoundJ > want*1.000001 || n.DeadlineS == 0 {
			t.Errorf("within %s: %+v, want %v J", deadline, n, want)
		}
		wantVerified(t, deadline)
	}
	if out := mustRun(t, "rerun", "11ms"); strings.Contains(out, "DIFFERENT") || !strings.Contains(out, record.FrontFile) {
		t.Errorf("repeated:\n%s", out)
	}
	wantRefused(t, strings.Join(on, " ")+" --deadline 6ms --out none", "no plan that was found takes at most 6ms for a step; the shortest takes 7ms")
	file := filepath.Join("11ms", rundir.CertificateFile)
	c := must.Get(cli.ReadJSON[certificate.Certificate](file))(t)
	c.Deadline--
	text := must.Get(json.Marshal(c))(t)
	writeTestFile(t, file, string(text))
	wantEnd(t, cli.ExitFailed, "verify 11ms", "its bound is of steps of at most 10.999999ms, and the run was to keep 11ms")
}

// TestFrontOfPlan: the table of the front has every plan, and says which no other beats in both and which was chosen: one
// that is least by the objective. No row of the front beats another, and every other row is beaten. The figure and the text count
// the rows of the table, and the figure says of what its bound is: the laptop has sets of 1, 2, 4 and 8 cores.
func TestFrontOfPlan(t *testing.T) {
	t.Chdir(t.TempDir())
	text := strings.Join(strings.Fields(mustRun(t, "plan", "--platform", "laptop", "--model", "mlp", "--batch", "64", "--objective", "energy", "--budget", "20000", "--out", "p")), " ")
	number := func(row map[string]string, column string) float64 {
		return must.Get(strconv.ParseFloat(row[column], 64))(t)
	}
	beats := func(a, b map[string]string) bool {
		s, j := number(a, "seconds")-number(b, "seconds"), number(a, "joules")-number(b, "joules")
		return s <= 0 && j <= 0 && s+j < 0
	}
	rows := readTable(t, filepath.Join("p", record.FrontFile))
	chosen := 0
	sets := map[string]bool{}
	for _, row := range rows {
		sets[row["devices"]] = true
		beaten := slices.ContainsFunc(rows, func(other map[string]string) bool { return beats(other, row) })
		if row["front"] == "yes" && beaten {
			t.Errorf("%v is beaten", row)
		}
		if row["chosen"] == "yes" {
			chosen++
			for _, other := range rows {
				if number(other, "joules") < number(row, "joules") {
					t.Errorf("%v takes fewer joules than what was chosen, %v", other, row)
				}
			}
		}
	}
	if chosen != 1 || len(sets) < 4 {
		t.Errorf("%d plans are chosen, of %d sets of devices", chosen, len(sets))
	}
	if want := fmt.Sprintf("(the best of %s plans that differ,", naming.Thousands(len(rows))); !strings.Contains(text, want) {
		t.Errorf("no %q in %s", want, text)
	}
	svg, err := os.ReadFile(filepath.Join("p", "front.svg"))
	if want := fmt.Sprintf("time and energy of %s plans", naming.Thousands(len(rows))); !strings.Contains(string(svg), want) {
		t.Errorf("no %q in the figure", want)
	}
	if err != nil || !regexp.MustCompile(`no plan of (these \d+ tilings on 4 sets of devices|all lowerings of the layers on all sets)`).Match(svg) {
		t.Errorf("front.svg: %v", err)
	}
}

// TestPowerCap: two tasks that wait for nothing take 3 and 4 ms on two units of 1 W idle and 2 W busy, 4 W in all while both
// run. With 3 W one waits for the other: 7 ms. The cap stays with the run. 2 W are drawn while nothing runs.
func TestPowerCap(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.toml", twoUnits)
	writeTestFile(t, "both.stg", "2\n1 3 0\n2 4 0\n")
	on := []string{"plan", "--platform", "two.toml", "--graph", "both.stg", "--objective", "time", "--json"}
	for watts, want := range map[string]float64{"4 W": 4e-3, "3W": 7e-3} {
		var n struct {
			MakespanS float64 `json:"makespan_s"`
		}
		must.Do(t, json.Unmarshal([]byte(mustRun(t, append(on, "--power-cap", watts, "--out", "p")...)), &n))
		if fmt.Sprintf("%.6g", n.MakespanS) != fmt.Sprint(want) {
			t.Errorf("at %s: %v s, want %v", watts, n.MakespanS, want)
		}
		p, err := platform.Load(filepath.Join("p", rundir.PlatformFile))
		if err != nil || p.CapWatts != map[string]float64{"4 W": 4, "3W": 3}[watts] {
			t.Errorf("%s: the run's machine has a cap of %v W, %v", watts, p.CapWatts, err)
		}
		wantVerified(t, "p")
		wantRepeated(t, "p")
	}
	wantRefused(t, strings.Join(on, " ")+" --power-cap 2W --out q", "draws 2 W while nothing runs; write more than that")
}
