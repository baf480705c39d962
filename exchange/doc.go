// Package exchange reads task graphs and machines in the formats of others. [Formats] is the table of them, one
// file of this package each; `dahl import` writes what they become as a graph file or a platform file of dahl.
// [FormatOf] knows a file by its contents. [Imported.Left] counts what a file says and its import does not.
//
// A node becomes a task and an edge a dependence, in the order of the file where tasks can run in
// that order. What moves along an edge becomes a buffer:
//
//   - bytes stay bytes, rounded to whole ones; less than half a byte is a dependence without data
//   - a time t becomes the bytes that a link of 1 GB/s carries in t, so 1 ns is 1 byte: links of
//     that bandwidth without latency take the time in the file
//
// Times of files without a unit are in the unit that the caller gives, or [DefaultUnit].
//
// # STG
//
// The Standard Task Graph Set of the Kasahara laboratory. The first line has the number of tasks,
// with or without the two dummies, and in the variant with communication costs the number of
// processors, which is not used. Then each task has a line
//
//	task  processing time  number of predecessors  predecessors
//
// or, with communication costs, that line without the predecessors and after it one line for each,
// "predecessor cost". What follows a '#' is a comment. Times and costs are in the caller's unit.
// A task n is named Tn and takes its time on every device. The dummies stay, as tasks that take none.
//
// # DOT
//
// A digraph of Graphviz whose nodes all have one of two attributes, in capitals or not:
//
//   - size is the work of a node in flop, counted as float32, and of an edge the bytes that move. So
//     DAGGEN writes it, and SimGrid and dslab read it. Each edge moves its own bytes. One without size
//     or with one below 0 is a dependence without data. Nodes named root and end may have no size
//   - weight is the time of a node on every device, or of the communication of an edge between two
//     devices, as in exercises in scheduling. Both are in the caller's unit
//
// All else, such as labels, DAGGEN's alpha (the serial share of Amdahl's law) and the weight by which
// Graphviz lays out the edges between nodes of a size, is left out. Defaults ("node [weight=1]") hold for
// what follows them. Nodes of subgraphs are nodes of the graph. Undirected edges, edges of whole subgraphs and ports are refused.
//
// # Placement
//
// The JSON files of Tarnawski et al., Efficient Algorithms for Device Placement of DNN Graph
// Operators (NeurIPS 2020), with one sample or step. All times are milliseconds.
//
//   - cpuLatency is the cost on processors and fpgaLatency that on every other kind of device; a node
//     without supportedOnFpga has only the former
//   - cost is the time in which the output of a node moves between an accelerator and the host's
//     memory. It is one buffer for all readers, so that it moves once to each memory, as the paper
//     charges it. The paper has accelerators exchange data through the host's memory, and pay each
//     way: platforms with routes only from and to that memory do the same. Bytes of an edge are
//     left out
//   - size is the memory of a node on its device, as long as the training lasts: a buffer of state
//     that its task writes. The paper does not place more than a memory holds, and counts accelerators
//     only. A plan of dahl may evict buffers that do not fit, at the price of time
//   - colorClass keeps nodes on one device, and isBackwardNode gives the phase
//
// The machine of the file (maxFPGAs, maxCPUs, maxSizePerFPGA) is not part of a graph: it belongs into
// a platform file.
//
// # PipeDream
//
// The profiles of Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN Training (SOSP 2019). A node is a line
//
//	name -- description -- forward_compute_time=ms, backward_compute_time=ms, activation_size=bytes, parameter_size=bytes
//
// with or without " -- stage_id=n", which is left out, and an edge is a line with a tab, "name -- name". A size may be a list,
// "[10; 20]". The graph is a step of a training, of one mini-batch or of several ([Options]):
//
//   - a layer has a forward task and a backward task. The forward task reads the outputs of the layers before it. The backward task reads
//     these, its own output and a gradient from each layer after it. A gradient is as large as the output that it belongs to
//   - an update of the weights takes no time, as the profile has none. It adds the gradients of all mini-batches of the step
//   - a node with a description that begins with Input stands for data in every memory. Its time for loading is left out
//   - the tasks of one layer in one mini-batch stay on one device
//   - m mini-batches update a part of each layer's weights each, with the gradients of all: m² reads for a layer, and 2^22 in all at most
//
// With [Options.Stash] no task waits for an update: the plan decides which version of the weights a forward pass takes, and so the losses. A
// forward pass keeps a copy in a buffer of its step. That buffer has as many versions as there are steps in progress.
//
// # WfCommons and DAX
//
// Instances of scientific workflows, in WfFormat up to version 1.6 and in version 2 and 3 of Pegasus' DAX. A job takes its runtime
// on every device. A file is a buffer from its writer to all readers. What no job writes is in the host's memory
// from the beginning. If several jobs write a file, each has one of its own, and a reader takes the one of a job before it.
// The first size of a file counts. Command lines, machines and counters of the run are left out. Workflows within workflows are refused.
//
// # Chakra
//
// Traces of ranks: et_def.proto of MLCommons' Chakra, messages in a row. A node that took a time takes it again, on a processor if
// is_cpu_op says so and else on a CUDA device. A node without a time has the work num_ops. Its operands and the sizes of
// communication are bytes that it moves within its time. Dependences by data count. Those by control count where data do not lead the other
// way. One file is a rank by itself, whose collectives wait for no other rank. The files of all ranks are joined by package [dahl/exchange/ranks], and
// the GPU of rank n is gpun.
//
// # Kineto
//
// A recording of PyTorch's profiler becomes tasks in their order, and a machine: see package [dahl/exchange/recording].
//
// # StarPU
//
// The tasks of a run (tasks.rec of starpu_fxt_tool), in the order in which they were submitted. A handle is a buffer, and is in the host's
// memory if a task reads it first. A task takes the time that it took, and on the other kind of device the mean time of its model and
// footprint there. The memory node tells the kind: 0 is a processor, and any other a CUDA device. A file without times has operations and shapes,
// whose times the models of a platform know. So has dag.dot.
//
// HOST.config in sampling/bus is a machine, with the links of HOST.bandwidth and HOST.latency and the performance models of the
// host in sampling/codelets/45. A core that drives a GPU computes nothing. Links are one-way, and share one link of the host, which is as fast as the
// fastest of them. StarPU writes such links for SimGrid, too. A model's mean is the time of a call of that operation, and its
// footprint the shape. Devices of other kinds, combinations of several and regressions are left out.
//
// # SimGrid
//
// A platform in XML, of version 3 on: hosts, links, routes between hosts, and flat clusters. Each host is a processor with a memory of its own. A
// route with several links takes all of them, whose latencies add. SimGrid's default model of networks has factors for TCP, which a machine here has not. A link with two
// directions is two links. Performance states are clocks, and their watts idle, above no load and with all cores are the watts of the device. Courses over
// time, disks, routers and settings are left out, and so are states in which a host computes nothing. Other elements, and zones whose routes are computed, are refused. In a
// file that StarPU wrote, the hosts CPU0, CPU1 and so on are cores at the memory RAM.
//
// # Zeus and Perseus
//
// Tables of seconds and joules at settings of a GPU (Zeus, NSDI 2023; Perseus, SOSP 2024). Their columns tell the form:
//
//   - stage, instruction, frequency (MHz), time (s), energy (J): a profile of Perseus'. Each stage has a GPU
//   - power_limit (W), time_per_epoch (s), average_power (W), and the columns that name a training: one task for each training
//   - window_name, elapsed_time (s) and the columns gpuN_energy (J), which are added: one task. A window's name ends in a power limit
//
// A setting is a clock of the machine. A task has a cost at each of its settings: its time, and the joules that a GPU does not take while it waits
// ([Options.WaitWatts]). The speed of a clock and its watts are for tasks of others, and follow from all work in the table. Stages are a
// pipeline: a step has the forward and backward passes of all mini-batches, each stage does them in the order 1F1B, and no data move.
//
// # Writing
//
// [WriteSimGridDOT], [WriteWfCommons] and [WriteStarpuTasks] write graphs, and [WriteSimGrid] a machine. Where a format is read, too, what was
// written becomes the same graph or machine again: tasks, what they follow, times or work, and bytes along edges; speeds, watts and routes.
package exchange
