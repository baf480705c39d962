package exchange

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"strconv"
	"strings"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// Time is the time of a task on its fastest device, and whether this is a processor.
type Time func(dag.TaskID) (takes time.Duration, onCPU bool)

// TimeOf is the time that graphs themselves give to their tasks: the shortest, or 0.
func TimeOf(g *dag.Graph) Time {
	return func(t dag.TaskID) (takes time.Duration, onCPU bool) {
		for i, c := range g.Tasks[t].Costs {
			if ns := time.Duration(c.Ns); i == 0 || ns < takes {
				device, _, _ := dag.SplitCostKey(c.Key)
				takes, onCPU = ns, device == platform.CPU || device == dag.AnyDevice
			}
		}
		return takes, onCPU
	}
}

// flow is the bytes of one storage that go from one task to another.
type flow struct {
	from   dag.TaskID // none: no task of the step wrote it
	buffer dag.BufferID
	bytes  int64
}

// flowsOf lists the bytes that each task reads and writes, by storage, in the order of its operands.
func flowsOf(g *dag.Graph) (reads, writes [][]flow) {
	writer := make([]dag.TaskID, g.NumAtoms())
	for a := range writer {
		writer[a] = none
	}
	reads, writes = make([][]flow, g.NumTasks()), make([][]flow, g.NumTasks())
	add := func(to *[]flow, f flow) {
		for i := range *to {
			if at := &(*to)[i]; at.from == f.from && at.buffer == f.buffer {
				at.bytes += f.bytes
				return
			}
		}
		*to = append(*to, f)
	}
	for t := range g.Tasks {
		id := dag.TaskID(t)
		for i, access := range g.Tasks[t].Accesses {
			for _, a := range g.Atoms(id, i) {
				if access.Mode.Reads() {
					add(&reads[t], flow{writer[a], g.AtomStorage(dag.AtomID(a)), g.AtomBytes(dag.AtomID(a))})
				}
			}
		}
		for i, access := range g.Tasks[t].Accesses {
			for _, a := range g.Atoms(id, i) {
				if access.Mode.Writes() {
					writer[a] = id
					add(&writes[t], flow{id, g.AtomStorage(dag.AtomID(a)), g.AtomBytes(dag.AtomID(a))})
				}
			}
		}
	}
	return reads, writes
}

// secondFlops is the work in place of a second, in a format without times.
const secondFlops = 1e9

// WriteSimGridDOT writes a graph in the DOT form of SimGrid and DAGGEN: the size of a node is its flop, and of an edge its bytes. A task
// without flop has 10^9 for each second that it takes.
func WriteSimGridDOT(w io.Writer, g *dag.Graph, of Time) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "digraph %s {\n", dotText(g.Name))
	for t := range g.Tasks {
		size := g.Tasks[t].Flops
		if takes, _ := of(dag.TaskID(t)); size == 0 {
			size = takes.Seconds() * secondFlops
		}
		fmt.Fprintf(out, "  %s [size=\"%s\"];\n", dotText(g.Tasks[t].Name), strconv.FormatFloat(size, 'g', -1, 64))
	}
	reads, _ := flowsOf(g)
	for t := range g.Tasks {
		for _, p := range g.Preds(dag.TaskID(t)) {
			bytes := int64(0)
			for _, f := range reads[t] {
				if f.from == dag.TaskID(p) {
					bytes += f.bytes
				}
			}
			size := "-1" // a dependence without data
			if bytes > 0 {
				size = strconv.FormatInt(bytes, 10)
			}
			fmt.Fprintf(out, "  %s -> %s [size=\"%s\"];\n", dotText(g.Tasks[p].Name), dotText(g.Tasks[t].Name), size)
		}
	}
	fmt.Fprintln(out, "}")
	return out.Flush()
}

// dotText is a text in double quotes of the DOT language.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// WriteStarpuTasks writes a graph as tasks.rec, which starpu_replay simulates. A region is a handle. A task starts at 0 and ends after its time, on memory
// node 0 for a processor and 1 for another device. Its operation is its model, and its shape, as a number, the footprint.
func WriteStarpuTasks(w io.Writer, g *dag.Graph, of Time) error {
	out := bufio.NewWriter(w)
	handles := map[string]int{}
	for t := range g.Tasks {
		task := &g.Tasks[t]
		fmt.Fprintf(out, "Name: %s\n", task.Name)
		if task.Op != "" {
			fmt.Fprintf(out, "Model: %s\n", task.Op)
		}
		fmt.Fprintf(out, "JobId: %d\nSubmitOrder: %d\nDependsOn:", t+1, t+1)
		for _, p := range g.Preds(dag.TaskID(t)) {
			fmt.Fprintf(out, " %d", p+1)
		}
		fmt.Fprintf(out, "\nPriority: %d\n", task.Priority)
		takes, onCPU := of(dag.TaskID(t))
		node := 1
		if onCPU {
			node = 0
		}
		fmt.Fprintf(out, "WorkerId: %d\nMemoryNode: %d\nSubmitTime: 0\nStartTime: 0\nEndTime: %s\n", node, node, strconv.FormatFloat(float64(takes)/nsPerMs, 'f', -1, 64))
		if task.Flops > 0 {
			fmt.Fprintf(out, "GFlop: %s\n", strconv.FormatFloat(task.Flops/1e9, 'g', -1, 64))
		}
		fmt.Fprintf(out, "Footprint: %s\nParameters: %d\n", footprint(task.Shape), len(task.Accesses))
		var names, modes, sizes strings.Builder
		for _, a := range task.Accesses {
			key := fmt.Sprintf("%d %s", a.Buffer, a.Box)
			if handles[key] == 0 {
				handles[key] = len(handles) + 1
			}
			bytes := g.Buffers[a.Buffer].Bytes()
			if a.Box != nil {
				bytes = a.Box.Elems() * g.Buffers[a.Buffer].Type.SizeBytes()
			}
			fmt.Fprintf(&names, " %x", handles[key])
			fmt.Fprintf(&modes, " %s", map[dag.Mode]string{dag.Read: "R", dag.Write: "W", dag.ReadWrite: "RW", dag.Reduce: "RW"}[a.Mode])
			fmt.Fprintf(&sizes, " %d", bytes)
		}
		fmt.Fprintf(out, "Handles:%s\nModes:%s\nSizes:%s\n\n", names.String(), modes.String(), sizes.String())
	}
	return out.Flush()
}

// footprint is a shape as StarPU writes one: eight hexadecimal digits. A shape that is one stays.
func footprint(shape string) string {
	if _, err := strconv.ParseUint(shape, 16, 32); err == nil {
		return shape
	}
	h := fnv.New32a()
	h.Write([]byte(shape))
	return fmt.Sprintf("%08x", h.Sum32())
}

// The form of an instance in WfFormat 1.5.
type (
	wfWritten struct {
		Name     string `json:"name"`
		Version  string `json:"schemaVersion"`
		Workflow struct {
			Specification struct {
				Tasks []wfWrittenTask `json:"tasks"`
				Files []wfWrittenFile `json:"files"`
			} `json:"specification"`
			Execution struct {
				Makespan   float64        `json:"makespanInSeconds"`
				ExecutedAt string         `json:"executedAt"`
				Tasks      []wfWrittenRun `json:"tasks"`
			} `json:"execution"`
		} `json:"workflow"`
	}
	wfWrittenTask struct {
		Name     string   `json:"name"`
		ID       string   `json:"id"`
		Parents  []string `json:"parents"`
		Children []string `json:"children"`
		Inputs   []string `json:"inputFiles"`
		Outputs  []string `json:"outputFiles"`
	}
	wfWrittenFile struct {
		ID    string `json:"id"`
		Bytes int64  `json:"sizeInBytes"`
	}
	wfWrittenRun struct {
		ID      string  `json:"id"`
		Seconds float64 `json:"runtimeInSeconds"`
	}
)

// WriteWfCommons writes a graph as an instance of WfCommons. What a task writes of a storage is a file. The makespan is 0, since nothing ran.
func WriteWfCommons(w io.Writer, g *dag.Graph, of Time) error {
	var v wfWritten
	v.Name, v.Version = g.Name, "1.5"
	s, run := &v.Workflow.Specification, &v.Workflow.Execution
	run.ExecutedAt = "1970-01-01T00:00:00Z"
	reads, writes := flowsOf(g)
	type key struct {
		from   dag.TaskID
		buffer dag.BufferID
	}
	files, versions := map[key]string{}, map[dag.BufferID]int{}
	file := func(f flow) string {
		at := key{f.from, f.buffer}
		if _, ok := files[at]; !ok {
			name := g.Buffers[f.buffer].Name
			if versions[f.buffer]++; versions[f.buffer] > 1 {
				name += " #" + strconv.Itoa(versions[f.buffer])
			}
			files[at] = name
			s.Files = append(s.Files, wfWrittenFile{name, f.bytes})
		}
		return files[at]
	}
	for t := range g.Tasks {
		task := wfWrittenTask{Name: g.Tasks[t].Labels.Layer, ID: g.Tasks[t].Name, Parents: []string{}, Children: []string{}, Inputs: []string{}, Outputs: []string{}}
		if task.Name == "" {
			task.Name = task.ID
		}
		for _, p := range g.Preds(dag.TaskID(t)) {
			task.Parents = append(task.Parents, g.Tasks[p].Name)
			s.Tasks[p].Children = append(s.Tasks[p].Children, task.ID)
		}
		for _, f := range reads[t] {
			task.Inputs = append(task.Inputs, file(f))
		}
		for _, f := range writes[t] {
			task.Outputs = append(task.Outputs, file(f))
		}
		takes, _ := of(dag.TaskID(t))
		s.Tasks, run.Tasks = append(s.Tasks, task), append(run.Tasks, wfWrittenRun{task.ID, takes.Seconds()})
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(&v)
}
