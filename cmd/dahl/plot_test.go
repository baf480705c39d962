package main

import (
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dahl/must"
)

// TestPlotSteps: five steps of 7 ms are drawn as asked for, else the second and the third, and steps
// that there are not are refused.
func TestPlotSteps(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.json", twoTasks)
	mustRun(t, "simulate", "--platform", "laptop", "--graph", "two.json", "--steps", "5", "--policy", "heft", "--out", "run")
	for steps, want := range map[string]string{"": "steps 2 and 3 of 5", "4": "step 4 of 5", "2:4": "steps 2 to 4 of 5", "all": ">step 5<"} {
		args := []string{"plot", "run", "gantt"}
		if steps != "" {
			args = append(args, "--steps", steps)
		}
		mustRun(t, args...)
		svg, err := os.ReadFile(filepath.Join("run", "gantt.svg"))
		if err != nil || !strings.Contains(string(svg), want) || !strings.Contains(string(svg), "no schedule of these tasks on these workers takes less than 35 ms") {
			t.Errorf("--steps %q: the picture lacks %q (%v)", steps, want, err)
		}
	}
	for steps, want := range map[string]string{
		"x": "--steps", "3:": "as 3:5, or all", "3:2": "as 3:5, or all",
		"0:2": "the run shows steps 1 to 5; write --steps 1:5", "5:6": "the run shows steps 1 to 5; write --steps 1:5",
	} {
		wantRefused(t, "plot run gantt --steps "+steps, want)
	}
}

// TestPlotPages: figures have the size, the title and the resolution that were asked for; energy is in the figure of power; and
// what makes no page is refused in a line, and leaves nothing.
func TestPlotPages(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "two.json", twoTasks)
	mustRun(t, "simulate", "--platform", "laptop", "--graph", "two.json", "--steps", "2", "--policy", "heft", "--out", "run")
	if out := mustRun(t, "plot", "run", "energy", "--width", "85mm", "--font-size", "8", "--title", "Joules"); out != filepath.Join("run", "power.svg")+"\n" {
		t.Errorf("energy is in %q", out)
	}
	svg := string(must.Get(os.ReadFile(filepath.Join("run", "power.svg")))(t))
	must.Contain(t, svg, `width="240.94pt"`, ">Joules<")
	mustRun(t, "plot", "run", "gantt", "--format", "png", "--width", "5in", "--height", "4in", "--dpi", "100")
	size := must.Get(png.DecodeConfig(must.Get(os.Open(filepath.Join("run", "gantt.png")))(t)))(t)
	if size.Width != 500 || size.Height != 400 {
		t.Errorf("5 by 4 inches at 100 dots per inch are %d by %d", size.Width, size.Height)
	}
	for line, want := range map[string]string{
		"--width 85":                 "--width 85: want a number with mm, cm, in or pt, such as 85mm",
		"--height xmm":               "--height xmm: want a length from 1pt to 5080mm",
		"--font-size 1":              "--font-size 1: want 3 to 72 points",
		"--dpi 300":                  "--dpi 300: svg has no dots; add --format png",
		"--dpi 3 --format png":       "--dpi 3: want 20 to 2400",
		"--width 20mm":               "a width of at least 57 mm is wanted",
		"--height 20mm --format pdf": "gantt: no room for the figure: at this width and size of text a height of at least",
	} {
		wantRefused(t, "plot run gantt "+line, want)
	}
	if _, err := os.Stat(filepath.Join("run", "gantt.pdf")); err == nil {
		t.Error("a figure without room was written")
	}
	wantVerified(t, "run")
}
