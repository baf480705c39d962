package exchange

import (
	"os"
	"regexp"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
)

// instance has two readers of one file, a file that nobody writes, and a task that only follows another one.
const instance = `{"name": "by hand", "schemaVersion": "1.5", "author": {"name": "a"}, "workflow": {
 "execution": {"makespanInSeconds": 9, "tasks": [
  {"id": "t3", "runtimeInSeconds": 0.5, "avgCPU": 90, "machines": ["m"]},
  {"id": "t1", "runtimeInSeconds": 2, "avgCPU": 80},
  {"id": "t2", "runtimeInSeconds": 3}], "machines": [{"nodeName": "m"}]},
 "specification": {"tasks": [
  {"name": "join", "id": "t3", "parents": ["t1", "t2"], "children": [], "inputFiles": ["out1", "out2", "given"], "outputFiles": []},
  {"name": "split", "id": "t1", "parents": [], "children": ["t3", "t4"], "inputFiles": ["given"], "outputFiles": ["out1", "out2"]},
  {"name": "t2", "id": "t2", "parents": ["t1"], "children": [], "inputFiles": ["out2", "empty"], "outputFiles": ["empty"]},
  {"name": "t4", "id": "t4", "parents": [], "children": []}],
  "files": [{"id": "out1", "sizeInBytes": 11}, {"id": "out2", "sizeInBytes": 22}, {"id": "given", "sizeInBytes": 5}, {"id": "empty", "sizeInBytes": 0}]}}}`

// instanceOld is in version 1.0. Both jobs write one file, and the second one reads what the first wrote.
const instanceOld = `{"name": "old", "schemaVersion": "1.0", "workflow": {"makespan": 4, "jobs": [
  {"name": "a", "type": "compute", "runtime": 1.5, "parents": [], "files": [{"link": "output", "name": "f", "size": 7}]},
  {"name": "b", "type": "compute", "runtime": 2.5, "parents": ["a"], "files": [{"link": "input", "name": "f", "size": 8}, {"link": "output", "name": "f", "size": 7}]}]}}`

// daxText has a job without a runtime, and a file of which two uses give two sizes.
const daxText = `<?xml version="1.0" encoding="ISO-8859-1"?>
<adag xmlns="http://pegasus.isi.edu/schema/DAX" version="2.1">
  <file name="in"/>
  <job id="ID1" name="first" runtime="0.25">
    <argument>-a <filename file="in"/></argument>
    <uses file="in" link="input" size="30"/>
    <uses file="mid" link="output" size="40"/>
    <uses name="tool" executable="true"/>
  </job>
  <job id="ID2" name="second"><uses name="mid" link="input" size="41"/></job>
  <job id="ID3" name="third" runtime="1"/>
  <child ref="ID3"><parent ref="ID1"/><parent ref="ID2"/></child>
</adag>`

// TestLeftOut: what a file says and its graph does not is counted.
func TestLeftOut(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"plain.stg", stgPlain, ""},
		{"costs.stg", stgCosts, "1 numbers of processors"},
		{"sizes.dot", dotSizes, "1 shape attributes, 1 alpha attributes"},
		{"placement.json", placementNodes, "3 notes on the machine or for people, 1 bytes of edges"},
		{"profile.txt", profileText, "1 stages of nodes, 1 times of inputs"},
		{"instance.json", instance, "1 notes on the instance, 1 notes on the run, 2 avgCPU of tasks, 1 machines of tasks, 1 machines, 1 tasks without a runtime, which take no time, 1 files that a task writes and reads itself"},
		{"old.json", instanceOld, "1 notes on the run, 2 type of tasks, 1 sizes of a file that differ from its first, 1 outputs that another task writes, too, which are files of their own here"},
		{"w.dax", daxText, "1 file elements, 1 argument elements of jobs, 1 programs that jobs use, 1 sizes of a file that differ from its first, 1 tasks without a runtime, which take no time"},
		{"c.et", chakraText, "1 rf_id of nodes, 1 dependences by control against those by data, 1 dependences on nodes that the file lacks, 1 exchanges with other ranks, which wait for none; give the traces of all ranks"},
		{"t.rec", starpuTasks, "1 records of WontUse, 1 Parameters of tasks, 1 WorkerId of tasks, 1 handles without bytes or contents, 1 dependences on tasks that the file lacks before them"},
	} {
		in := must.Get(must.Get(FormatOf(c.file, []byte(c.text)))(t).Read([]byte(c.text), c.file, Options{}))(t)
		if got := leftOf(in); got != c.want {
			t.Errorf("%s leaves out %s, want %s", c.file, got, c.want)
		}
	}
}

// TestInspiral compares a real workflow with what regular expressions find in it. No job there rewrites a file.
func TestInspiral(t *testing.T) {
	const file = "testdata/dslab/inspiral-100.xml"
	src := must.Get(os.ReadFile(file))(t)
	g := must.Get(must.Get(FormatOf(file, src))(t).Read(src, file, Options{}))(t).Graph
	writes := map[string]string{}
	want := map[[2]string]bool{}
	jobs := regexp.MustCompile(`(?s)<job id="(\w+)".*?runtime="(.*?)">(.*?)</job>`).FindAllSubmatch(src, -1)
	uses := regexp.MustCompile(`file="(.*?)" link="(\w+)"`)
	for _, j := range jobs {
		id := taskNamed(t, g, string(j[1]))
		if ns := g.Tasks[id].Costs[0].Ns; time.Duration(ns).Seconds() != parse(t, j[2]) {
			t.Errorf("job %s takes %d ns, want %s s", j[1], ns, j[2])
		}
		for _, u := range uses.FindAllSubmatch(j[3], -1) {
			if string(u[2]) == "output" {
				writes[string(u[1])] = string(j[1])
			}
		}
	}
	for _, j := range jobs {
		for _, u := range uses.FindAllSubmatch(j[3], -1) {
			if from := writes[string(u[1])]; string(u[2]) == "input" && from != "" {
				want[[2]string{from, string(j[1])}] = true
			}
		}
	}
	for _, c := range regexp.MustCompile(`(?s)<child ref="(\w+)">(.*?)</child>`).FindAllSubmatch(src, -1) {
		for _, p := range regexp.MustCompile(`ref="(\w+)"`).FindAllSubmatch(c[2], -1) {
			want[[2]string{string(p[1]), string(c[1])}] = true
		}
	}
	got := 0
	for id := range g.Tasks {
		for _, p := range g.Preds(dag.TaskID(id)) {
			if got++; !want[[2]string{g.Tasks[p].Name, g.Tasks[id].Name}] {
				t.Errorf("%s follows %s", g.Tasks[id].Name, g.Tasks[p].Name)
			}
		}
	}
	if len(jobs) != 100 || g.NumTasks() != 100 || got != len(want) {
		t.Errorf("%d tasks with %d dependences of %d jobs, want 100 and %d", g.NumTasks(), got, len(jobs), len(want))
	}
}

func FuzzWfCommons(f *testing.F) { fuzz(f, "wfcommons") }
func FuzzDAX(f *testing.F)       { fuzz(f, "dax") }
