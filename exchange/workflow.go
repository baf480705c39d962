package exchange

import (
	"strconv"
)

// workflow collects the jobs of a scientific workflow. They take a time, and read and write named files.
type workflow struct {
	*file
	jobs   []job
	byID   map[string]int // into jobs
	byName map[string]int // the first with a name, which old files write in place of an id
	sizes  map[string]int64
}

type job struct {
	id, name      string
	line          int
	ns            int64
	timed         bool
	reads, writes []string // files
	after, before []string // jobs
}

func newWorkflow(f *file) workflow {
	return workflow{file: f, byID: map[string]int{}, byName: map[string]int{}, sizes: map[string]int64{}}
}

// add adds a job. One without an id is known by its name.
func (w *workflow) add(j job) error {
	if j.id == "" {
		j.id = j.name
	}
	if j.id == "" {
		return w.errorf(j.line, "a task has no id; write one")
	}
	if _, ok := w.byID[j.id]; ok {
		return w.errorf(j.line, "task %q is given twice; write another id", j.id)
	}
	w.byID[j.id] = len(w.jobs)
	if _, ok := w.byName[j.name]; !ok {
		w.byName[j.name] = len(w.jobs)
	}
	w.jobs = append(w.jobs, j)
	return nil
}

// find finds a job by its id or name.
func (w *workflow) find(line int, ref string) (int, error) {
	if at, ok := w.byID[ref]; ok {
		return at, nil
	}
	if at, ok := w.byName[ref]; ok {
		return at, nil
	}
	return 0, w.errorf(line, "there is no task %q; write the id of one in this file", ref)
}

// size notes the bytes of a file. The first size of a file counts.
func (w *workflow) size(name string, bytes int64) {
	switch known, ok := w.sizes[name]; {
	case !ok || known == 0:
		w.sizes[name] = bytes
	case bytes != 0 && bytes != known:
		w.leave("sizes of a file that differ from its first", 1)
	}
}

// build makes nodes of jobs and data of files. Files that no job writes are in the host's memory from the beginning.
func (w *workflow) build() error {
	w.nodes = make([]node, len(w.jobs))
	writers := map[string][]int{}
	for i, j := range w.jobs {
		n := &w.nodes[i]
		n.line, n.task.Name, n.task.Costs = j.line, j.id, everywhere(j.ns)
		if j.name != j.id {
			n.task.Labels.Layer = j.name
		}
		if !j.timed {
			w.leave("tasks without a runtime, which take no time", 1)
		}
		for _, name := range j.writes {
			if all := writers[name]; len(all) == 0 || all[len(all)-1] != i {
				writers[name] = append(all, i)
			}
		}
	}
	named, err := w.named()
	if err != nil {
		return err
	}
	data := w.data(writers)
	given := map[string]int{} // files that no job writes
	for to, j := range w.jobs {
		links, read := named[to], map[int][]int{} // by writer
		before := map[int]bool{}
		for _, from := range links {
			before[from] = true
		}
		for _, name := range unique(j.reads) {
			from, ok := source(to, writers[name], data[name], before)
			_, own := data[name][to]
			switch id, known := given[name]; {
			case ok:
				links = append(links, from)
				if d := data[name][from]; d != none {
					read[from] = append(read[from], d)
				}
			case own:
				w.leave("files that a task writes and reads itself", 1)
			case known:
				w.nodes[to].reads = append(w.nodes[to].reads, id)
			case w.sizes[name] > 0:
				given[name] = w.addInput(name, w.sizes[name], j.line)
				w.nodes[to].reads = append(w.nodes[to].reads, given[name])
			}
		}
		for _, from := range unique(links) {
			all := append(read[from], none)
			w.edges = append(w.edges, edge{from, to, all[0], j.line})
			w.nodes[to].reads = append(w.nodes[to].reads, all[1:max(1, len(all)-1)]...)
		}
	}
	return nil
}

// named lists for each job the ones that it is said to follow.
func (w *workflow) named() ([][]int, error) {
	named := make([][]int, len(w.jobs))
	for i, j := range w.jobs {
		for _, ref := range j.after {
			from, err := w.find(j.line, ref)
			if err != nil {
				return nil, err
			}
			named[i] = append(named[i], from)
		}
		for _, ref := range j.before {
			to, err := w.find(j.line, ref)
			if err != nil {
				return nil, err
			}
			named[to] = append(named[to], i)
		}
	}
	return named, nil
}

// source finds the writer whose output of a file a job reads: the last one that the job is said to follow, else the first. It looks through
// the writers or through the jobs before, whichever are fewer.
func source(reader int, writers []int, data map[int]int, before map[int]bool) (int, bool) {
	last := none
	if len(writers) < len(before) {
		for _, from := range writers {
			if before[from] {
				last = from
			}
		}
	} else {
		for from := range before {
			if _, writes := data[from]; writes {
				last = max(last, from)
			}
		}
	}
	if last >= 0 {
		return last, true
	}
	for _, from := range writers {
		if from != reader {
			_, rewrites := data[reader]
			return from, !rewrites // a rewritten file follows jobs by name alone
		}
	}
	return 0, false
}

// data adds a datum for each file and writer.
func (w *workflow) data(writers map[string][]int) map[string]map[int]int {
	data := map[string]map[int]int{}
	for i, j := range w.jobs {
		for _, name := range unique(j.writes) {
			if data[name] == nil {
				data[name] = map[int]int{}
			}
			as := name
			if n := len(data[name]); n > 0 {
				as += " #" + strconv.Itoa(n+1)
				w.leave("outputs that another task writes, too, which are files of their own here", 1)
			}
			data[name][i] = w.addDatum(i, as, w.sizes[name], j.line)
		}
	}
	return data
}

// unique drops repetitions.
func unique[T comparable](all []T) (kept []T) {
	met := map[T]bool{}
	for _, v := range all {
		if !met[v] {
			met[v], kept = true, append(kept, v)
		}
	}
	return kept
}
