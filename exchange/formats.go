package exchange

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"dahl/dag"
	"dahl/exchange/recording"
	"dahl/naming"
	"dahl/platform"
)

// DefaultUnit is the unit of times where a file has none. It is long compared with the costs of
// starting a task on shipped platforms.
const DefaultUnit = time.Millisecond

// Format is how others write task graphs.
type Format struct {
	Name   string
	Doc    string // what it is
	Takes  string // its attributes and their meaning here
	Source string // where it is described

	Extensions []string // of usual names, for people

	Flags []string // of import that a file obeys, by the names of [Options.given]

	// recognise reports whether a file may be of this format, by its beginning: all of it, or [RecogniseBytes]. Its name helps where contents say little.
	recognise func(name string, beginning []byte) bool
	binary    bool                            // else it is UTF-8 text
	read      func(*file, []byte) error       // fills the file
	graph     func(*file) (*dag.Graph, error) // from the contents; nil means a task for each node

	// joins makes one graph of the files of several ranks. Without it, a file is read by itself.
	joins func(ranks []*file) (*dag.Graph, error)

	// files reads a recording, which may be several files. It stands instead of read and graph.
	files func(files []File, name string, o recording.Options) (*recording.Result, error)
}

// RecogniseBytes is how much of the beginning of a file suffices for [FormatOf].
const RecogniseBytes = 64 << 10

// Imported is the contents of a file as dahl has them.
type Imported struct {
	Format   string
	Graph    *dag.Graph         // nil where the file describes no tasks
	Platform *platform.Platform // nil where the file describes no machine
	Took     string             // the attributes that were used, and their meaning
	Recorded bool               // the platform is the machine on which the times of the graph were recorded
	Notes    []string           // about its contents, one line each
	Left     []LeftOut          // in the order in which they were met
}

// LeftOut counts one thing in a file that its import does not have.
type LeftOut struct {
	What  string
	Count int
}

// Options say how a file becomes a graph. The zero value is one mini-batch per step, whose weights the step before has updated.
type Options struct {
	Unit time.Duration // of times where a file has none of its own; 0 stands for [DefaultUnit]
	// Minibatches is how many mini-batches a step has, at whose end the weights are updated once; 0 stands for 1.
	Minibatches int
	// WaitWatts is the draw of a GPU that waits, for profiles of clocks. These have joules of work alone.
	WaitWatts float64
	// Stash lets a forward pass take the weights as they are, and keep a copy for its backward pass. Else it waits
	// for the update of the step before.
	Stash bool
	// Step is the name of the step of a recording that becomes the graph; empty stands for all steps as one.
	Step string
	// Ranks is how many ranks a training has, if the only recording of one stands for all; 0 is as many as there are recordings.
	Ranks int
	// Alone leaves out the work of older steps that delays the step of a recording.
	Alone bool
	// Extents of shapes in a recording are replaced by others, such as the number of samples; nil replaces none.
	Extents recording.Extents
	// Room is the memory that the contents of the files may take; nil has no end.
	Room *recording.Room
}

// given are the flags of import that name options other than their defaults.
func (o Options) given() (flags []string) {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"unit", o.Unit != 0}, {"minibatches", o.Minibatches > 1}, {"wait-power", o.WaitWatts != 0}, {"stash", o.Stash},
		{"step", o.Step != ""}, {"ranks", o.Ranks != 0}, {"alone", o.Alone}, {"extents", o.Extents != nil},
	} {
		if f.given {
			flags = append(flags, f.name)
		}
	}
	return flags
}

// check refuses options that would change nothing.
func (of Format) check(file string, o Options) error {
	for _, flag := range o.given() {
		if !slices.Contains(of.Flags, flag) {
			return fmt.Errorf("%s: a file of format %s has no use for --%s; leave it out", file, of.Name, flag)
		}
	}
	if o.Alone && o.Step == "" {
		return fmt.Errorf("%s: --alone leaves out what is older than one step; name that by --step", file)
	}
	return nil
}

var formats = []Format{
	{
		Name: "stg", Doc: "the Standard Task Graph Set, with or without communication costs", Flags: []string{"unit"},
		Takes:  "processing times as the time on every device, communication costs as bytes at 1 GB/s",
		Source: "https://www.kasahara.cs.waseda.ac.jp/schedule/", Extensions: []string{".stg"}, recognise: ending(".stg"), read: (*file).readSTG,
	},
	{
		Name: "dot", Doc: "Graphviz, with the size of DAGGEN and SimGrid or a weight at each node", Flags: []string{"unit"},
		Takes:  "size of nodes as flop and of edges as bytes, or weight of nodes as the time on every device and of edges as bytes at 1 GB/s",
		Source: "https://github.com/frs69wq/daggen", Extensions: []string{".dot", ".gv"}, recognise: ending(".dot", ".gv"), read: (*file).readDOT,
	},
	{
		Name: "placement", Doc: "device placement of Tarnawski et al., NeurIPS 2020",
		Takes:  "latencies as times in ms on processors and on other devices, cost in ms as bytes at 1 GB/s once for all readers, size as memory, colorClass as colocation",
		Source: "https://github.com/msr-fiddle/dnn-partitioning", Extensions: []string{".json"}, recognise: holds(`"fpgaLatency"`), read: (*file).readPlacement,
	},
	{
		Name: "pipedream", Doc: "a profile of PipeDream's, Narayanan et al., SOSP 2019", Flags: []string{"minibatches", "stash"},
		Takes:  "compute times in ms on every device as forward and backward passes, activation_size as activations and their gradients, parameter_size as weights with an update, input nodes as data that are everywhere",
		Source: "https://github.com/msr-fiddle/pipedream", Extensions: []string{".txt"}, recognise: holds("forward_compute_time="), read: (*file).readPipeDream, graph: (*file).training,
	},
	{
		Name: "kineto", Doc: "a recording of PyTorch's profiler (torch.profiler, Kineto), compressed by gzip or not", Flags: []string{"step", "ranks", "alone", "extents"},
		Takes:  "calls of the GPU's runtime, work of GPUs and operators by their times as tasks in their order, ProfilerStep or optimiser's updates as steps, Input Dims as flop and bytes",
		Source: "https://github.com/pytorch/kineto", Extensions: []string{".json", ".json.gz"}, recognise: isKineto, files: recording.Read,
	},
	{
		Name: "execution-trace", Doc: "an execution trace of PyTorch (ExecutionTraceObserver); with a recording of the same run it gives that its shapes", Flags: []string{"step", "ranks", "alone", "extents"},
		Takes:  "operators in their order on one GPU, shapes of inputs as flop and bytes; times are by the roofline of the GPU alone",
		Source: "https://docs.pytorch.org/docs/stable/profiler.html", Extensions: []string{".json", ".json.gz"}, recognise: recording.IsExecution, files: recording.Read,
	},
	{
		Name: "wfcommons", Doc: "an instance of a scientific workflow in WfFormat of WfCommons, version 1.6 or before",
		Takes:  "runtimes in s as times on every device, files as bytes from their writer to each reader, those without a writer as data in the host's memory",
		Source: "https://github.com/wfcommons/WfFormat", Extensions: []string{".json"}, recognise: isWfCommons, read: (*file).readWfCommons,
	},
	{
		Name: "chakra", Doc: "execution traces of ranks in Chakra's schema, from PyTorch or made by hand for ASTRA-sim",
		Takes:  "durations as times on processors or on CUDA devices by is_cpu_op, num_ops as flop and tensor_size as bytes where there is no duration, both kinds of dependences, sizes of tensors as bytes read and written, collectives and messages between several files as copies between GPUs",
		Source: "https://github.com/mlcommons/chakra", Extensions: []string{".et"}, recognise: isChakra, binary: true, read: (*file).readChakra, graph: (*file).chakraGraph, joins: joinChakra,
	},
	{
		Name: "starpu-machine", Doc: "what StarPU measured of a host: sampling/bus/HOST.config, with HOST.bandwidth and HOST.latency beside it and codelets/45/*.HOST",
		Takes:  "cores that drive no GPU and CUDA devices, bandwidths and latencies of all ways as links with one shared link of the host, means of performance models by footprint as times of calls in float32",
		Source: "https://files.inria.fr/starpu/doc/html/", Extensions: []string{".config"}, recognise: holds("# Number of CPUs"), read: (*file).readStarpuMachine,
	},
	{
		Name: "starpu-model", Doc: "a performance model of StarPU's by itself: codelets/45/SYMBOL.HOST",
		Takes:  "means by footprint as times of calls in float32 on the devices of the file",
		Source: "https://files.inria.fr/starpu/doc/html/", Extensions: []string{".HOST"}, recognise: holds("# Performance Model Version"), read: (*file).readStarpuModel,
	},
	{
		Name: "starpu-tasks", Doc: "the tasks of a run of StarPU's: tasks.rec of starpu_fxt_tool",
		Takes:  "times in ms where a task ran, and on the other kind of device the mean of tasks of its model and footprint; handles as buffers, models and footprints as operations and shapes, whose times a file without times takes from the platform",
		Source: "https://files.inria.fr/starpu/doc/html/", Extensions: []string{".rec"}, recognise: holds("JobId: "), read: (*file).readStarpuTasks, graph: (*file).recGraph,
	},
	{
		Name: "simgrid", Doc: "a platform of SimGrid's, with hosts, links, routes and flat clusters",
		Takes:  "hosts as processors with a memory each, performance states as clocks, wattage_per_state as watts, links with two directions as two links, routes as they are and without TCP's factors",
		Source: "https://simgrid.org/doc/latest/XML_reference.html", Extensions: []string{".xml"}, recognise: holds("<platform"), read: (*file).readSimGrid,
	},
	{
		Name: "nsight", Doc: "a recording of Nsight Systems, as nsys export --type sqlite writes it", Flags: []string{"step", "ranks", "alone"},
		Takes:  "work of GPUs, calls of the CUDA runtime and NVTX ranges as in recordings of PyTorch's profiler, without operators",
		Source: "https://docs.nvidia.com/nsight-systems/UserGuide/index.html", Extensions: []string{".sqlite"}, recognise: recording.IsNsight, files: recording.Read,
	},
	{
		Name: "zeus", Doc: "a profile of Zeus, NSDI 2023, or Perseus, SOSP 2024: seconds and joules by power limit or frequency", Flags: []string{"minibatches", "wait-power"},
		Takes:  "settings as clocks of a GPU for each stage, seconds and joules at each setting as costs of tasks; stages as a pipeline in the order 1F1B with a forward and a backward pass for each of --minibatches",
		Source: "https://github.com/ml-energy/zeus", Extensions: []string{".csv"}, recognise: isZeus, read: (*file).readZeus, graph: (*file).zeusGraph,
	},
	{
		Name: "dax", Doc: "a workflow of Pegasus, DAX version 2 or 3",
		Takes:  "runtimes in s as times on every device, files as bytes from their writer to each reader, those without a writer as data in the host's memory",
		Source: "https://pegasus.isi.edu/schema/dax-3.6.xsd", Extensions: []string{".xml", ".dax"}, recognise: holds("<adag"), read: (*file).readDAX,
	},
}

// Formats lists the formats that can be read.
func Formats() []Format { return slices.Clone(formats) }

// FormatByName finds a format; the error names all.
func FormatByName(name string) (Format, error) {
	return naming.Find("format", name, formats, func(f Format) string { return f.Name })
}

// FormatOf recognises the format of a file by its name and its beginning, of which [RecogniseBytes] suffice.
func FormatOf(name string, beginning []byte) (Format, error) {
	var known []string
	for _, f := range formats {
		if f.recognise(name, beginning) {
			return f, nil
		}
		for _, e := range f.Extensions {
			known = append(known, e+" ("+f.Name+")")
		}
	}
	return Format{}, fmt.Errorf("%s is of no format that can be imported; it begins as none of %s", name, strings.Join(known, ", "))
}

// ending recognises files by the end of their name.
func ending(extensions ...string) func(name string, beginning []byte) bool {
	return func(name string, _ []byte) bool {
		return slices.Contains(extensions, strings.ToLower(filepath.Ext(name)))
	}
}

// holds recognises files by a text that only they have.
func holds(mark string) func(name string, beginning []byte) bool {
	return func(_ string, beginning []byte) bool { return bytes.Contains(beginning, []byte(mark)) }
}

// Read reads a file in this format. A graph is named as the file. The unit has to be 0 where the file has one of its own.
// Without a training in the file a step has one mini-batch. Errors are one line, "name:line: the mistake; the remedy".
func (of Format) Read(src []byte, name string, o Options) (*Imported, error) {
	if of.files != nil {
		return of.readFiles([]File{{Name: name, In: bytes.NewReader(src)}}, o)
	}
	f, err := of.parse(src, name, o)
	if err != nil {
		return nil, err
	}
	build := of.graph
	if build == nil {
		build = (*file).graph
	}
	in := &Imported{Format: of.Name, Platform: f.machine}
	if f.machine == nil || of.graph != nil { // a machine needs no tasks
		if in.Graph, err = build(f); err != nil {
			return nil, err
		}
	}
	in.Took, in.Left = f.took, f.left
	return in, nil
}

// parse reads the nodes of a file.
func (of Format) parse(src []byte, name string, o Options) (*file, error) {
	f := &file{name: name, Options: o, took: of.Takes}
	if err := of.check(name, o); err != nil {
		return nil, err
	}
	if !of.binary {
		src = bytes.TrimPrefix(src, []byte(dag.Mark))
		if !utf8.Valid(src) {
			valid := bytes.TrimLeftFunc(src, func(r rune) bool { return r != utf8.RuneError })
			return nil, f.errorf(1+bytes.Count(src[:len(src)-len(valid)], []byte{'\n'}), "not UTF-8 text")
		}
	}
	return f, of.read(f, src)
}
