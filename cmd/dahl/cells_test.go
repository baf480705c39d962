package main

import (
	"encoding/csv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dahl/cmd/grid"
	"dahl/must"
)

// badNames are names of a machine, its file, a device, a model and of cases that a spreadsheet or a browser would obey.
const (
	badMachine = `
name = "=cmd|' /C calc'!A0<script>"
host_power = { watts = "6 W", source = "guess" }
[[memory]]
name = "ram"
bandwidth = "51.2 GB/s"
[[device]]
name = "-cpu"
kind = "cpu"
count = 2
memory = "ram"
speed = { float32 = "60.8 GF/s" }
power = { idle = "0.25 W", busy = "5 W", source = "guess" }
`
	badModel = `
name = "-2+3"
input = [1, 8, 8]
[[layer]]
kind = "flatten"
[[layer]]
kind = "dense"
outputs = 10
`
	badGrid = `
name = "mine"
sentence = "<script>alert(1)</script> [x](javascript:alert(1)) | a"
[run]
command = "simulate"
model = "m.toml"
policy = "heft"
steps = 2
batch = 3
[grid]
platform = ["=p.toml"]
[[case]]
name = "=HYPERLINK(\"http://x\",\"y\")"
seed = 4
[[case]]
name = "@x|<script>"
seed = 5
`
)

// TestCellsAreTexts: no table that dahl writes has a cell that a spreadsheet would compute, whatever is named how, and none in
// Markdown has a tag of HTML or a link.
func TestCellsAreTexts(t *testing.T) {
	inGrid(t, badGrid)
	writeTestFile(t, "=p.toml", badMachine)
	writeTestFile(t, "m.toml", badModel)
	mustRun(t, strings.Fields("experiment run grid.toml --out out --allow-modified")...)
	mustRun(t, strings.Fields("plan --platform =p.toml --model m.toml --batch 3 --steps 2 --objective time --budget 100 --out plan")...)
	bad := []string{`'=HYPERLINK("http://x","y")`, "'@x|<script>", "'-cpu:1", "'=p.toml"} // each is in some table
	found := map[string]bool{}
	must.Do(t, filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".csv" {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		lines, err := csv.NewReader(f).ReadAll()
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, line := range lines {
			for _, cell := range line {
				found[cell] = true
				if _, err := strconv.ParseFloat(cell, 64); err != nil && cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
					t.Errorf("%s has the cell %q", path, cell)
				}
			}
		}
		return nil
	}))
	for _, cell := range bad {
		if !found[cell] {
			t.Errorf("no table has the cell %q", cell)
		}
	}
	text := must.Get(os.ReadFile("out/" + grid.TableFile))(t)
	for _, want := range []string{`&lt;script&gt;alert(1)&lt;/script&gt; \[x\](javascript:alert(1)) \| a`, `| @x\|&lt;script&gt; |`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s:\n%s", grid.TableFile, want, text)
		}
	}
	if strings.Contains(string(text), "<script") {
		t.Errorf("%s has a script:\n%s", grid.TableFile, text)
	}
	mustRun(t, "experiment", "verify", "out")
}
