package exchange

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
	"dahl/platform"
)

// recTask is a task of tasks.rec with the fields that count here.
type recTask struct {
	name, model, footprint string
	job                    string // the number by which others depend on it
	submitOrder            int
	dependsOn              []string
	handles, modes         []string
	sizes                  []int64
	flops                  float64
	priority               int32
	start, end             float64 // in ms
	node                   string  // of memory: 0 is the host's
	timed, placed          bool
	line                   int
}

// recKeys are the fields that count.
var recKeys = []string{"Name", "Model", "Footprint", "JobId", "SubmitOrder", "DependsOn", "Handles", "Modes", "Sizes", "GFlop", "Priority", "StartTime", "EndTime", "MemoryNode"}

// readStarpuTasks reads tasks.rec: records of lines "Key: value", with an empty line behind each.
func (f *file) readStarpuTasks(src []byte) error {
	record, first := map[string]string{}, 1
	for i, line := range append(strings.Split(string(src), "\n"), "") {
		text := strings.TrimRight(line, " \r")
		if text != "" {
			key, value, ok := strings.Cut(text, ":")
			if !ok {
				return f.errorf(i+1, "%q stands where \"Key: value\" has to", text)
			}
			record[key] = strings.TrimSpace(value)
			continue
		}
		if len(record) > 0 {
			if err := f.recTask(record, first); err != nil {
				return err
			}
		}
		record, first = map[string]string{}, i+2
	}
	slices.SortStableFunc(f.tasks, func(a, b recTask) int { return cmp.Compare(a.submitOrder, b.submitOrder) })
	return nil
}

// recTask reads one record.
func (f *file) recTask(record map[string]string, line int) (err error) {
	if control, ok := record["Control"]; ok && control != "NormalTask" {
		f.leave("records of "+control, 1)
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(record)) {
		if key != "Control" && !slices.Contains(recKeys, key) {
			f.leave(key+" of tasks", 1)
		}
	}
	t := recTask{name: record["Name"], model: record["Model"], footprint: record["Footprint"], job: record["JobId"], dependsOn: strings.Fields(record["DependsOn"]),
		handles: strings.Fields(record["Handles"]), modes: strings.Fields(record["Modes"]), line: line}
	t.node, t.placed = record["MemoryNode"]
	if t.job == "" {
		return f.errorf(line, "a task has no JobId")
	}
	if err := f.plain(line, t.name, t.model, t.footprint, t.job, record["Handles"]); err != nil {
		return err
	}
	for _, size := range strings.Fields(record["Sizes"]) {
		bytes, err := f.number(line, "a size", size, 1)
		if err != nil {
			return err
		}
		t.sizes = append(t.sizes, bytes)
	}
	if len(t.modes) != len(t.handles) || len(t.sizes) != len(t.handles) {
		return f.errorf(line, "task %s has %d handles, %d modes and %d sizes; write as many of each", t.job, len(t.handles), len(t.modes), len(t.sizes))
	}
	if text, ok := record["GFlop"]; ok {
		if t.flops, err = f.float(line, "GFlop", text); err != nil {
			return err
		}
		t.flops *= 1e9
	}
	if err := f.recTimes(&t, record); err != nil {
		return err
	}
	t.submitOrder = line
	if text, ok := record["SubmitOrder"]; ok {
		if t.submitOrder, err = strconv.Atoi(text); err != nil {
			return f.errorf(line, "SubmitOrder is %q; write a number", text)
		}
	}
	if text, ok := record["Priority"]; ok {
		v, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return f.errorf(line, "Priority is %q; write a number", text)
		}
		t.priority = int32(v)
	}
	f.tasks = append(f.tasks, t)
	return nil
}

// recTimes reads when a task ran. A task without both times has none.
func (f *file) recTimes(t *recTask, record map[string]string) (err error) {
	start, started := record["StartTime"]
	end, ended := record["EndTime"]
	if t.timed = started && ended; t.timed {
		if t.start, err = f.float(t.line, "StartTime", start); err != nil {
			return err
		}
		if t.end, err = f.float(t.line, "EndTime", end); err != nil {
			return err
		}
	}
	if t.end < t.start {
		return f.errorf(t.line, "task %s ends at %g ms, before it starts at %g", t.job, t.end, t.start)
	}
	return nil
}

// kind is the kind of device on which a task ran.
func (t *recTask) kind() string {
	if t.node == "0" || !t.placed {
		return platform.CPU
	}
	return platform.CUDA
}

// recGraph makes tasks of records, in the order in which they were submitted. Handles are buffers.
func (f *file) recGraph() (*dag.Graph, error) {
	b := f.builder()
	buffers, jobs := map[string]dag.BufferID{}, map[string]dag.TaskID{}
	means := f.means()
	for i := range f.tasks {
		t := &f.tasks[i]
		if _, ok := jobs[t.job]; ok {
			return nil, f.errorf(t.line, "task %s is given twice; write another JobId", t.job)
		}
		task := dag.Task{Name: strings.TrimSpace(t.name + " " + t.job), Op: t.model, Shape: t.footprint, Type: dag.Float32, Flops: t.flops, Priority: t.priority, Costs: means.costs(t)}
		for _, id := range unique(t.dependsOn) {
			before, ok := jobs[id]
			if !ok {
				f.leave("dependences on tasks that the file lacks before them", 1)
				continue
			}
			task.After = append(task.After, before)
		}
		for k, handle := range t.handles {
			if err := f.recAccess(b, &task, buffers, handle, t.modes[k], t.sizes[k]); err != nil {
				return nil, f.errorf(t.line, "task %s: %w", t.job, err)
			}
		}
		if jobs[t.job] = b.Task(task); b.Err() != nil {
			return nil, f.errorf(t.line, "%w", b.Err())
		}
	}
	g, err := b.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return g, nil
}

// recAccess adds a handle to a task. What is read before anybody wrote it is in the host's memory.
func (f *file) recAccess(b *dag.Builder, task *dag.Task, buffers map[string]dag.BufferID, handle, mode string, bytes int64) error {
	access, ok := map[string]dag.Mode{"R": dag.Read, "W": dag.Write, "RW": dag.ReadWrite}[strings.TrimSuffix(mode, "-C")]
	switch {
	case bytes == 0 || strings.HasPrefix(mode, "SCRATCH"):
		f.leave("handles without bytes or contents", 1)
		return nil
	case strings.HasPrefix(mode, "REDUX"):
		access = dag.ReadWrite
		f.leave("reductions, which are taken as updates", 1)
	case !ok:
		return fmt.Errorf("the mode of a handle is %q; write R, W or RW", mode)
	}
	id, ok := buffers[handle]
	if !ok {
		buffer := dag.Buffer{Name: handle, Shape: []int{int(bytes)}, Type: dag.Uint8}
		if access.Reads() {
			buffer.Home = dag.HostHome
		}
		id = b.Buffer(buffer)
		buffers[handle] = id
	}
	for i, a := range task.Accesses {
		if a.Buffer == id { // a handle that is given twice
			if a.Mode != access {
				task.Accesses[i].Mode = dag.ReadWrite
			}
			return nil
		}
	}
	task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: id}, Mode: access})
	return nil
}

// recMeans are the mean times in ms of tasks of one model and footprint on a kind of device.
type recMeans map[[3]string][2]float64 // by model, footprint and kind: the sum and the number

func (f *file) means() recMeans {
	means := recMeans{}
	for i := range f.tasks {
		if t := &f.tasks[i]; t.timed {
			key := [3]string{t.model, t.footprint, t.kind()}
			means[key] = [2]float64{means[key][0] + (t.end - t.start), means[key][1] + 1}
		}
	}
	return means
}

// costs are the time of a task on the kind of device where it ran, and the mean of tasks like it on the other kind.
func (m recMeans) costs(t *recTask) (costs []dag.Cost) {
	if !t.timed {
		return nil
	}
	for _, kind := range []string{platform.CPU, platform.CUDA} {
		ms := t.end - t.start
		if kind != t.kind() {
			sum := m[[3]string{t.model, t.footprint, kind}]
			if sum[1] == 0 || t.model == "" {
				continue
			}
			ms = sum[0] / sum[1]
		}
		costs = append(costs, dag.Cost{Key: kind, Ns: int64(min(ms*nsPerMs, maxAmount-1))})
	}
	return costs
}
