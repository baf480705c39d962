package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/energy"
	"dahl/must"
	"dahl/plots"
	"dahl/rundir"
)

// TestReportRefuses: a run may take no time, and what is no run is refused, as is a damaged one, a place that cannot be written, and one in a run.
func TestReportRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.json", twoTasks)
	mustRun(t, "simulate", "--platform", "laptop", "--graph", "two.json", "--out", "run")
	for _, c := range []struct{ line, want string }{
		{"report none", "none is not a run of dahl"},
		{"report run none", "none is not a run of dahl"},
		{"report run --out run/page.html", ", which holds a run; name a file elsewhere"},
		{"report run --out none/page.html", "none"},
	} {
		wantRefused(t, c.line, c.want)
	}
	writeTestFile(t, "zero.json", strings.NewReplacer("3000000", "0", "4000000", "0").Replace(twoTasks))
	mustRun(t, "simulate", "--platform", "manycore", "--graph", "zero.json", "--out", "zero")
	mustRun(t, "report", "zero", "--out", "zero.html")
	writeTestFile(t, "run/energy.json", "{\"total_joules\": 1,\n")
	wantRefused(t, "report run", filepath.Join("run", rundir.EnergyFile))
	if _, err := os.Stat("run/report.html"); err == nil {
		t.Error("a report was written of a run that cannot be read")
	}
	mustRun(t, "report", "zero", "zero")
	mustRun(t, "report", "zero")
	mustRun(t, "verify", "zero")
	for _, file := range []string{"report.html", "zero/report.html"} {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
}

// TestReportReadsFronts: what a search has written comes back, and another table is refused by its line.
func TestReportReadsFronts(t *testing.T) {
	head := strings.Join(record.FrontColumns, ",") + "\n"
	got, err := record.ReadFront(strings.NewReader(head+"0.5,7,,t,heft,yes,no\n2,3,gpu,t,eager,no,yes\n"), "front.csv")
	want := []plots.FrontPoint{{Seconds: 0.5, Joules: 7, Label: "all devices", Front: true}, {Seconds: 2, Joules: 3, Label: "gpu", Chosen: true}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("points %v, %v; want %v", got, err, want)
	}
	for _, row := range []string{"0.5,many,,t,heft,yes,no\n", "x,7,,t,heft,yes,no\n"} {
		if _, err := record.ReadFront(strings.NewReader(head+row), "front.csv"); err == nil || !strings.HasPrefix(err.Error(), "front.csv:2: want seconds,") {
			t.Errorf("row %q: %v", row, err)
		}
	}
}

// TestReportInBrowser: two tasks of 3 and 4 ms, one after the other, in three steps on one core of
// eight. The second waits for the first, and the first of a later step for the second of the step
// before.
func TestReportInBrowser(t *testing.T) {
	b := openBrowser(t)
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.json", twoTasks)
	mustRun(t, "simulate", "--platform", "laptop", "--graph", "two.json", "--steps", "3", "--policy", "heft", "--out", "run")
	mustRun(t, "report", "run")
	b.open("run/report.html")
	e := must.Get(cli.ReadJSON[energy.Report](filepath.Join("run", rundir.EnergyFile)))(t)
	wantEnergy(t, b, e)
	if title, status := b.text("#title"), b.text("#status"); title != "dahl: run" || status != "6 tasks in the timelines" {
		t.Errorf("title %q, status %q", title, status)
	}
	wantZoom(t, b)
	wantPath(t, b)
	wantCauses(t, b)
	if memory := b.rows("memory"); len(memory) != 1 || memory[0][0] != "ram" || memory[0][2] != "20 B" { // x: 5 numbers of 4 bytes
		t.Errorf("memory %q, want a peak of 20 B in ram", memory)
	}
	if said := b.text("#provenance"); !strings.Contains(said, "simulate --platform laptop --graph two.json --steps 3 --policy heft") || !strings.Contains(said, "seed1") {
		t.Errorf("provenance %q, want the command and the seed", said)
	}
	var papers []string
	for _, media := range []map[string]any{
		{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": "light"}}},
		{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": "dark"}}},
		{"media": "print", "features": []any{map[string]any{"name": "prefers-color-scheme", "value": "dark"}}},
	} {
		b.call("Emulation.setEmulatedMedia", media, nil)
		var paper string
		b.run("frame().then(() => getComputedStyle(document.body).backgroundColor)", &paper)
		papers = append(papers, paper)
	}
	if want := []string{"rgb(255, 255, 255)", "rgb(24, 26, 30)", "rgb(255, 255, 255)"}; !slices.Equal(papers, want) {
		t.Errorf("the paper is %q by day, by night and printed by night, want %q", papers, want)
	}
	if b.errors != nil {
		t.Errorf("the page complained, or asked for something: %q", b.errors)
	}
}

// TestReportOfBothWorldsInBrowser: a training on a core and an emulated GPU is shown beside its
// prediction, and so is another run. What a task on the GPU waited for leads to the copy of its operands.
func TestReportOfBothWorldsInBrowser(t *testing.T) {
	b := openBrowser(t)
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	mustRun(t, strings.Fields("execute --platform emulated --model digits-cnn --limit 48 --batch 16 --epochs 1 --devices cpu:1,gpu --policy heft --out both")...)
	mustRun(t, strings.Fields("simulate --platform laptop --model tiny.toml --batch 3 --steps 2 --out one")...)
	mustRun(t, "report", "both", "one", "--out", "page.html")
	b.open("page.html")
	e := must.Get(cli.ReadJSON[energy.Report](filepath.Join("both", rundir.EnergyFile)))(t)
	wantEnergy(t, b, e)
	var worlds []string
	b.run(`[...new Set(rows("waits").map((row) => row[5]))].sort()`, &worlds)
	if !slices.Equal(worlds, []string{"measured", "simulated"}) {
		t.Errorf("the longest waits are of the worlds %q, want both", worlds)
	}
	var where string
	b.run(`(() => {
		for (const wait of document.querySelectorAll("#waits tbody tr")) {
			wait.click();
			const copied = [...document.querySelectorAll("#details .freed tr")].find((tr) => tr.textContent.startsWith("operands here with"));
			if (copied) return copied.querySelector("button").click(), frame();
		}
	})()`, nil)
	b.run(`text("#details .facts td")`, &where)
	if where != "ram to vram" && where != "vram to ram" {
		t.Errorf("the operands came by %q, want a copy between the memories", where)
	}
	if said := b.text("#fronts:not([hidden]) figcaption"); said != "● both: the run · ■ one: the run: time and joules of a step" {
		t.Errorf("below the fronts stands %q, want both runs", said)
	}
	b.run(`document.querySelectorAll("#run-table tbody tr")[1].click(), frame()`, nil)
	if name := b.text("#run-name"); name != "one" {
		t.Errorf("a click on the second run shows %q", name)
	}
	if b.errors != nil {
		t.Errorf("the page complained, or asked for something: %q", b.errors)
	}
}

// wantZoom zooms by wheel and key, and back by a button.
func wantZoom(t *testing.T, b *browser) {
	t.Helper()
	ranges := []string{b.text("#range")}
	for _, act := range []func(){
		func() { b.mouse("#timeline", 500, 60, "mouseWheel") },
		func() { b.press("#timeline", "+") },
		func() { b.run(`document.getElementById("fit").click(), frame()`, nil) },
	} {
		act()
		ranges = append(ranges, b.text("#range"))
	}
	if ranges[0] == ranges[1] || ranges[1] == ranges[2] || ranges[3] != ranges[0] {
		t.Errorf("ranges %q: want all, nearer, nearer still, all", ranges)
	}
}

// wantPath turns the critical path off and on.
func wantPath(t *testing.T, b *browser) {
	t.Helper()
	var pictures [3]string
	for i := range pictures {
		b.run(`document.getElementById("timeline").toDataURL()`, &pictures[i])
		b.press("#timeline", "c")
	}
	b.press("#timeline", "c")
	if pictures[0] == pictures[1] || pictures[0] != pictures[2] {
		t.Error("the critical path does not come and go")
	}
}

// wantCauses clicks the last task, which is the second of step 3, and follows its causes to the
// beginning of the run; then it sorts and filters the kernels.
func wantCauses(t *testing.T, b *browser) {
	t.Helper()
	var width float64
	b.run(`document.getElementById("timeline").clientWidth`, &width)
	// The axis goes from 120 to 12 pixels before the right end. The last task has the last 4 of 21 ms,
	// and the rows of the cores begin 32 pixels below the top.
	b.mouse("#timeline", 120+(width-132)*19/21, 32+10, "mousePressed", "mouseReleased")
	var chain, label []string
	for range 6 {
		b.run(`[text("#details h3") + " " + text("#details .facts tr:nth-child(2) td"), text("#details tr.cause td")]`, &label)
		chain = append(chain, strings.Join(label, ": "))
		b.press("#timeline", "Enter")
	}
	want := []string{"second 3: operands written by first", "first 3: operands written by second", "second 2: operands written by first",
		"first 2: operands written by second", "second 1: operands written by first", "first 1: "}
	if !slices.Equal(chain, want) {
		t.Errorf("the last task is followed back along %q, want %q", chain, want)
	}
	if kernels := b.rows("kernels"); len(kernels) != 2 || kernels[0][0] != "g" {
		t.Errorf("kernels %q, want g with 4 ms before f with 3 ms", kernels)
	}
	b.run(`document.querySelector("#kernels th button").click()`, nil) // by name
	if kernels := b.rows("kernels"); kernels[0][0] != "f" {
		t.Errorf("kernels by name are %q", kernels)
	}
	b.run(`(() => { const f = document.getElementById("kernel-filter"); f.value = "F"; f.dispatchEvent(new Event("input")); })()`, nil)
	if kernels := b.rows("kernels"); len(kernels) != 1 || kernels[0][0] != "f" {
		t.Errorf("kernels with an F are %q", kernels)
	}
}

// wantEnergy compares the energy that a page shows with a report, to the digit.
func wantEnergy(t *testing.T, b *browser, e *energy.Report) {
	t.Helper()
	digits := func(joules float64) string {
		text := must.Get(json.Marshal(joules))(t)
		return string(text)
	}
	want := [][2]string{{"total", digits(e.TotalJoules)}, {"host", digits(e.Causes.Host)}, {"idle", digits(e.Causes.Idle)}, {"busy", digits(e.Causes.Busy)}, {"transfer", digits(e.Causes.Transfer)}}
	for _, list := range [][]energy.Entry{e.ByDevice, e.ByLink, e.ByPhase, e.ByLayer} {
		for _, x := range list {
			want = append(want, [2]string{x.Name, digits(x.Joules)})
		}
	}
	var shown [][]string // with all digits where there are more than are shown
	b.run(`[...document.querySelectorAll("#energy tr")].map((row) => [...row.children].map((cell) => cell.title || cell.textContent))`, &shown)
	said := b.text("#energy-text")
	for _, w := range want {
		if !slices.ContainsFunc(shown, func(row []string) bool { return row[0] == w[0] && row[2] == w[1]+" J" }) {
			t.Errorf("the page has no %s of %s J:\n%q", w[0], w[1], shown)
		}
	}
	if want := fmt.Sprintf("of the %d steps that the timeline shows", e.Steps); !strings.HasPrefix(said, want) || !strings.Contains(said, " W on average") || !strings.HasSuffix(said, e.Grounds()) {
		t.Errorf("the page says %q; want %q, watts and %q", said, want, e.Grounds())
	}
}
