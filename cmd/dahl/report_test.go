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
	wantTabs(t, b)
	e := must.Get(cli.ReadJSON[energy.Report](filepath.Join("run", rundir.EnergyFile)))(t)
	wantEnergy(t, b, e)
	if title, status := b.text("#title"), b.text("#status"); title != "two on laptop" || status != "run · 6 tasks in the timelines" {
		t.Errorf("title %q, status %q", title, status)
	}
	if says := b.text("#says"); !strings.Contains(says, "Bound the run takes 21 ms, which no schedule of this graph (2 tasks) on these devices can beat") {
		t.Errorf("the first screen says %q", says)
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
		wantContrast(t, b)
	}
	if want := []string{"rgb(255, 255, 255)", "rgb(24, 26, 30)", "rgb(255, 255, 255)"}; !slices.Equal(papers, want) {
		t.Errorf("the paper is %q by day, by night and printed by night, want %q", papers, want)
	}
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": "screen"}, nil)
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	var wide float64
	if b.run("frame().then(() => document.documentElement.scrollWidth)", &wide); wide > 400 {
		t.Errorf("a page of 400 pixels has contents of %v", wide)
	}
	if b.errors != nil {
		t.Errorf("the page complained, or asked for something: %q", b.errors)
	}
}

// wantTabs goes from the beginning of the page to the timeline by the tabulator alone.
func wantTabs(t *testing.T, b *browser) {
	t.Helper()
	b.call("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)
	var ids []string
	for range 8 {
		for _, kind := range []string{"rawKeyDown", "keyUp"} {
			b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}, nil)
		}
		var id string
		b.run("document.activeElement.id", &id)
		ids = append(ids, id)
	}
	if want := []string{"zoom-in", "zoom-out", "fit", "to-left", "to-right", "show-path", "find", "timeline"}; !slices.Equal(ids, want) {
		t.Errorf("the tabulator goes through %q, want %q", ids, want)
	}
}

// wantContrast demands of every text of the page the contrast of 4.5 of the accessibility guidelines (WCAG 2, 1.4.3).
func wantContrast(t *testing.T, b *browser) {
	t.Helper()
	var faint []string
	b.run(`(() => {
		const paper = (e) => {
			for (; e; e = e.parentElement) {
				const colour = getComputedStyle(e).backgroundColor, p = colour.match(/[\d.]+/g);
				if (p.length < 4 || p[3] === "1") return colour;
			}
			return "rgb(255, 255, 255)";
		};
		const seen = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && e.tagName !== "SCRIPT");
		const texts = seen.filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())).map((e) => [e, getComputedStyle(e).color]);
		texts.push(...seen.filter((e) => e.placeholder).map((e) => [e, getComputedStyle(e, "::placeholder").color]));
		return texts.filter(([e, colour]) => contrast(colour, paper(e)) < 4.5).map(([e]) => e.outerHTML.slice(0, 80));
	})()`, &faint)
	if len(faint) > 0 {
		t.Errorf("texts of little contrast: %q", faint)
	}
}

// TestStepsOfReportLieOverEachOther: steps that end after 2, 5 and 9 ms, with a copy up to 10, and after 3, 4 and 8 have slots of 3, 3 and 5 ms.
// The second step begins at 3 in both, and ends at 6 in the one and at 4 in the other. Schedules of unlike numbers of steps keep their times.
func TestStepsOfReportLieOverEachOther(t *testing.T) {
	program := string(must.Get(os.ReadFile("../../plots/report/page/data.js"))(t))
	b := openBrowser(t)
	var got [][]float64
	b.run(`(() => {`+program+`
		const of = (end, ...steps) => Object.assign(Object.create(Schedule.prototype), { steps, end });
		const both = [of(10, 2, 5, 9), of(8, 3, 4, 8)], slots = new Slots(both);
		for (const s of both) s.slots = slots;
		const [a, b] = both, unlike = [of(10, 2, 5), of(8, 3)], alone = new Slots(unlike);
		unlike[0].slots = alone;
		return [slots.starts, [a.at(2), b.at(3), a.at(2, true), a.at(5, true), b.at(4, true), b.at(3.5)], [b.time(4), b.time(5.5), a.time(9)],
			...b.taken(3.5, 7), alone.starts, [unlike[0].at(6), unlike[0].time(6)]];
	})()`, &got)
	want := [][]float64{{0, 3, 6, 11}, {3, 3, 2, 6, 4, 3.5}, {4, 4, 8}, {3, 4, 1}, {6, 10, 2}, {0, 10}, {6, 6}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, want %v", got, want)
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
	if said := b.text("#range"); !strings.HasPrefix(said, "steps 2 to 3") || !strings.HasSuffix(said, ", each below its prediction") {
		t.Errorf("the timeline shows %q", said)
	}
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
	wantSizes(t, b)
	b.errors = slices.DeleteFunc(b.errors, func(said string) bool { return strings.Contains(said, "willReadFrequently") }) // of the test itself
	b.press("#run-table tbody tr:nth-child(2)", "Enter")
	if name := b.text("#run-name"); name != "one: tiny on laptop" {
		t.Errorf("Enter on the second run shows %q", name)
	}
	if len(b.errors) > 0 {
		t.Errorf("the page complained, or asked for something: %q", b.errors)
	}
}

// wantSizes shows the page on a screen and on a telephone, by day and by night. Contents are no wider than the page, nor texts than their picture. These have the contrast of
// [wantContrast] to the colour that most of their middle line had before; marks need 3 (1.4.11).
func wantSizes(t *testing.T, b *browser) {
	t.Helper()
	b.run(`globalThis.faint = new Set(), globalThis.written = 0;
		const draw = CanvasRenderingContext2D.prototype.fillText;
		CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
			const wide = this.measureText(text).width, left = x - { left: 0, center: wide / 2, right: wide }[this.textAlign], at = this.getTransform(), counts = new Map();
			const line = () => this.getImageData(at.a * left, at.d * y, Math.max(1, at.a * wide), 1).data, pixels = line();
			draw.call(this, text, x, y);
			if (line().every((part, i) => part === pixels[i])) return; // it is cut off
			for (let i = 0; i < pixels.length; i += 4) {
				const colour = pixels[i + 3] < 128 ? getComputedStyle(document.body).backgroundColor : "rgb(" + pixels.slice(i, i + 3).join() + ")";
				counts.set(colour, (counts.get(colour) ?? 0) + 1);
			}
			const behind = [...counts].sort((a, b) => b[1] - a[1])[0][0];
			this.fillStyle = this.fillStyle; // as the browser spells it
			const ink = this.fillStyle.replace(/^#(..)(..)(..)$/, (_, ...parts) => "rgb(" + parts.slice(0, 3).map((p) => parseInt(p, 16)) + ")");
			if (contrast(ink, behind) < (text.length > 1 ? 4.5 : 3)) faint.add(text + " " + ink + " on " + behind);
			if (left < -0.5 || left + wide > this.canvas.clientWidth + 0.5) faint.add(text + " beyond the picture");
			written++;
		};`, nil)
	for _, width := range []int{1400, 400} {
		b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
		for _, scheme := range []string{"light", "dark"} {
			b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
			var seen struct {
				Wide    int
				Written int
				Faint   []string
			}
			b.run(`frame().then(() => ({ wide: document.documentElement.scrollWidth, written, faint: [...faint] }))`, &seen)
			if seen.Wide > width || seen.Written == 0 || len(seen.Faint) > 0 {
				t.Errorf("%s, %d pixels: contents of %d, %d texts in pictures, of which bad ones are %q", scheme, width, seen.Wide, seen.Written, seen.Faint)
			}
			wantContrast(t, b)
			b.run("faint.clear(), written = 0, 0", nil)
		}
	}
}

// wantZoom zooms by wheel and key, and out to all by a button.
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
	if ranges[0] != "7 ms to 21 ms of 21 ms" || ranges[0] == ranges[1] || ranges[1] == ranges[2] || ranges[3] != "0 ns to 21 ms of 21 ms" {
		t.Errorf("ranges %q: want two steps, nearer, nearer still, all", ranges)
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
	// The axis goes from 120 to 62 pixels before the right end. The last task has the last 4 of 21 ms,
	// and the rows of the cores begin 32 pixels below the top.
	b.mouse("#timeline", 120+(width-182)*19/21, 32+10, "mousePressed", "mouseReleased")
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
