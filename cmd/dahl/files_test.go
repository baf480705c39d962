package main

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/cmd/grid"
	"dahl/energy"
	"dahl/must"
	"dahl/plan/certificate"
	"dahl/rundir"
	"dahl/rundir/experiment"
)

// documented is what rundir/FILES.md says.
type documented struct {
	files   map[string]bool
	keys    map[string]map[string]bool // by file
	columns map[string][]string        // by file, in their order
	says    map[string]string          // of a column, by file and name
}

// readDocumented reads the tables of the page.
func readDocumented(t *testing.T) *documented {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "rundir", "FILES.md")))(t)
	d := &documented{map[string]bool{}, map[string]map[string]bool{}, map[string][]string{}, map[string]string{}}
	quoted := regexp.MustCompile("`([^`]+)`")
	names := func(cell string) (all []string) {
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			all = append(all, m[1])
		}
		return all
	}
	var of []string // whose keys come
	for line := range strings.Lines(string(text)) {
		switch cells := strings.Split(strings.TrimSpace(line), "|"); {
		case strings.HasPrefix(line, "## "):
			of = names(line)
		case len(cells) < 5 || len(names(cells[1])) == 0:
		case of == nil && len(cells) == 5: // the table of files
			for _, name := range names(cells[1]) {
				d.files[name] = true
			}
		case len(cells) == 6: // | file | column | unit | what |
			file, column := names(cells[1])[0], names(cells[2])[0]
			d.columns[file] = append(d.columns[file], column)
			d.says[file+column] = strings.TrimSpace(cells[4])
		default:
			for _, file := range of {
				if d.keys[file] == nil {
					d.keys[file] = map[string]bool{}
				}
				d.keys[file][names(cells[1])[0]] = true
			}
		}
	}
	return d
}

// keysOf adds the keys of a type that is written as JSON, with those inside.
func keysOf(keys map[string]bool, of reflect.Type, at string) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of.Kind() {
	case reflect.Struct:
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case f.Anonymous && name == "":
				keysOf(keys, f.Type, at)
			case f.IsExported() && name != "-":
				inside := strings.TrimPrefix(at+"."+name, ".")
				keys[inside] = true
				keysOf(keys, f.Type, inside)
			}
		}
	case reflect.Map:
		keys[at+".*"] = true
		keysOf(keys, of.Elem(), at+".*")
	case reflect.Slice:
		keysOf(keys, of.Elem(), at+"[]")
	}
}

// keysIn adds the keys of a value that was read from JSON, with those inside.
func keysIn(keys map[string]bool, v any, at string) {
	switch v := v.(type) {
	case map[string]any:
		for name, of := range v {
			for _, inside := range []string{strings.TrimPrefix(at+"."+name, "."), at + ".*"} {
				keys[inside] = true
				keysIn(keys, of, inside)
			}
		}
	case []any:
		for _, of := range v {
			keysIn(keys, of, at+"[]")
		}
	}
}

// writeAll writes runs of all kinds into the current directory.
func writeAll(t *testing.T) {
	t.Helper()
	writeTestFile(t, "tiny.toml", tinyNetwork)
	writeTestFile(t, "node.toml", faultyNode(`{ after = 9, kind = "lost" }`))
	writeTestFile(t, "stated.toml", statedNode)
	writeTestFile(t, "graph.json", statedGraph)
	writeTestFile(t, "plan.json", statedPlan)
	writeTestFile(t, "two.toml", faultyNode())
	writeTestFile(t, "parts.json", `{"format": "dahl-graph 1", "name": "parts", "buffers": [{"name": "x", "bytes": 8000000}],
 "tasks": [{"name": "a", "op": "m", "writes": ["x"], "ns": {"*": 100000}, "device": "g0"}, {"name": "b", "op": "m", "reads": ["x"], "ns": {"*": 100000}, "device": "g1"}]}`)
	writeTestFile(t, "profile.txt", heavyProfile)
	writeTestFile(t, "pair.toml", twoGPUs)
	writeTestFile(t, "stages.json", `{"format": "dahl-graph 1", "name": "stages", "buffers": [{"name": "x", "bytes": 8, "copies": 2}],
 "tasks": [{"name": "a", "writes": ["x"], "ns": {"*": 100000}}, {"name": "b", "reads": ["x"], "ns": {"*": 100000}}]}`)
	writeTestFile(t, "behind.json", `{"format": "dahl-plan 1", "devices": {"g0": ["a"], "g1": ["b"]}, "lags": {"b": 1}}`)
	littleMemory(t)
	for _, line := range []string{
		"simulate --platform two.toml --graph parts.json --policy heft --out parts",
		"import profile.txt --stash --out profile.json", "simulate --platform pair.toml --graph profile.json --policy pipedream:2 --steps 9 --out pipeline",
		"simulate --platform little.toml --model digits-cnn --batch 32 --limit 64 --policy heft --out little",
		"simulate --platform emulated --model digits-cnn --devices cpu,gpu --batch 16 --policy dmda --out sim",
		"plan --cuts --platform emulated --model tiny.toml --batch 16 --objective time --budget 3000 --out plan",
		"execute --model tiny.toml --data synthetic:1x8x8:23:10 --batch 5 --epochs 2 --platform node.toml --devices g0,g1 --policy heft --continue-on-loss --record 1 --out lost",
		"execute --model digits-cnn --limit 40 --batch 16 --platform emulated --devices cpu,gpu --policy heft --checkpoint every=1steps --out both",
		"evaluate both --data synthetic:1x8x8:23:10 --out evaluated",
		"simulate --platform stated.toml --graph graph.json --plan plan.json --out stated",
		"simulate --platform two.toml --graph stages.json --plan behind.json --out behind",
		"plot both --format png",
		"trace both", "trace both --format paje", "trace both --format csv", "trace both --format clocks", "report both",
		"compare lost both --out both",
	} {
		mustRun(t, strings.Fields(line)...)
	}
}

// TestFilesAreDocumented: rundir/FILES.md lists every file of a run, every column of a table, and every key at the top of an
// object, and nothing that is not written.
func TestFilesAreDocumented(t *testing.T) {
	d := readDocumented(t)
	t.Chdir(t.TempDir())
	writeAll(t)
	seen, keys := map[string]bool{}, map[string]map[string]bool{}
	for file, of := range map[string]any{record.SummaryFile: record.Summary{}, rundir.CertificateFile: certificate.Certificate{}, "manifest.json": record.Manifest{}, "energy.json": energy.Report{}, grid.HeadFile: grid.Manifest{}} {
		keys[file] = map[string]bool{}
		keysOf(keys[file], reflect.TypeOf(of), "")
	}
	columns := map[string][]string{grid.ResultsFile: append([]string{"repeat"}, experiment.ColumnNames()...)}
	columns[grid.ResultsFile] = append(columns[grid.ResultsFile], "joules_source", "memory_source", "status", "reason", "run")
	for _, dir := range []string{"sim", "plan", "lost", "evaluated", "both", "stated", "parts", "little", "behind", "pipeline"} {
		must.Do(t, filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || entry.Name() == ".lock" {
				return err
			}
			inRun, _ := filepath.Rel(dir, name)
			inRun = filepath.ToSlash(inRun)
			if leg, rest, ok := strings.Cut(inRun, "/"); ok && strings.HasPrefix(leg, "after-loss-") {
				seen["after-loss-*/…"], inRun = true, rest
			}
			known := false
			for file := range d.files {
				base := strings.TrimSuffix(inRun, ".png") // which plot writes in the place of .svg
				if match, _ := path.Match(file, inRun); match || base != inRun && file == base+".svg" {
					seen[file], known = true, true
				}
			}
			if !known {
				t.Errorf("%s is not documented", name)
			}
			file := path.Base(inRun)
			if file == rundir.PredictedFile { // which is a schedule
				file = rundir.ScheduleFile
			}
			return readKeys(name, file, keys, columns)
		}))
	}
	for file := range d.files {
		if !seen[file] {
			t.Errorf("%s is documented, and no command wrote it", file)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(keys)) {
		compareKeys(t, file, keys[file], d.keys[file])
	}
	for file, list := range columns {
		if !slices.Equal(list, d.columns[file]) {
			t.Errorf("%s has the columns %q; documented are %q", file, list, d.columns[file])
		}
	}
	for _, c := range experiment.Columns() {
		if says := d.says[grid.ResultsFile+c.Name]; says != c.Sentence {
			t.Errorf("%s of %s is said to be %q, and in the program %q", c.Name, grid.ResultsFile, says, c.Sentence)
		}
	}
}

// readKeys adds the keys of an object, or takes the columns of a table.
func readKeys(at, file string, keys map[string]map[string]bool, columns map[string][]string) error {
	switch path.Ext(file) {
	case ".json":
		text, err := os.ReadFile(at)
		if err != nil || file == "trace.json" {
			return err
		}
		var v any
		if keys[file] == nil {
			keys[file] = map[string]bool{}
		}
		err = json.Unmarshal(text, &v)
		keysIn(keys[file], v, "")
		return err
	case ".csv":
		text, err := os.ReadFile(at)
		head, _, _ := strings.Cut(string(text), "\n")
		columns[file] = strings.Split(head, ",")
		return err
	}
	return nil
}

// compareKeys compares the keys that a file may have with those that are documented: at the top all, inside those that are.
func compareKeys(t *testing.T, file string, written, documented map[string]bool) {
	t.Helper()
	top := func(key string) string { return regexp.MustCompile(`^[^.\[]*`).FindString(key) }
	at := map[string]bool{}
	for key := range documented {
		at[top(key)] = true
		if !written[key] {
			t.Errorf("%s: %s is documented, and never written", file, key)
		}
	}
	for key := range written {
		if top(key) == key && key != "" && !at[key] {
			t.Errorf("%s: %s is written and not documented", file, key)
		}
	}
}
