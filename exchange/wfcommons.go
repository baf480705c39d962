package exchange

import (
	"encoding/json"
	"maps"
	"slices"
)

// nsPerS is the unit of runtimes of workflows.
const nsPerS = 1e9

// wfReader reads an instance in WfFormat, of version 1.6 or one before it.
type wfReader struct {
	jsonReader
	workflow workflow

	runs  []wfTask // from version 1.5 on: how the tasks ran
	lines []int    // of runs
	depth int      // of parts around what is read
}

// wfTask has the keys of a task in all versions.
type wfTask struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Parents  []string `json:"parents"`
	Children []string `json:"children"`
	Inputs   []string `json:"inputFiles"`
	Outputs  []string `json:"outputFiles"`
	Files    []wfFile `json:"files"`
	Runtime  *float64 `json:"runtimeInSeconds"`
	Older    *float64 `json:"runtime"` // before version 1.4
}

// wfFile has the keys of a file in all versions.
type wfFile struct {
	ID    string   `json:"id"`
	Name  string   `json:"name"`
	Link  string   `json:"link"`
	Size  *float64 `json:"sizeInBytes"`
	Older *float64 `json:"size"` // before version 1.4
}

var wfTaskKeys = []string{"id", "name", "parents", "children", "inputFiles", "outputFiles", "files", "runtimeInSeconds", "runtime"}

// isWfCommons recognises an instance by keys that no other format has together.
func isWfCommons(name string, beginning []byte) bool {
	return holds(`"workflow"`)(name, beginning) && holds(`"schemaVersion"`)(name, beginning)
}

func (f *file) readWfCommons(src []byte) error {
	r := wfReader{jsonReader: newJSONReader(f, src), workflow: newWorkflow(f)}
	err := r.whole(func(key string) error {
		if key == "workflow" {
			return r.object(r.part)
		}
		if key != "name" && key != "schemaVersion" {
			r.leave("notes on the instance", 1)
		}
		return r.decode(new(json.RawMessage))
	})
	if err != nil {
		return err
	}
	for i := range r.runs {
		at, err := r.workflow.find(r.lines[i], r.runs[i].ID)
		if err != nil {
			return err
		}
		if err := r.time(&r.workflow.jobs[at], &r.runs[i], r.lines[i]); err != nil {
			return err
		}
	}
	return r.workflow.build()
}

// part reads the value of a key within the workflow, its specification or its execution.
func (r *wfReader) part(key string) error {
	switch key {
	case "specification":
		return r.nested(r.part)
	case "execution":
		return r.nested(func(key string) error {
			if key == "tasks" {
				return elements(&r.jsonReader, r.run)
			}
			return r.part(key)
		})
	case "tasks", "jobs":
		return elements(&r.jsonReader, r.task)
	case "files":
		return elements(&r.jsonReader, r.sized)
	case "machines":
		return elements(&r.jsonReader, func(*json.RawMessage) error {
			r.leave("machines", 1)
			return nil
		})
	}
	r.leave("notes on the run", 1)
	return r.decode(new(json.RawMessage))
}

// nested reads an object within the workflow, and calls part with every key.
func (r *wfReader) nested(part func(key string) error) error {
	if r.depth++; r.depth > maxZones {
		r.advance()
		return r.errorf(r.line, "more than %d parts of a workflow within each other", maxZones)
	}
	err := r.object(part)
	r.depth--
	return err
}

// known decodes the keys of a task that count here, and counts the others.
func (r *wfReader) known(raw *json.RawMessage) (t wfTask, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(*raw, &all); err != nil {
		return t, r.wrong(err)
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(wfTaskKeys, key) {
			r.leave(key+" of tasks", 1)
		}
	}
	if err := json.Unmarshal(*raw, &t); err != nil {
		return t, r.wrong(err)
	}
	return t, nil
}

func (r *wfReader) run(raw *json.RawMessage) error {
	t, err := r.known(raw)
	r.runs, r.lines = append(r.runs, t), append(r.lines, r.line)
	return err
}

func (r *wfReader) sized(v *wfFile) error {
	if v.Size == nil {
		return nil
	}
	bytes, err := r.amount(r.line, "sizeInBytes", *v.Size, 1)
	r.workflow.size(v.ID, bytes)
	return err
}

func (r *wfReader) task(raw *json.RawMessage) error {
	t, err := r.known(raw)
	if err != nil {
		return err
	}
	j := job{id: t.ID, name: t.Name, line: r.line, reads: t.Inputs, writes: t.Outputs, after: t.Parents, before: t.Children}
	for i := range t.Files {
		if err := r.use(&j, &t.Files[i]); err != nil {
			return err
		}
	}
	if err := r.time(&j, &t, r.line); err != nil {
		return err
	}
	return r.workflow.add(j)
}

// use adds a file of a version before 1.5.
func (r *wfReader) use(j *job, v *wfFile) error {
	name := v.Name
	if name == "" {
		name = v.ID
	}
	size := v.Size
	if size == nil {
		size = v.Older
	}
	if size != nil {
		bytes, err := r.amount(r.line, "the size of a file", *size, 1)
		if err != nil {
			return err
		}
		r.workflow.size(name, bytes)
	}
	switch v.Link {
	case "input":
		j.reads = append(j.reads, name)
	case "output":
		j.writes = append(j.writes, name)
	default:
		return r.errorf(r.line, "the link of file %q is %q; write input or output", name, v.Link)
	}
	return nil
}

// time takes the runtime of a task.
func (r *wfReader) time(j *job, t *wfTask, line int) (err error) {
	runtime := t.Runtime
	if runtime == nil {
		runtime = t.Older
	}
	if runtime != nil {
		j.timed = true
		j.ns, err = r.amount(line, "the runtime of a task", *runtime, nsPerS)
	}
	return err
}
